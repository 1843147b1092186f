/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a float, without libm: polynomials in sp_fmaf and exact scaling, so the bits are the
 * same in every build. No branches, so loops over them vectorise. Accuracy is stated at each
 * function and tested against double precision over all floats. */
#ifndef SP_OPS_CPU_ARCH_MATH_F32_H
#define SP_OPS_CPU_ARCH_MATH_F32_H

#include "ops/cpu/arch/isa.h"

#define SP_INFINITY_F32 sp_float_from_bits(0x7f800000u)

static SP_ALWAYS_INLINE float sp_absf(float x)
{
    return sp_float_from_bits(sp_float_bits(x) & 0x7fffffffu);
}

/* The magnitude of `size` with the sign of `sign`. */
static SP_ALWAYS_INLINE float sp_copysignf(float size, float sign)
{
    return sp_float_from_bits((sp_float_bits(size) & 0x7fffffffu) |
                              (sp_float_bits(sign) & 0x80000000u));
}

/* Positive numbers unchanged, all others +0, -0 too. */
static SP_ALWAYS_INLINE float sp_reluf(float x)
{
    return x <= 0 ? 0.0f : x;
}

/* 2^n, n in [-126, 127]. */
static SP_ALWAYS_INLINE float sp_exponent(int32_t n)
{
    return sp_float_from_bits((uint32_t)(n + 127) << 23);
}

/* e^r - 1, where x is *exponent * ln 2 + r and |r| is at most about ln 2 / 2; x in [-104, 89]. */
static SP_ALWAYS_INLINE float sp_reduced_expm1f(float x, int32_t *exponent)
{
    /* n = round(x / ln 2): adding 1.5 * 2^23 rounds to an integer in the low bits. */
    const float shift = 12582912.0f;
    const float rounded = sp_fmaf(x, 1.44269504f, shift);
    const float n = rounded - shift;
    *exponent = (int32_t)(sp_float_bits(rounded) - 0x4b400000u);
    /* ln 2 in two parts. */
    float r = sp_fmaf(n, -0.693359375f, x);
    r = sp_fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = sp_fmaf(p, r, 1.3981999507e-3f);
    p = sp_fmaf(p, r, 8.3334519073e-3f);
    p = sp_fmaf(p, r, 4.1665795894e-2f);
    p = sp_fmaf(p, r, 1.6666665459e-1f);
    p = sp_fmaf(p, r, 5.0000001201e-1f);
    return sp_fmaf(p, r * r, r);
}

/* Within 1.1 ulp, over the whole range and down to subnormals; +-inf and NaN as in C. */
static SP_ALWAYS_INLINE float sp_expf(float x)
{
    /* Above and below these the result is inf and 0. NaN passes through both. */
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    int32_t exponent;
    const float p = sp_reduced_expm1f(clamped, &exponent) + 1.0f;
    /* In two factors: 2^n itself may be outside the range of normal numbers. Only the second
     * multiplication rounds, and only if the result is subnormal. */
    const int32_t half = exponent >> 1;
    return p * sp_exponent(half) * sp_exponent(exponent - half);
}

/* 1 / (1 + exp(-x)), within 2.5 ulp; subnormal results too. */
static SP_ALWAYS_INLINE float sp_sigmoidf(float x)
{
    /* exp of a number that is not positive cannot overflow. */
    const float e = sp_expf(x < 0 ? x : -x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* x * sigmoid(x), with the NaN that sigmoid_f32 would have stored between the two. */
static SP_ALWAYS_INLINE float sp_siluf(float x)
{
    return x * sp_canonical(sp_sigmoidf(x));
}

/* Within 1.5 ulp. */
static SP_ALWAYS_INLINE float sp_tanhf(float x)
{
    const uint32_t sign = sp_float_bits(x) & 0x80000000u;
    const float size = sp_float_from_bits(sp_float_bits(x) ^ sign);
    const float square = x * x;
    float p = -5.70498872745e-3f;
    p = sp_fmaf(p, square, 2.06390887954e-2f);
    p = sp_fmaf(p, square, -5.37397155531e-2f);
    p = sp_fmaf(p, square, 1.33314422036e-1f);
    p = sp_fmaf(p, square, -3.33332819422e-1f);
    const float small = sp_fmaf(p * square, size, size);
    const float large = 1.0f - 2.0f / (sp_expf(2.0f * size) + 1.0f);
    const float result = size < 0.625f ? small : large; /* NaN: large, which is NaN */
    return sp_float_from_bits(sp_float_bits(result) | sign);
}

/* e^x - 1, within 2 ulp: 1 is subtracted before the scaling, without cancellation. */
static SP_ALWAYS_INLINE float sp_expm1f(float x)
{
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -25.0f ? -25.0f : clamped;
    int32_t exponent;
    const float q = sp_reduced_expm1f(clamped, &exponent);
    const float half = sp_exponent(exponent - 1);
    return 2.0f * sp_fmaf(q, half, half - 0.5f);
}

/* Natural logarithm, within 1 ulp; subnormals too. log x = e * ln 2 + log(1 + f) with 1 + f in
 * [2/3, 4/3), log(1 + f) = f + f^2 * P(f); P is the Chebyshev fit of degree 8. */
static SP_ALWAYS_INLINE float sp_logf(float x)
{
    const float tiny = sp_float_from_bits(0x00800000u);
    const float scaled = x < tiny ? x * 8388608.0f : x;
    const int32_t above = (int32_t)(sp_float_bits(scaled) - 0x3f2aaaabu);
    const int32_t e = above >> 23;
    const float f = sp_float_from_bits(sp_float_bits(scaled) - ((uint32_t)e << 23)) - 1.0f;
    const float exponent = (float)(x < tiny ? e - 23 : e);
    float p = -1.242220178e-01f;
    p = sp_fmaf(p, f, 1.374831051e-01f);
    p = sp_fmaf(p, f, -1.228872165e-01f);
    p = sp_fmaf(p, f, 1.405581236e-01f);
    p = sp_fmaf(p, f, -1.667331606e-01f);
    p = sp_fmaf(p, f, 2.000723332e-01f);
    p = sp_fmaf(p, f, -2.499994487e-01f);
    p = sp_fmaf(p, f, 3.333327174e-01f);
    p = sp_fmaf(p, f, -0.5f);
    float result = sp_fmaf(p, f * f, f);
    result = sp_fmaf(exponent, 0.693147182f, result);
    result = x < SP_INFINITY_F32 ? result : x;                            /* inf, NaN */
    result = x > 0 ? result : x == 0 ? -SP_INFINITY_F32 : (x - x) / 0.0f; /* NaN */
    return result;
}

/* log(1 + x) for x in [0, 1], within 1.5 ulp: the rounding error of 1 + x is corrected to first
 * order (W. Kahan; HP-15C Advanced Functions Handbook, 1982). */
static SP_ALWAYS_INLINE float sp_log1pf_unit(float x)
{
    const float sum = 1.0f + x;
    return sp_logf(sum) + (x - (sum - 1.0f)) / sum;
}

/* e^-|x|, and log(1 + e^x) from that and x. */
static SP_ALWAYS_INLINE float sp_softplus_expf(float x)
{
    return sp_expf(-sp_absf(x));
}

static SP_ALWAYS_INLINE float sp_softplus_logf(float x, float e)
{
    const float above = x > 0 ? x : 0.0f;
    const float result = above + sp_log1pf_unit(e);
    return x == x ? result : x;
}

/* log(1 + e^x), within 2.5 ulp. */
static SP_ALWAYS_INLINE float sp_softplusf(float x)
{
    return sp_softplus_logf(x, sp_softplus_expf(x));
}

/* Within 1.5 ulp. Small: x + x * P(x^2). Large: 1 - exp(-t - t * Q(t)). P and Q are the Chebyshev
 * fits of degree 5 and 6 below and above 0.9277. */
static SP_ALWAYS_INLINE float sp_erff(float x)
{
    const float size = sp_absf(x), square = x * x;
    float p = -5.977571709e-04f;
    p = sp_fmaf(p, square, 4.990903661e-03f);
    p = sp_fmaf(p, square, -2.676534094e-02f);
    p = sp_fmaf(p, square, 1.128179058e-01f);
    p = sp_fmaf(p, square, -3.761249185e-01f);
    p = sp_fmaf(p, square, 1.283791512e-01f);
    const float small = sp_fmaf(p, x, x);
    const float t = size > 4.0f ? 4.0f : size;
    float q = 1.672767212e-05f;
    q = sp_fmaf(q, t, -3.752831835e-04f);
    q = sp_fmaf(q, t, 3.841226455e-03f);
    q = sp_fmaf(q, t, -2.414184809e-02f);
    q = sp_fmaf(q, t, 1.066198871e-01f);
    q = sp_fmaf(q, t, 6.349601150e-01f);
    q = sp_fmaf(q, t, 1.286847144e-01f);
    const float large = 1.0f - sp_expf(-sp_fmaf(q, t, t));
    return size < 0.927734375f ? small : sp_copysignf(large, x);
}

#endif
