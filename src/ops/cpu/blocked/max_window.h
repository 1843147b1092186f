/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over a window of blocks of channels; as max_pool_f32, a NaN in the window is the result,
 * and of equals the first. The lanes of a vector are channels. */
#ifndef SP_OPS_CPU_BLOCKED_MAX_WINDOW_H
#define SP_OPS_CPU_BLOCKED_MAX_WINDOW_H

#include "ops/cpu/blocked/patch.h"

typedef struct sp_max_window {
    int64_t taps;
    int64_t step;           /* floats between the inputs of two neighbouring outputs */
    const int64_t *offsets; /* of the taps */
} sp_max_window;

/* Vectors that are computed together, so that one does not wait for itself at each tap. */
enum { SP_MAX_TOGETHER = 4 };

/* Vectors [first, first + count) of the outputs; `count` is a constant after inlining. */
static SP_ALWAYS_INLINE void sp_max_vectors(const int64_t count, const sp_max_window *w,
                                            const float *x, int64_t first, float *y)
{
    sp_vector best[SP_MAX_TOGETHER], sum[SP_MAX_TOGETHER];
    const float *in[SP_MAX_TOGETHER];
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = first + i;
        best[i] = sp_vector_splat(-__builtin_inff());
        sum[i] = sp_vector_splat(0);
        in[i] = x + at / SP_BLOCK_VECTORS * w->step + at % SP_BLOCK_VECTORS * SP_VECTOR;
    }
    for (int64_t t = 0; t < w->taps; t++) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < count; i++) {
            const sp_vector v = sp_vector_load(in[i] + w->offsets[t]);
            best[i] = sp_vector_larger(v, best[i]);
            sum[i] = sp_vector_select(sp_vector_unordered(v, v), v, sum[i]); /* a NaN stays */
        }
    }
#pragma GCC unroll 4
    for (int64_t i = 0; i < count; i++) {
        const sp_vector_mask is_nan = sp_vector_unordered(sum[i], sum[i]);
        const sp_vector largest = sp_vector_select(is_nan, sum[i], best[i]);
        sp_vector_store(y + (first + i) * SP_VECTOR, sp_vector_canonical(largest));
    }
}

/* A row of outputs. */
static inline void sp_max_row(const sp_max_window *w, const float *x, float *y, int64_t columns)
{
    const int64_t count = columns * SP_BLOCK_VECTORS;
    int64_t i = 0;
    for (; i + SP_MAX_TOGETHER <= count; i += SP_MAX_TOGETHER) {
        sp_max_vectors(SP_MAX_TOGETHER, w, x, i, y);
    }
    for (; i < count; i++) sp_max_vectors(1, w, x, i, y);
}

#endif
