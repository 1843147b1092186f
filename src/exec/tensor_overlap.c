/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/tensor_overlap.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/heap.h"

#define FEW 16 /* tensors up to which searches need no heap */

/* ---- given outputs ---- */

static int by_begin(const void *a, const void *b)
{
    const sp_tensor_extent *x = a;
    const sp_tensor_extent *y = b;
    if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* In the order of begins those of one storage overlap nowhere if no two neighbours do. */
bool sp__tensor_extents_overlap(sp_tensor_extent *extents, uint32_t count, uint32_t found[2])
{
    if (count > 1) qsort(extents, count, sizeof *extents, by_begin);
    for (uint32_t i = 1; i < count; i++) {
        const sp_tensor_extent *a = &extents[i - 1], *b = &extents[i];
        if (a->storage != b->storage || a->end <= b->begin) continue;
        found[0] = a->index < b->index ? a->index : b->index;
        found[1] = a->index < b->index ? b->index : a->index;
        return true;
    }
    return false;
}

/* Room for one extent each; the number of extents that are not empty. */
static uint32_t extents_find(const sp_tensor_ports *ports, sp_tensor_extent *extents)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ports->graph->output_count; i++) {
        const sp_rt_tensor *into = ports->outputs[i].into;
        if (into == NULL) continue;
        const sp_storage_range range = sp__tensor_range(into);
        if (range.bytes == 0) continue;
        extents[count++] = (sp_tensor_extent){.storage = range.storage.bits,
                                              .begin = range.offset,
                                              .end = range.offset + range.bytes,
                                              .index = i};
    }
    return count;
}

sp_status sp__tensor_ports_check_overlap(const sp_tensor_ports *ports)
{
    sp_tensor_extent few[FEW], *extents = few;
    if (ports->given_count > FEW) {
        extents = sp_malloc(ports->given_count * sizeof *extents);
        if (extents == NULL) {
            return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %u given outputs",
                            ports->given_count);
        }
    }
    uint32_t found[2];
    const bool is_any = sp__tensor_extents_overlap(extents, extents_find(ports, extents), found);
    if (extents != few) sp_free(extents);
    if (!is_any) return SP_OK;
    const sp_graph_port *outputs = ports->graph->outputs;
    return sp__fail(SP_INVALID, "output '%s' overlaps output '%s'", outputs[found[1]].name,
                    outputs[found[0]].name);
}

/* ---- storages of inputs ---- */

static int by_bits(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

sp_status sp__tensor_ports_sort_storages(sp_tensor_ports *ports, uint32_t input_count)
{
    if (input_count <= FEW || ports->given_count == 0) return SP_OK;
    uint64_t *bits = sp_malloc(input_count * sizeof *bits);
    if (bits == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run of %u inputs", input_count);
    }
    for (uint32_t k = 0; k < input_count; k++) bits[k] = ports->places[k].storage.bits;
    qsort(bits, input_count, sizeof *bits, by_bits);
    ports->input_storages = bits;
    return SP_OK;
}

bool sp__tensor_ports_reads(const sp_tensor_ports *ports, uint32_t input_count, sp_storage storage)
{
    const uint64_t *bits = ports->input_storages;
    if (bits != NULL) {
        return bsearch(&storage.bits, bits, input_count, sizeof *bits, by_bits) != NULL;
    }
    for (uint32_t k = 0; k < input_count; k++) {
        if (ports->places[k].storage.bits == storage.bits) return true;
    }
    return false;
}
