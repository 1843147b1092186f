/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/run_values.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"

#define SMALL_VALUE_BYTES 4096u

/* The bytes are in `block`, in `array`, or directly after this struct. */
struct sp_run_memory {
    _Alignas(SP_ARRAY_ALIGNMENT) uint32_t references;
    uint64_t bytes;
    sp_block *block;
    void *array;
};

/* ---- memory ---- */

static sp_allocator *allocator_of(const sp_run_values *values)
{
    sp_rt_device *device = values->device;
    const bool is_staged = device->dev->vtable->staging_create != NULL;
    return is_staged ? &device->staging : &device->allocator;
}

sp_status sp__run_values_check_room(const sp_run_values *values, uint64_t bytes)
{
    if (bytes <= values->most_bytes - values->bytes) return SP_OK;
    return sp__fail(SP_EXHAUSTED,
                    "the values that the run keeps between partial plans would take %" PRIu64
                    " bytes; %s allows %" PRIu64,
                    values->bytes + bytes, values->most_name, values->most_bytes);
}

sp_status sp__run_values_check_arena(const sp_run_values *values, uint64_t bytes)
{
    if (values->run_bytes == 0 || bytes <= values->run_bytes - values->bytes) return SP_OK;
    return sp__fail(SP_EXHAUSTED,
                    "a partial plan of the run would take %" PRIu64 " bytes of memory (%" PRIu64
                    " between its steps, %" PRIu64
                    " between partial plans); max_run_bytes allows %" PRIu64,
                    values->bytes + bytes, bytes, values->bytes, values->run_bytes);
}

static sp_status count_bytes(sp_run_values *values, uint64_t bytes)
{
    SP_TRY(sp__run_values_check_room(values, bytes));
    values->bytes += bytes;
    return SP_OK;
}

static sp_status fail_no_memory(uint64_t bytes)
{
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for a value of %" PRIu64 " bytes", bytes);
}

static sp_status block_acquire(sp_allocator *allocator, uint64_t bytes, sp_block **out, void **data)
{
    sp_block *block;
    SP_TRY(sp__allocator_acquire(allocator, bytes, NULL, &block));
    const sp_status status = sp__block_host(block, data);
    if (status == SP_OK) *out = block;
    else sp__allocator_release(allocator, block);
    return status;
}

static sp_status memory_fill(sp_run_values *values, uint64_t bytes, sp_run_memory **out,
                             void **data)
{
    const bool is_small = bytes <= SMALL_VALUE_BYTES;
    const size_t size = sizeof(sp_run_memory) + (is_small ? (size_t)bytes : 0);
    sp_run_memory *memory = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, size);
    if (memory == NULL) return fail_no_memory(bytes);
    *memory = (sp_run_memory){.references = 1, .bytes = bytes};
    *data = memory + 1;
    if (!is_small) {
        const sp_status status = block_acquire(allocator_of(values), bytes, &memory->block, data);
        if (status != SP_OK) {
            sp_free(memory);
            return status;
        }
    }
    *out = memory;
    return SP_OK;
}

void sp__run_value_release(sp_run_values *values, sp_run_value *value)
{
    sp_run_memory *memory = value->memory;
    *value = (sp_run_value){0};
    if (memory == NULL || --memory->references > 0) return;
    values->bytes -= memory->bytes;
    if (memory->block != NULL) sp__allocator_release(allocator_of(values), memory->block);
    sp_free(memory->array);
    sp_free(memory);
}

sp_status sp__run_value_create(sp_run_values *values, sp_dtype dtype, const sp_shape *shape,
                               sp_run_value *out, void **data)
{
    *out = (sp_run_value){.dtype = dtype, .shape = *shape};
    uint64_t bytes;
    SP_TRY(sp__shape_bytes(shape, dtype, &bytes));
    SP_TRY(count_bytes(values, bytes));
    const sp_status status = memory_fill(values, bytes, &out->memory, data);
    if (status != SP_OK) {
        values->bytes -= bytes;
        return status;
    }
    out->bytes = bytes;
    out->data = *data;
    return SP_OK;
}

sp_status sp__run_value_adopt(sp_run_values *values, sp_array *array, sp_run_value *out)
{
    sp_status status = count_bytes(values, array->bytes);
    sp_run_memory *memory = NULL;
    if (status == SP_OK) {
        memory = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, sizeof(*memory));
        if (memory == NULL) {
            values->bytes -= array->bytes;
            status = fail_no_memory(array->bytes);
        }
    }
    if (status != SP_OK) {
        sp__array_deinit(array);
        return status;
    }
    *memory = (sp_run_memory){.references = 1, .bytes = array->bytes, .array = array->data};
    *out = (sp_run_value){.dtype = array->dtype,
                          .shape = array->shape,
                          .bytes = array->bytes,
                          .data = array->data,
                          .memory = memory};
    return SP_OK;
}

/* ---- values ---- */

sp_status sp__run_values_init(sp_run_values *values, const sp_graph *graph, sp_rt_device *device,
                              const sp_run_limits *limits)
{
    const bool is_run_less = limits->bytes != 0 && limits->bytes < limits->partial_bytes;
    *values = (sp_run_values){.graph = graph,
                              .device = device,
                              .most_bytes = is_run_less ? limits->bytes : limits->partial_bytes,
                              .most_name = is_run_less ? "max_run_bytes" : limits->partial_name,
                              .run_bytes = limits->bytes,
                              .list = sp_calloc(graph->value_count, sizeof(sp_run_value))};
    if (values->list != NULL) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for the values of a run");
}

void sp__run_values_deinit(sp_run_values *values)
{
    for (uint32_t i = 0; values->list != NULL && i < values->graph->value_count; i++) {
        sp__run_value_release(values, &values->list[i]);
    }
    sp_free(values->list);
    sp_free(values->is_stale);
}

/* Nodes are in topological order, so one pass suffices. */
sp_status sp__run_values_find_stale(sp_run_values *values)
{
    const sp_graph *graph = values->graph;
    bool *is_stale = sp_calloc(graph->value_count, sizeof(*is_stale));
    if (is_stale == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the values of a run");
    values->is_stale = is_stale;
    for (uint32_t i = 0; i < graph->default_count; i++) {
        is_stale[graph->defaults[i].value] = sp__run_values_has(values, graph->defaults[i].value);
    }
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const sp_graph_node *node = &graph->nodes[n];
        bool is_any = false;
        for (uint32_t i = 0; node->is_folded && i < node->input_count; i++) {
            is_any = is_any || (node->inputs[i] != SP_NO_VALUE && is_stale[node->inputs[i]]);
        }
        for (uint32_t i = 0; is_any && i < node->output_count; i++) {
            is_stale[node->outputs[i]] = true;
        }
    }
    return SP_OK;
}

bool sp__run_values_has(const sp_run_values *values, uint32_t index)
{
    return values->list[index].data != NULL;
}

const sp_run_value *sp__run_values_find(const sp_run_values *values, uint32_t index,
                                        sp_run_value *room)
{
    if (sp__run_values_has(values, index)) return &values->list[index];
    const sp_graph_value *constant = &values->graph->values[index];
    const bool is_stale = values->is_stale != NULL && values->is_stale[index];
    if (!constant->is_constant || constant->weight == SP_NO_WEIGHT || is_stale) return NULL;
    const sp_weight *weight = &values->graph->weights[constant->weight];
    SP_ASSERT(!weight->is_parkable); /* only steps of plans read such a weight */
    *room = (sp_run_value){.dtype = constant->dtype,
                           .shape = constant->shape,
                           .bytes = weight->bytes,
                           .data = weight->data};
    return room;
}

void sp__run_values_set(sp_run_values *values, uint32_t index, const sp_run_value *value)
{
    sp__run_value_release(values, &values->list[index]);
    values->list[index] = *value;
}

sp_run_value sp__run_value_retain(const sp_run_value *value)
{
    if (value->memory != NULL) value->memory->references++;
    return *value;
}

void sp__run_values_clear(sp_run_values *values, const sp_graph_body *body)
{
    for (uint32_t i = body->first_value; i < body->end_value; i++) {
        if (values->list[i].data != NULL) sp__run_value_release(values, &values->list[i]);
    }
}
