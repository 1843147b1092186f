/* SPDX-License-Identifier: Apache-2.0 */
/* The product of one-hot rows with a matrix. In the chain of gemm_block.h all factors but one are
 * 0, so the sum is the row of the matrix at the index, with -0 as +0; in a column that has an
 * infinity or a NaN, whatever meets it with 0 is a NaN. */
#include <math.h>

#include "base/macros.h"
#include "ops/cpu/arch/float_functions.h"
#include "ops/cpu/gemm/activate.h"

/* The sum is canonical, so it needs to be made so only after an addition. */
static void add_row(float *y, const float *sum, const float *c, int64_t count)
{
    SP_INDEPENDENT for (int64_t i = 0; i < count; i++) y[i] = sp_canonical(sum[i] + c[i]);
}

static int64_t index_at(const void *indices, bool is_wide, int64_t row)
{
    return is_wide ? ((const int64_t *)indices)[row] : ((const int32_t *)indices)[row];
}

sp_status SP_KERNEL(look_up_f32)(const sp_tile *tile)
{
    const sp_look_up_constants *k = tile->constants;
    const int64_t n = k->columns;
    const float *table = tile->bindings[1];
    const float *c = k->has_c ? tile->bindings[2] : NULL;
    float *y = tile->bindings[k->has_c ? 3 : 2];
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t last = sp_tile_end(tile, 0, k->rows);
    const int64_t other = SP_PLANTED(look_up_clamps) ? k->depth - 1 : k->depth;
    for (int64_t row = first; row < last; row++) {
        const int64_t index = index_at(tile->bindings[0], k->is_wide, row);
        const float *sum = table + (index >= 0 && index < k->depth ? index : other) * n;
        if (c != NULL) add_row(y + row * n, sum, c + row * k->c_row, n);
        else memcpy(y + row * n, sum, (size_t)n * sizeof *y);
    }
    sp_activate(k->activation, y + first * n, 1, 0, (last - first) * n);
    return SP_OK;
}

/* One column of the table: `b` has `depth` elements, `stride` apart. */
static void pack_column(const float *b, int64_t depth, int64_t stride, float *table,
                        int64_t columns)
{
    int64_t special = 0;
    for (int64_t d = 0; d < depth; d++) special += !isfinite(b[d * stride]);
    for (int64_t d = 0; d < depth; d++) {
        const float value = b[d * stride];
        const bool meets_zero = special > (isfinite(value) ? 0 : 1);
        table[d * columns] = sp_canonical(meets_zero ? NAN : value + 0.0f);
    }
    table[depth * columns] = sp_canonical(special > 0 ? NAN : 0.0f);
}

sp_status SP_KERNEL(look_up_pack_f32)(const sp_tile *tile)
{
    const sp_pack_constants *k = tile->constants;
    const float *b = tile->bindings[0];
    float *table = tile->bindings[1];
    for (int64_t c = 0; c < k->columns; c++) {
        pack_column(b + c * k->column_stride, k->depth, k->depth_stride, table + c, k->columns);
    }
    return SP_OK;
}
