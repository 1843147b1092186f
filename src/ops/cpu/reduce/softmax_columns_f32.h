/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of adjacent columns of floats, of one block of lanes.h: each element of a vector is of
 * another column, so nothing is reduced across a vector. The bits are those of softmax_row_f32.h,
 * but that a NaN is any NaN. */
#ifndef SP_OPS_CPU_REDUCE_SOFTMAX_COLUMNS_F32_H
#define SP_OPS_CPU_REDUCE_SOFTMAX_COLUMNS_F32_H

#include "ops/cpu/reduce/quotient.h"
#include "ops/cpu/reduce/softmax_row_f32.h"

enum { SP_COLUMN_VECTORS = 4 }; /* computed side by side */

/* The sum of e = exp(x - most) of each column, by the lanes and the tree of lanes.h; e goes to x.
 * True if quotient.h can divide by the sums. */
static SP_ALWAYS_INLINE bool sp_softmax_columns_exp(const int64_t vectors, float *x, int64_t stride,
                                                    int64_t n, const sp_vector *most,
                                                    sp_vector *sum)
{
    sp_vector lanes[SP_LANES][SP_COLUMN_VECTORS];
    sp_vector_unsigned least = (sp_vector_unsigned){0} - 1;
    memset(lanes, 0, sizeof(lanes));
    for (int64_t i = 0; i < n; i++) {
        sp_vector *lane = lanes[i % SP_LANES];
#pragma GCC unroll 4
        for (int64_t v = 0; v < vectors; v++) {
            float *at = x + i * stride + v * SP_VECTOR;
            const sp_vector e = sp_vector_exp(sp_vector_load(at) - most[v]);
            sp_vector_store(at, e);
            lane[v] += e;
            if (SP_HAS_HARDWARE_FMA) least = sp_least_join(least, e);
        }
    }
    for (int64_t step = SP_LANES / 2; step > 0; step /= 2) {
        for (int64_t l = 0; l < step; l++) {
            for (int64_t v = 0; v < vectors; v++) lanes[l][v] += lanes[l + step][v];
        }
    }
    for (int64_t v = 0; v < vectors; v++) sum[v] = lanes[0][v];
    return sp_least_divides(least);
}

static SP_ALWAYS_INLINE void sp_softmax_columns_divide(const int64_t vectors, const bool is_fast,
                                                       float *x, int64_t stride, int64_t n,
                                                       const sp_vector *sum)
{
    sp_divisor by[SP_COLUMN_VECTORS];
    for (int64_t v = 0; v < vectors; v++) by[v] = sp_divisor_of(sum[v]);
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < vectors; v++) {
            float *at = x + i * stride + v * SP_VECTOR;
            const sp_vector e = sp_vector_load(at);
            sp_vector_store(at, is_fast ? sp_divide(&by[v], e) : e / sum[v]);
        }
    }
}

/* `vectors` is a constant after inlining. */
static SP_ALWAYS_INLINE void sp_softmax_vectors_f32(const int64_t vectors, float *x, int64_t stride,
                                                    int64_t n)
{
    sp_vector most[SP_COLUMN_VECTORS], sum[SP_COLUMN_VECTORS];
    for (int64_t v = 0; v < vectors; v++) most[v] = sp_vector_splat(-__builtin_inff());
    for (int64_t i = 0; i < n; i++) {
#pragma GCC unroll 4
        for (int64_t v = 0; v < vectors; v++) {
            most[v] = sp_vector_larger(sp_vector_load(x + i * stride + v * SP_VECTOR), most[v]);
        }
    }
    if (sp_softmax_columns_exp(vectors, x, stride, n, most, sum)) {
        sp_softmax_columns_divide(vectors, true, x, stride, n, sum);
    } else {
        sp_softmax_columns_divide(vectors, false, x, stride, n, sum);
    }
}

/* Element i of column c is x[i * stride + c], for n elements of `columns` columns, a multiple of
 * 16. */
static inline void sp_softmax_columns_f32(float *x, int64_t stride, int64_t columns, int64_t n)
{
    const int64_t group = (int64_t)SP_COLUMN_VECTORS * SP_VECTOR;
    int64_t c = 0;
    for (; c + group <= columns; c += group) {
        sp_softmax_vectors_f32(SP_COLUMN_VECTORS, x + c, stride, n);
    }
    for (; c < columns; c += SP_VECTOR) sp_softmax_vectors_f32(1, x + c, stride, n);
}

#endif
