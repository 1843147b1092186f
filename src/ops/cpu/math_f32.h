/* SPDX-License-Identifier: Apache-2.0 */
/* relu, exp, sigmoid, tanh and SiLU of a float, without libm: polynomials in sp_fmaf and exact
 * scaling, so the bits are the same in every build. No branches, so loops over them vectorise.
 * Accuracy is stated at each function and tested against double precision over all floats. */
#ifndef SP_OPS_CPU_MATH_F32_H
#define SP_OPS_CPU_MATH_F32_H

#include "ops/cpu/isa.h"

/* Positive numbers stay, all others are +0, -0 too. */
static SP_ALWAYS_INLINE float sp_reluf(float x)
{
    return x <= 0 ? 0.0f : x;
}

/* 2^n, n in [-126, 127]. */
static SP_ALWAYS_INLINE float sp_exponent(int32_t n)
{
    return sp_float_from_bits((uint32_t)(n + 127) << 23);
}

/* Within 1.1 ulp, over the whole range and down to subnormals; +-inf and NaN as in C. */
static SP_ALWAYS_INLINE float sp_expf(float x)
{
    /* Above and below these the result is inf and 0 anyway. NaN passes through both. */
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    /* n = round(x / ln 2): adding 1.5 * 2^23 rounds to an integer in the low bits. */
    const float shift = 12582912.0f;
    const float rounded = sp_fmaf(clamped, 1.44269504f, shift);
    const float n = rounded - shift;
    const int32_t exponent = (int32_t)(sp_float_bits(rounded) - 0x4b400000u);
    /* ln 2 in two parts. */
    float r = sp_fmaf(n, -0.693359375f, clamped);
    r = sp_fmaf(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = sp_fmaf(p, r, 1.3981999507e-3f);
    p = sp_fmaf(p, r, 8.3334519073e-3f);
    p = sp_fmaf(p, r, 4.1665795894e-2f);
    p = sp_fmaf(p, r, 1.6666665459e-1f);
    p = sp_fmaf(p, r, 5.0000001201e-1f);
    p = sp_fmaf(p, r * r, r) + 1.0f;
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

#endif
