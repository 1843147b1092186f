/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a float, without libm: polynomials in sp_fmaf and exact scaling, so the bits are the
 * same in every build. No branches, so loops over them vectorise. Accuracy is stated at each
 * function and tested against double precision over all floats.
 *
 * One text for all devices, of C and of C++, after the words of ops/cpu/arch/math_f32.h or
 * ops/cuda/arch/number.cuh: sp_f32 and sp_f64 are a float and a double whose operators round once
 * and are never fused. */
#ifndef SP_OPS_MATH_MATH_F32_H
#define SP_OPS_MATH_MATH_F32_H

#define SP_INFINITY_F32 sp_float_from_bits(0x7f800000u)
#define SP_NAN_F32 sp_float_from_bits(0x7fc00000u)

SP_MATH_INLINE sp_f32 sp_absf(sp_f32 x)
{
    return sp_float_from_bits(sp_float_bits(x) & 0x7fffffffu);
}

/* The magnitude of `size` with the sign of `sign`. */
SP_MATH_INLINE sp_f32 sp_copysignf(sp_f32 size, sp_f32 sign)
{
    return sp_float_from_bits((sp_float_bits(size) & 0x7fffffffu) |
                              (sp_float_bits(sign) & 0x80000000u));
}

/* Positive numbers unchanged, all others +0, -0 too. */
SP_MATH_INLINE sp_f32 sp_reluf(sp_f32 x)
{
    return x <= 0 ? 0.0f : x;
}

/* 2^n, n in [-126, 127]. */
SP_MATH_INLINE sp_f32 sp_exponent(int32_t n)
{
    return sp_float_from_bits((uint32_t)(n + 127) << 23);
}

/* e^r - 1, where x is *exponent * ln 2 + r and |r| is at most about ln 2 / 2; x in [-104, 89]. */
SP_MATH_INLINE sp_f32 sp_reduced_expm1f(sp_f32 x, int32_t *exponent)
{
    /* n = round(x / ln 2): adding 1.5 * 2^23 rounds to an integer in the low bits. */
    const sp_f32 shift = 12582912.0f;
    const sp_f32 rounded = sp_fmaf(x, 1.44269504f, shift);
    const sp_f32 n = rounded - shift;
    *exponent = (int32_t)(sp_float_bits(rounded) - 0x4b400000u);
    /* ln 2 in two parts. */
    sp_f32 r = sp_fmaf(n, -0.693359375f, x);
    r = sp_fmaf(n, 2.12194440e-4f, r);
    sp_f32 p = 1.9875691500e-4f;
    p = sp_fmaf(p, r, 1.3981999507e-3f);
    p = sp_fmaf(p, r, 8.3334519073e-3f);
    p = sp_fmaf(p, r, 4.1665795894e-2f);
    p = sp_fmaf(p, r, 1.6666665459e-1f);
    p = sp_fmaf(p, r, 5.0000001201e-1f);
    return sp_fmaf(p, r * r, r);
}

/* Within 1.1 ulp, over the whole range and down to subnormals; +-inf and NaN as in C. */
SP_MATH_INLINE sp_f32 sp_expf(sp_f32 x)
{
    /* Above and below these the result is inf and 0. NaN passes through both. */
    sp_f32 clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    int32_t exponent;
    const sp_f32 p = sp_reduced_expm1f(clamped, &exponent) + 1.0f;
    /* In two factors: 2^n itself may be outside the range of normal numbers. Only the second
     * multiplication rounds, and only if the result is subnormal. */
    const int32_t half = exponent >> 1;
    return p * sp_exponent(half) * sp_exponent(exponent - half);
}

/* 1 / (1 + exp(-x)), within 2.5 ulp; subnormal results too. */
SP_MATH_INLINE sp_f32 sp_sigmoidf(sp_f32 x)
{
    /* exp of a number that is not positive cannot overflow. */
    const sp_f32 e = sp_expf(x < 0 ? x : -x);
    return (x < 0 ? e : 1.0f) / (1.0f + e);
}

/* x * sigmoid(x), with the NaN that sigmoid_f32 would have stored between the two. */
SP_MATH_INLINE sp_f32 sp_siluf(sp_f32 x)
{
    return x * sp_canonical(sp_sigmoidf(x));
}

/* x * clip(x + 3, 0, 6) / 6, each step rounded; a NaN stays any NaN. */
SP_MATH_INLINE sp_f32 sp_hard_swishf(sp_f32 x)
{
    const sp_f32 sum = x + 3.0f;
    const sp_f32 above = sum < 0 ? 0.0f : sum;
    return x * (above > 6.0f ? 6.0f : above) / 6.0f;
}

/* Within 1.5 ulp. */
SP_MATH_INLINE sp_f32 sp_tanhf(sp_f32 x)
{
    const uint32_t sign = sp_float_bits(x) & 0x80000000u;
    const sp_f32 size = sp_float_from_bits(sp_float_bits(x) ^ sign);
    const sp_f32 square = x * x;
    sp_f32 p = -5.70498872745e-3f;
    p = sp_fmaf(p, square, 2.06390887954e-2f);
    p = sp_fmaf(p, square, -5.37397155531e-2f);
    p = sp_fmaf(p, square, 1.33314422036e-1f);
    p = sp_fmaf(p, square, -3.33332819422e-1f);
    const sp_f32 small = sp_fmaf(p * square, size, size);
    const sp_f32 large = 1.0f - 2.0f / (sp_expf(2.0f * size) + 1.0f);
    const sp_f32 result = size < 0.625f ? small : large; /* NaN: large, which is NaN */
    return sp_float_from_bits(sp_float_bits(result) | sign);
}

/* e^x - 1, within 2 ulp: 1 is subtracted before the scaling, without cancellation. */
SP_MATH_INLINE sp_f32 sp_expm1f(sp_f32 x)
{
    sp_f32 clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -25.0f ? -25.0f : clamped;
    int32_t exponent;
    const sp_f32 q = sp_reduced_expm1f(clamped, &exponent);
    const sp_f32 half = sp_exponent(exponent - 1);
    return 2.0f * sp_fmaf(q, half, half - 0.5f);
}

/* Natural logarithm, within 1 ulp; subnormals too. log x = e * ln 2 + log(1 + f) with 1 + f in
 * [2/3, 4/3), log(1 + f) = f + f^2 * P(f); P is the Chebyshev fit of degree 8. */
SP_MATH_INLINE sp_f32 sp_logf(sp_f32 x)
{
    const sp_f32 tiny = sp_float_from_bits(0x00800000u);
    const sp_f32 scaled = x < tiny ? x * 8388608.0f : x;
    const int32_t above = (int32_t)(sp_float_bits(scaled) - 0x3f2aaaabu);
    const int32_t e = above >> 23;
    const sp_f32 f = sp_float_from_bits(sp_float_bits(scaled) - ((uint32_t)e << 23)) - 1.0f;
    const sp_f32 exponent = (float)(x < tiny ? e - 23 : e);
    sp_f32 p = -1.242220178e-01f;
    p = sp_fmaf(p, f, 1.374831051e-01f);
    p = sp_fmaf(p, f, -1.228872165e-01f);
    p = sp_fmaf(p, f, 1.405581236e-01f);
    p = sp_fmaf(p, f, -1.667331606e-01f);
    p = sp_fmaf(p, f, 2.000723332e-01f);
    p = sp_fmaf(p, f, -2.499994487e-01f);
    p = sp_fmaf(p, f, 3.333327174e-01f);
    p = sp_fmaf(p, f, -0.5f);
    sp_f32 result = sp_fmaf(p, f * f, f);
    result = sp_fmaf(exponent, 0.693147182f, result);
    result = x < SP_INFINITY_F32 ? result : x; /* inf, NaN */
    result = x > 0 ? result : x == 0 ? -SP_INFINITY_F32 : SP_NAN_F32;
    return result;
}

/* log(1 + x) for x in [0, 1], within 1.5 ulp: the rounding error of 1 + x is corrected to first
 * order (W. Kahan; HP-15C Advanced Functions Handbook, 1982). */
SP_MATH_INLINE sp_f32 sp_log1pf_unit(sp_f32 x)
{
    const sp_f32 sum = 1.0f + x;
    return sp_logf(sum) + (x - (sum - 1.0f)) / sum;
}

/* e^-|x|, and log(1 + e^x) from that and x. */
SP_MATH_INLINE sp_f32 sp_softplus_expf(sp_f32 x)
{
    return sp_expf(-sp_absf(x));
}

SP_MATH_INLINE sp_f32 sp_softplus_logf(sp_f32 x, sp_f32 e)
{
    const sp_f32 above = x > 0 ? x : 0.0f;
    const sp_f32 result = above + sp_log1pf_unit(e);
    return x == x ? result : x;
}

/* log(1 + e^x), within 2.5 ulp. */
SP_MATH_INLINE sp_f32 sp_softplusf(sp_f32 x)
{
    return sp_softplus_logf(x, sp_softplus_expf(x));
}

/* Within 1.5 ulp. Small: x + x * P(x^2). Large: 1 - exp(-t - t * Q(t)). P and Q are the Chebyshev
 * fits of degree 5 and 6 below and above 0.9277. */
SP_MATH_INLINE sp_f32 sp_erff(sp_f32 x)
{
    const sp_f32 size = sp_absf(x), square = x * x;
    sp_f32 p = -5.977571709e-04f;
    p = sp_fmaf(p, square, 4.990903661e-03f);
    p = sp_fmaf(p, square, -2.676534094e-02f);
    p = sp_fmaf(p, square, 1.128179058e-01f);
    p = sp_fmaf(p, square, -3.761249185e-01f);
    p = sp_fmaf(p, square, 1.283791512e-01f);
    const sp_f32 small = sp_fmaf(p, x, x);
    const sp_f32 t = size > 4.0f ? 4.0f : size;
    sp_f32 q = 1.672767212e-05f;
    q = sp_fmaf(q, t, -3.752831835e-04f);
    q = sp_fmaf(q, t, 3.841226455e-03f);
    q = sp_fmaf(q, t, -2.414184809e-02f);
    q = sp_fmaf(q, t, 1.066198871e-01f);
    q = sp_fmaf(q, t, 6.349601150e-01f);
    q = sp_fmaf(q, t, 1.286847144e-01f);
    const sp_f32 large = 1.0f - sp_expf(-sp_fmaf(q, t, t));
    return size < 0.927734375f ? small : sp_copysignf(large, x);
}

#endif
