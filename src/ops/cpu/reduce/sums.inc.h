/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over all elements of a row, or of adjacent columns; the element is that of the step.
 * Included by other templates. */
#include "ops/cpu/reduce/blocks.inc.h"

/* More than one block. */
static __attribute__((unused)) SP_NOINLINE SP_WIDE SP_OF(sum_long_row)(SP_OF(row_step) row,
                                                                       const SP_ELEMENT *x,
                                                                       int64_t n, SP_WIDE shift)
{
    SP_WIDE lanes[SP_LEVEL_LANES];
    SP_LEVELS levels;
    SP_WIDE_OF(sp_levels_begin)(&levels, lanes, 1, false);
    SP_OF(row_blocks)(&levels, row, 0, x, n, shift);
    return *SP_WIDE_OF(sp_levels_end)(&levels);
}

static SP_ALWAYS_INLINE SP_WIDE SP_OF(sum_row)(SP_OF(row_step) row, const SP_ELEMENT *x, int64_t n,
                                               SP_WIDE shift)
{
    if (n > SP_REDUCTION_BLOCK) return SP_OF(sum_long_row)(row, x, n, shift);
    SP_WIDE lanes[SP_LANES] = {0};
    row(lanes, 0, x, n, shift);
    SP_WIDE_OF(sp_lanes_sum)(lanes, 1, n);
    return lanes[0];
}

/* More than one block. */
static __attribute__((unused)) SP_NOINLINE void
SP_OF(sum_long_columns)(SP_WIDE *sums, SP_OF(columns_step) columns, const SP_ELEMENT *x,
                        int64_t stride, int64_t n, int64_t width, const SP_WIDE *shift)
{
    SP_WIDE lanes[SP_LEVEL_LANES * SP_LANE_COLUMNS];
    SP_LEVELS levels;
    SP_WIDE_OF(sp_levels_begin)(&levels, lanes, SP_LANE_COLUMNS, false);
    SP_OF(columns_blocks)(&levels, columns, 0, x, stride, n, width, shift);
    memcpy(sums, SP_WIDE_OF(sp_levels_end)(&levels), SP_LANE_COLUMNS * sizeof(*sums));
}

/* Afterwards lanes[c] is the sum of column c, for all columns that could be computed together. */
static SP_ALWAYS_INLINE void SP_OF(sum_columns)(SP_WIDE *lanes, SP_OF(columns_step) columns,
                                                const SP_ELEMENT *x, int64_t stride, int64_t n,
                                                int64_t width, const SP_WIDE *shift)
{
    if (n > SP_REDUCTION_BLOCK) {
        SP_OF(sum_long_columns)(lanes, columns, x, stride, n, width, shift);
        return;
    }
    memset(lanes, 0, sizeof(*lanes) * SP_LANES * SP_LANE_COLUMNS);
    columns(lanes, 0, x, stride, n, width, shift);
    SP_WIDE_OF(sp_lanes_sum)(lanes, SP_LANE_COLUMNS, n);
}
