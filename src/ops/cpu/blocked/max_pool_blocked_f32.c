/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of images in blocks of channels; as max_pool_f32, a NaN in the window is the
 * result, and of equals the first. The lanes of a vector are channels. */
#include "ops/cpu/blocked/patch.h"

typedef struct pool {
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

static void run_row(const void *kernel, const float *x, float *y, sp_patch_row outputs)
{
    const pool *p = kernel;
    const int64_t count = outputs.columns * SP_BLOCK_VECTORS;
    int64_t i = 0;
    for (; i + TOGETHER <= count; i += TOGETHER) {
        run_vectors(TOGETHER, p, x + i * SP_VECTOR, y + i * SP_VECTOR);
    }
    for (; i < count; i++) run_vectors(1, p, x + i * SP_VECTOR, y + i * SP_VECTOR);
}

sp_status SP_KERNEL(max_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    pool p = {.taps = b->of.kernel_h * b->of.kernel_w};
    sp_patch patch;
    sp_patch_begin(&patch, tile, p.offsets);
    sp_patch_run(&patch, tile, tile->bindings[0], tile->bindings[1], -__builtin_inff(), &p,
                 run_row);
    return SP_OK;
}
