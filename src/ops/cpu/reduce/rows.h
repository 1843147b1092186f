/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a tile of sp_axis_constants: `extent` elements each, with stride `inner`. Rows that
 * start at consecutive elements are processed together, up to SP_LANE_COLUMNS of them. */
#ifndef SP_OPS_CPU_REDUCE_ROWS_H
#define SP_OPS_CPU_REDUCE_ROWS_H

#include "ops/cpu/reduce/lanes.h"

/* Runs the statement `run` for each block of `width` rows of the tile; `at` is the number of the
 * first row, `first` the index of its first element. A macro, since compilers do not find the range
 * of `width` with a struct as iterator. */
#define SP_FOR_ROWS(k, tile, run)                                                                  \
    do {                                                                                           \
        int64_t at = sp_tile_first(tile, 0);                                                       \
        const int64_t end = sp_tile_end(tile, 0, (k)->rows);                                       \
        while (at < end) {                                                                         \
            const int64_t column = at % (k)->inner, left = (k)->inner - column;                    \
            const int64_t first = at / (k)->inner * (k)->extent * (k)->inner + column;             \
            int64_t width = left < SP_LANE_COLUMNS ? left : SP_LANE_COLUMNS;                       \
            if (end - at < width) width = end - at;                                                \
            run;                                                                                   \
            at += width;                                                                           \
        }                                                                                          \
    } while (0)

#endif
