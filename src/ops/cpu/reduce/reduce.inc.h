/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of one type. Rows: one output at a time. Columns: several outputs along the last kept
 * dimension at a time. Included by other templates; parameter SP_STEPS, the steps of each
 * reduction. */
#include "ops/cpu/reduce/blocks.inc.h"

typedef struct SP_OF(steps) {
    SP_WIDE start;
    SP_OF(row_step) row;
    SP_OF(columns_step) columns;
    void (*tree)(SP_WIDE *lanes, int64_t width, int64_t extent);
} SP_OF(steps);
static const SP_OF(steps) SP_OF(table)[] = {SP_STEPS};

/* One output of more than one block, before its last step. */
static SP_NOINLINE SP_WIDE SP_OF(reduce_long_row)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                                                  SP_WIDE shift)
{
    const int64_t n = k->dims[k->reduced_rank - 1];
    SP_WIDE lanes[SP_LEVEL_LANES];
    SP_LEVELS levels;
    SP_WIDE_OF(sp_levels_begin)(&levels, lanes, 1, k->reduction == SP_REDUCE_PROD);
    sp_walk rows;
    sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
    for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
        SP_OF(row_blocks)(&levels, SP_OF(table)[k->reduction].row, i, x + rows.a, n, shift);
    }
    return *SP_WIDE_OF(sp_levels_end)(&levels);
}

/* One output of at most one block, or of a reduction in any order. */
static SP_ALWAYS_INLINE SP_WIDE SP_OF(reduce_short_row)(const sp_reduce_constants *k,
                                                        const SP_ELEMENT *x, SP_WIDE shift)
{
    const SP_OF(steps) *steps = &SP_OF(table)[k->reduction];
    const int64_t n = k->dims[k->reduced_rank - 1];
    SP_WIDE lanes[SP_LANES];
    for (int64_t l = 0; l < SP_LANES; l++) lanes[l] = steps->start;
    sp_walk rows;
    sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
    for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
        steps->row(lanes, i % SP_LANES, x + rows.a, n, shift);
    }
    steps->tree(lanes, 1, k->extent);
    return lanes[0];
}

/* Whether the elements are cut into blocks. */
static bool SP_OF(is_cut)(const sp_reduce_constants *k)
{
    return k->extent > SP_REDUCTION_BLOCK && SP_WIDE_OF(depends_on_order)(k);
}

static void SP_OF(reduce_rows)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                               const SP_ELEMENT *shifts, SP_ELEMENT *y, int64_t first, int64_t last)
{
    const bool is_cut = SP_OF(is_cut)(k);
    sp_walk kept;
    sp_walk_init(&kept, k->kept_rank + 1, k->kept_dims, k->kept_strides, k->kept_strides, first);
    for (int64_t at = first; at < last; at++, sp_walk_next(&kept)) {
        const SP_WIDE shift = shifts ? SP_LOAD(shifts[at]) : 0;
        const SP_WIDE result = is_cut ? SP_OF(reduce_long_row)(k, x + kept.a, shift)
                                      : SP_OF(reduce_short_row)(k, x + kept.a, shift);
        y[at] = SP_STORE(SP_WIDE_OF(finish)(k, result, shift));
    }
}

/* `width` outputs of more than one block, before their last step. */
static SP_NOINLINE void SP_OF(reduce_long_columns)(const sp_reduce_constants *k,
                                                   const SP_ELEMENT *x, const SP_WIDE *shift,
                                                   SP_WIDE *results, int64_t width)
{
    const int64_t n = k->dims[k->reduced_rank - 1], stride = k->strides[k->reduced_rank - 1];
    SP_WIDE lanes[SP_LEVEL_LANES * COLUMNS];
    SP_LEVELS levels;
    SP_WIDE_OF(sp_levels_begin)(&levels, lanes, COLUMNS, k->reduction == SP_REDUCE_PROD);
    sp_walk rows;
    sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
    for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
        SP_OF(columns_blocks)(&levels, SP_OF(table)[k->reduction].columns, i, x + rows.a, stride, n,
                              width, shift);
    }
    memcpy(results, SP_WIDE_OF(sp_levels_end)(&levels), (size_t)width * sizeof(*results));
}

/* `width` outputs of at most one block, or of a reduction in any order. */
static void SP_OF(reduce_short_columns)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                                        const SP_WIDE *shift, SP_WIDE *lanes, int64_t width)
{
    const SP_OF(steps) *steps = &SP_OF(table)[k->reduction];
    const int64_t n = k->dims[k->reduced_rank - 1], stride = k->strides[k->reduced_rank - 1];
    const int64_t used = k->extent < SP_LANES ? k->extent : SP_LANES;
    for (int64_t l = 0; l < used * COLUMNS || l < COLUMNS; l++) lanes[l] = steps->start;
    sp_walk rows;
    sp_walk_init(&rows, k->reduced_rank, k->dims, k->strides, k->strides, 0);
    for (int64_t i = 0; i < k->extent; i += n, sp_walk_next(&rows)) {
        steps->columns(lanes, i % SP_LANES, x + rows.a, stride, n, width, shift);
    }
    steps->tree(lanes, COLUMNS, k->extent);
}

static void SP_OF(reduce_columns)(const sp_reduce_constants *k, const SP_ELEMENT *x,
                                  const SP_ELEMENT *shifts, SP_ELEMENT *y, int64_t width)
{
    SP_WIDE shift[COLUMNS] = {0}, lanes[SP_LANES * COLUMNS];
    for (int64_t c = 0; shifts && c < width; c++) shift[c] = SP_LOAD(shifts[c]);
    if (SP_OF(is_cut)(k)) SP_OF(reduce_long_columns)(k, x, shift, lanes, width);
    else SP_OF(reduce_short_columns)(k, x, shift, lanes, width);
    for (int64_t c = 0; c < width; c++) {
        y[c] = SP_STORE(SP_WIDE_OF(finish)(k, lanes[c], shift[c]));
    }
}

sp_status SP_KERNEL(SP_OF(reduce))(const sp_tile *tile)
{
    const sp_reduce_constants *k = tile->constants;
    const SP_ELEMENT *x = tile->bindings[0];
    const SP_ELEMENT *shifts = k->has_shift ? tile->bindings[1] : NULL;
    SP_ELEMENT *y = tile->bindings[k->has_shift ? 2 : 1];
    int64_t at = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->count);
    if (at >= end) return SP_OK;
    if (!k->is_columns) {
        SP_OF(reduce_rows)(k, x, shifts, y, at, end);
        return SP_OK;
    }
    const int64_t columns = k->kept_dims[k->kept_rank - 1];
    sp_walk kept;
    sp_walk_init(&kept, k->kept_rank, k->kept_dims, k->kept_strides, k->kept_strides, at / columns);
    for (int64_t column = at % columns; at < end;) {
        int64_t width = columns - column < COLUMNS ? columns - column : COLUMNS;
        if (end - at < width) width = end - at;
        SP_OF(reduce_columns)(k, x + kept.a + column, shifts ? shifts + at : NULL, y + at, width);
        at += width;
        column += width;
        if (column < columns) continue;
        column = 0;
        sp_walk_next(&kept);
    }
    return SP_OK;
}

#undef SP_STEPS
