/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax of one row of adjacent floats, of one block of lanes.h, in vectors: the lanes of the sum
 * stay in registers. The bits are those of row_softmax_f32 (softmax.inc.h). */
#ifndef SP_OPS_CPU_REDUCE_SOFTMAX_ROW_F32_H
#define SP_OPS_CPU_REDUCE_SOFTMAX_ROW_F32_H

#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/reduce/lane_vectors.h"

enum { SP_TWO_VECTORS = 2 * SP_VECTOR };

/* p * 2^n, rounded once, for p from 1/2 to 2 and integers n from -151 to 128. `shifted` is n +
 * 12582912. */
static SP_ALWAYS_INLINE sp_vector sp_vector_times_power(sp_vector p, sp_vector n, sp_vector shifted)
{
#if defined(__AVX512F__)
    (void)shifted;
    return (sp_vector)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
    (void)n;
    const sp_vector_bits exponent = (sp_vector_bits)shifted - 0x4b400000, half = exponent >> 1;
    return p * (sp_vector)((half + 127) << 23) * (sp_vector)((exponent - half + 127) << 23);
#endif
}

/* sp_expf of elements that are at most 0 or NaN, with the same steps. */
static SP_ALWAYS_INLINE sp_vector sp_vector_exp(sp_vector x)
{
    const sp_vector shift = sp_vector_splat(12582912.0f);
    /* False for a NaN, which stays. */
    const sp_vector clamped = sp_vector_larger(sp_vector_splat(-104.0f), x);
    const sp_vector rounded = sp_vector_fma(clamped, sp_vector_splat(1.44269504f), shift);
    const sp_vector n = rounded - shift;
    sp_vector r = sp_vector_fma(n, sp_vector_splat(-0.693359375f), clamped);
    r = sp_vector_fma(n, sp_vector_splat(2.12194440e-4f), r);
    sp_vector p = sp_vector_splat(1.9875691500e-4f);
    p = sp_vector_fma(p, r, sp_vector_splat(1.3981999507e-3f));
    p = sp_vector_fma(p, r, sp_vector_splat(8.3334519073e-3f));
    p = sp_vector_fma(p, r, sp_vector_splat(4.1665795894e-2f));
    p = sp_vector_fma(p, r, sp_vector_splat(1.6666665459e-1f));
    p = sp_vector_fma(p, r, sp_vector_splat(5.0000001201e-1f));
    p = sp_vector_fma(p, r * r, r) + 1.0f;
    return sp_vector_times_power(p, n, rounded);
}

/* The largest element, NaNs left out; a zero of either sign. */
static SP_ALWAYS_INLINE float sp_row_largest(const float *x, int64_t n)
{
    const sp_vector least = sp_vector_splat(-__builtin_inff());
    sp_vector a = least, b = least;
    int64_t i = 0;
    for (; i + SP_TWO_VECTORS <= n; i += SP_TWO_VECTORS) {
        a = sp_vector_larger(sp_vector_load(x + i), a);
        b = sp_vector_larger(sp_vector_load(x + i + SP_VECTOR), b);
    }
    for (; i < n; i += SP_VECTOR) {
        a = sp_vector_larger(sp_vector_load_part(x + i, sp_vector_range(0, n - i), least), a);
    }
    return sp_vector_largest(sp_vector_larger(a, b));
}

/* The exponentials of SP_LANES elements, of which those from `count` on are left out, go to y and
 * join the lanes. */
static SP_ALWAYS_INLINE void sp_softmax_lanes(sp_vector lanes[SP_LANE_VECTORS], const float *x,
                                              float *y, int64_t count, sp_vector most)
{
#pragma GCC unroll 4
    for (int64_t v = 0; v < SP_LANE_VECTORS; v++) {
        const sp_vector_part part = sp_vector_range(0, count - v * SP_VECTOR);
        const sp_vector from = sp_vector_load_part(x + v * SP_VECTOR, part, most);
        const sp_vector e = sp_vector_canonical(sp_vector_exp(from - most));
        sp_vector_store_part(y + v * SP_VECTOR, part, e);
        lanes[v] += sp_vector_select(sp_vector_mask_of(part), e, sp_vector_splat(0));
    }
}

/* A NaN, left out of the largest element, is in the sum, so that each quotient is one. */
static SP_ALWAYS_INLINE void sp_softmax_row_f32(const float *x, float *y, int64_t n)
{
    const sp_vector most = sp_vector_splat(sp_row_largest(x, n));
    sp_vector lanes[SP_LANE_VECTORS] = {0};
    int64_t i = 0;
    for (; i + SP_LANES <= n; i += SP_LANES) sp_softmax_lanes(lanes, x + i, y + i, SP_LANES, most);
    if (i < n) sp_softmax_lanes(lanes, x + i, y + i, n - i, most);
    const sp_vector sum = sp_vector_splat(sp_lane_vectors_sum(lanes));
    for (i = 0; i + SP_VECTOR <= n; i += SP_VECTOR) {
        sp_vector_store(y + i, sp_vector_canonical(sp_vector_load(y + i) / sum));
    }
    if (i == n) return;
    const sp_vector_part part = sp_vector_range(0, n - i);
    const sp_vector rest = sp_vector_load_part(y + i, part, sum);
    sp_vector_store_part(y + i, part, sp_vector_canonical(rest / sum));
}

#endif
