/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of matrices, split at a diagonal. */
#include "ops/cpu/arch/isa.h"

static int64_t clamp_column(int64_t column, int64_t columns)
{
    return column < 0 ? 0 : column < columns ? column : columns;
}

sp_status SP_KERNEL(trilu)(const sp_tile *tile)
{
    const sp_diagonal_constants *k = tile->constants;
    const int64_t bytes = k->element_bytes, row_bytes = k->columns * bytes;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = first; row < end; row++) {
        const char *x = (const char *)tile->bindings[0] + row * row_bytes;
        char *y = (char *)tile->bindings[1] + row * row_bytes;
        /* The columns that are kept. */
        const int64_t edge = row % k->matrix_rows + k->diagonal;
        const int64_t begin = k->is_upper ? clamp_column(edge, k->columns) * bytes : 0;
        const int64_t stop = k->is_upper ? row_bytes : clamp_column(edge + 1, k->columns) * bytes;
        memset(y, 0, (size_t)begin);
        memcpy(y + begin, x + begin, (size_t)(stop - begin));
        memset(y + stop, 0, (size_t)(row_bytes - stop));
    }
    return SP_OK;
}

sp_status SP_KERNEL(eye)(const sp_tile *tile)
{
    const sp_diagonal_constants *k = tile->constants;
    const int64_t bytes = k->element_bytes, row_bytes = k->columns * bytes;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->rows);
    for (int64_t row = first; row < end; row++) {
        char *y = (char *)tile->bindings[0] + row * row_bytes;
        const int64_t at = row % k->matrix_rows + k->diagonal;
        memset(y, 0, (size_t)row_bytes);
        if (at >= 0 && at < k->columns) memcpy(y + at * bytes, &k->one, (size_t)bytes);
    }
    return SP_OK;
}
