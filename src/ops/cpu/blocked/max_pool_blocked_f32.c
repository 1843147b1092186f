/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of images in blocks of channels; as max_pool_f32, a NaN in the window is the
 * result, and of equals the first. The lanes of a vector are channels. */
#include "ops/cpu/blocked/patch.h"

typedef struct pool {
    const sp_conv_constants *k;
    sp_patch patch;
    int64_t taps;
    int64_t offsets[SP_CONV_MAX_SEGMENT];
} pool;

/* Vectors that are computed together, so that one does not wait for itself at each tap. */
enum { TOGETHER = 4 };

/* `count` is a constant after inlining. */
static SP_ALWAYS_INLINE void run_vectors(const int64_t count, const pool *p, const float *x,
                                         float *y)
{
    sp_vector best[TOGETHER], sum[TOGETHER];
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++) {
        best[i] = sp_vector_splat(-__builtin_inff());
        sum[i] = sp_vector_splat(0);
    }
    for (int64_t t = 0; t < p->taps; t++) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < count; i++) {
            const sp_vector v = sp_vector_load(x + i * SP_VECTOR + p->offsets[t]);
            best[i] = sp_vector_larger(v, best[i]);
            sum[i] = sp_vector_select(sp_vector_unordered(v, v), v, sum[i]); /* a NaN stays */
        }
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++) {
        const sp_vector_mask is_nan = sp_vector_unordered(sum[i], sum[i]);
        const sp_vector largest = sp_vector_select(is_nan, sum[i], best[i]);
        sp_vector_store(y + i * SP_VECTOR, sp_vector_canonical(largest));
    }
}

static void run_row(const pool *p, const float *x, float *y, int64_t columns)
{
    const int64_t count = columns * SP_BLOCK_VECTORS;
    int64_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER) {
        run_vectors(TOGETHER, p, x + i * SP_VECTOR, y + i * SP_VECTOR);
    }
    for (; i < count; i++) run_vectors(1, p, x + i * SP_VECTOR, y + i * SP_VECTOR);
}

sp_status SP_KERNEL(max_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t blocks = (k->groups + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t plane = tile->index[2] * blocks + tile->index[1];
    const float *x = (const float *)tile->bindings[0] + plane * k->in_h * k->in_w * SP_BLOCK;
    float *y = (float *)tile->bindings[1] + plane * k->out_h * k->out_w * SP_BLOCK;
    pool p = {.k = k, .taps = k->kernel_h * k->kernel_w};
    sp_patch_choose(&p.patch, k, SP_BLOCK, 1, b->tile_rows, k->out_w);
    sp_patch_taps(&p.patch, p.offsets);
    float patch[SP_PATCH_ELEMENTS];
    const int64_t first = tile->index[0] * b->tile_rows;
    const int64_t last = sp_patch_least(first + b->tile_rows, k->out_h);
    for (int64_t row = first; row < last; row += p.patch.rows) {
        const int64_t rows = sp_patch_least(p.patch.rows, last - row);
        for (int64_t column = 0; column < k->out_w; column += p.patch.columns) {
            const int64_t columns = sp_patch_least(p.patch.columns, k->out_w - column);
            sp_patch_copy(&p.patch, true, x, 1, row, rows, column, -__builtin_inff(), patch);
            for (int64_t r = 0; r < rows; r++) {
                run_row(&p, patch + r * p.patch.out_row,
                        y + ((row + r) * k->out_w + column) * SP_BLOCK, columns);
            }
        }
    }
    return SP_OK;
}
