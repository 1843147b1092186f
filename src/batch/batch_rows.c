/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_rows.h"

#include <string.h>

#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"

/* Rows of a plan: for callers that wait, compute and copy. Too few are not worth their memory. */
#define MOST_ROWS 256u
#define LEAST_ROWS 16u
#define MOST_BYTES (UINT64_C(32) << 20)
#define ALIGNMENT 256u

static sp_atomic_u32 *link_of(void *ctx, uint32_t slot)
{
    const sp_batch_rows *rows = ctx;
    return &rows->links[slot];
}

static void row_push(sp_batch_rows *rows, uint32_t row)
{
    sp_tagged_stack_push(&rows->free, link_of, rows, row);
}

/* ---- life ---- */

static void rows_lay_out(sp_batch_rows *rows)
{
    for (uint32_t i = 0; i < rows->input_count + rows->output_count; i++) {
        const sp_batch_port *port = &rows->ports[i];
        if (!port->is_by_rows) continue;
        rows->offsets[i] = rows->row_bytes;
        rows->row_bytes += (sp__batch_port_row_bytes(port) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    const uint64_t most = rows->row_bytes != 0 ? MOST_BYTES / rows->row_bytes : 0;
    rows->count = most < MOST_ROWS ? (uint32_t)most : MOST_ROWS;
}

sp_status sp__batch_rows_create(sp_allocator *allocator, const sp_batch_port *ports,
                                uint32_t input_count, uint32_t output_count, sp_batch_rows **out)
{
    sp_batch_rows *rows = sp_calloc(1, sizeof *rows);
    *out = NULL;
    if (rows == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for rows of batches");
    rows->allocator = allocator;
    rows->ports = ports;
    rows->input_count = input_count;
    rows->output_count = output_count;
    rows->offsets = sp_calloc(input_count + output_count, sizeof *rows->offsets);
    rows->links = sp_calloc(MOST_ROWS, sizeof *rows->links);
    if (rows->offsets == NULL || rows->links == NULL) {
        sp__batch_rows_destroy(rows);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for rows of batches");
    }
    rows_lay_out(rows);
    if (rows->count >= LEAST_ROWS) *out = rows;
    else sp__batch_rows_destroy(rows);
    return SP_OK;
}

void sp__batch_rows_destroy(sp_batch_rows *rows)
{
    if (rows == NULL) return;
    if (rows->block != NULL) sp__allocator_release(rows->allocator, rows->block);
    sp_free(rows->offsets);
    sp_free(rows->links);
    sp_free(rows);
}

/* ---- memory ---- */

bool sp__batch_rows_refill(sp_batch_rows *rows)
{
    if (rows == NULL || sp_load_acquire(&rows->is_there) != 0) return false;
    void *base;
    sp_block *block;
    if (sp__allocator_acquire_any(rows->allocator, rows->count * rows->row_bytes, true, &block) !=
        SP_OK) {
        return false;
    }
    if (sp__block_host(block, &base) != SP_OK) {
        sp__allocator_release(rows->allocator, block);
        return false;
    }
    rows->block = block;
    rows->base = base;
    sp_store_relaxed(&rows->is_there, 1);
    for (uint32_t row = rows->count; row-- > 0;) row_push(rows, row);
    return true;
}

/* Takes all rows that are free: *first is the first of a list by their links. */
static uint32_t rows_pop_all(sp_batch_rows *rows, uint32_t *first)
{
    uint32_t row;
    uint32_t count = 0;
    while (sp_tagged_stack_pop(&rows->free, link_of, rows, &row)) {
        sp_store_relaxed(&rows->links[row], *first);
        *first = row;
        if (count++ == 0) sp_delay_point();
    }
    return count;
}

/* False: a row is in use, or there are none. */
static bool rows_free(sp_batch_rows *rows)
{
    uint32_t first = 0;
    const uint32_t count = rows_pop_all(rows, &first);
    if (count == rows->count || (count > 0 && SP_PLANTED(row_reclaimed))) {
        sp_block *block = rows->block;
        rows->block = NULL;
        sp_store_release(&rows->is_there, 0);
        sp__allocator_release(rows->allocator, block);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t row = first;
        first = sp_load_relaxed(&rows->links[row]);
        row_push(rows, row);
    }
    return false;
}

/* Two at once would each find the rows in use that the other has popped. The second one need not
 * wait: who is short of memory waits for those that give some (runtime/slab.c). */
bool sp__batch_rows_reclaim(sp_batch_rows *rows)
{
    if (rows == NULL) return false;
    const bool is_first = sp_exchange_acquire(&rows->is_in_reclaim, 1) == 0;
    if (!is_first && !SP_PLANTED(reclaims_at_once)) return false;
    const bool is_freed = rows_free(rows);
    sp_store_release(&rows->is_in_reclaim, 0);
    return is_freed;
}

/* ---- use ---- */

void *sp__batch_rows_acquire(sp_batch_rows *rows)
{
    uint32_t row;
    if (!sp_tagged_stack_pop(&rows->free, link_of, rows, &row)) return NULL;
    return rows->base + row * rows->row_bytes;
}

void sp__batch_rows_release(sp_batch_rows *rows, void *row)
{
    row_push(rows, (uint32_t)((uint64_t)((char *)row - rows->base) / rows->row_bytes));
}

void sp__batch_rows_copy_in(const sp_batch_rows *rows, void *row, const void *const *inputs)
{
    for (uint32_t i = 0; i < rows->input_count; i++) {
        const sp_batch_port *port = &rows->ports[i];
        if (!port->is_by_rows) continue;
        memcpy(sp__batch_rows_at(rows, row, i), inputs[i], sp__batch_port_row_bytes(port));
    }
}

void sp__batch_rows_copy_out(const sp_batch_rows *rows, void *row, void *const *outputs)
{
    for (uint32_t i = 0; i < rows->output_count; i++) {
        const uint32_t at = rows->input_count + i;
        if (!rows->ports[at].is_by_rows || outputs[i] == NULL) continue;
        memcpy(outputs[i], sp__batch_rows_at(rows, row, at),
               sp__batch_port_row_bytes(&rows->ports[at]));
    }
}
