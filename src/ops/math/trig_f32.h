/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric and hyperbolic functions of a float and their inverses, computed in double, without
 * libm and without branches, and rounded once at the end: each within 0.51 ulp for all floats.
 * Zeros keep their sign where the function is odd. One text for all devices (math_f32.h); after
 * pow_f32.h, whose exponential it uses. */
#ifndef SP_OPS_MATH_TRIG_F32_H
#define SP_OPS_MATH_TRIG_F32_H

#define SP_HALF_PI_F64 1.57079632679489661923

/* `size` with the sign of `x` in addition to its own. */
SP_MATH_INLINE sp_f32 sp_with_signf(sp_f32 size, sp_f32 x)
{
    return sp_float_from_bits(sp_float_bits(size) ^ (sp_float_bits(x) & 0x80000000u));
}

/* ---- sine, cosine, tangent ---- */

/* `rest` radians, at most about pi / 4, and `quarter` right angles, modulo 4. */
typedef struct sp_angle {
    sp_f64 rest;
    uint32_t quarter;
} sp_angle;

/* A product of at most 53 bits less a multiple of 4, exactly. From 2^54 on it is one itself. */
SP_MATH_INLINE sp_f64 sp_within_turn(sp_f64 product)
{
    const sp_f64 shift = 0x1.8p55; /* sums with it are rounded to multiples of 8 */
    const sp_f64 rest = product - ((product + shift) - shift);
    return product < 0x1p54 ? rest : 0;
}

/* Of a magnitude. It is multiplied by 2 / pi in seven pieces of 29 bits: the products are exact,
 * and what is cut off is below 2^-75 for the largest float, where floats come within 2^-31 of
 * multiples of pi / 2. */
SP_MATH_INLINE sp_angle sp_angle_of(sp_f64 size)
{
    sp_two_f64 sum = {sp_within_turn(size * 0x1.45f306dp-1), 0};
    sp_two_f64 part = sp_two_sum(sum.high, sp_within_turn(size * 0x1.9391054p-30));
    sum.low = part.low;
    part = sp_two_sum(part.high, sp_within_turn(size * 0x1.4fe13abp-59));
    sum.low = sum.low + part.low;
    part = sp_two_sum(part.high, sp_within_turn(size * 0x1.d1f534dp-88));
    sum.low = sum.low + part.low;
    part = sp_two_sum(part.high, sp_within_turn(size * 0x1.b81b6c5p-117));
    sum.low = sum.low + part.low;
    part = sp_two_sum(part.high, size * 0x1.5993c4p-148);
    sum.low = sum.low + part.low + size * 0x1.c820ff2p-175;
    /* Adding 1.5 * 2^52 rounds to an integer in the low bits. */
    const sp_f64 shift = 0x1.8p52;
    const sp_f64 rounded = part.high + shift;
    const sp_f64 rest = (part.high - (rounded - shift)) + sum.low;
    const sp_angle angle = {rest * SP_HALF_PI_F64, (uint32_t)sp_double_bits(rounded) & 3u};
    return angle;
}

/* Taylor's series on [-pi / 4, pi / 4], within a relative error of 2^-45. */
SP_MATH_INLINE sp_f64 sp_sin_series(sp_f64 y)
{
    const sp_f64 q = y * y;
    sp_f64 p = 1.0 / 6227020800.0;
    p = p * q - 1.0 / 39916800.0;
    p = p * q + 1.0 / 362880.0;
    p = p * q - 1.0 / 5040.0;
    p = p * q + 1.0 / 120.0;
    p = p * q - 1.0 / 6.0;
    return y + y * q * p;
}

SP_MATH_INLINE sp_f64 sp_cos_series(sp_f64 y)
{
    const sp_f64 q = y * y;
    sp_f64 p = -1.0 / 87178291200.0;
    p = p * q + 1.0 / 479001600.0;
    p = p * q - 1.0 / 3628800.0;
    p = p * q + 1.0 / 40320.0;
    p = p * q - 1.0 / 720.0;
    p = p * q + 1.0 / 24.0;
    p = p * q - 0.5;
    return p * q + 1.0;
}

/* The sine of the angle and so many right angles. */
SP_MATH_INLINE sp_f32 sp_sin_of(sp_angle angle, uint32_t more)
{
    const uint32_t quarter = angle.quarter + more;
    const sp_f64 size = (quarter & 1u) != 0 ? sp_cos_series(angle.rest) : sp_sin_series(angle.rest);
    return (float)((quarter & 2u) != 0 ? -size : size);
}

SP_MATH_INLINE sp_f32 sp_sinf(sp_f32 x)
{
    const sp_f32 size = sp_absf(x);
    const sp_f32 result = sp_sin_of(sp_angle_of((double)size), 0);
    return size < SP_INFINITY_F32 ? sp_with_signf(result, x) : SP_NAN_F32;
}

SP_MATH_INLINE sp_f32 sp_cosf(sp_f32 x)
{
    const sp_f32 size = sp_absf(x);
    const sp_f32 result = sp_sin_of(sp_angle_of((double)size), 1);
    return size < SP_INFINITY_F32 ? result : SP_NAN_F32;
}

SP_MATH_INLINE sp_f32 sp_tanf(sp_f32 x)
{
    const sp_f32 size = sp_absf(x);
    const sp_angle angle = sp_angle_of((double)size);
    const sp_f64 s = sp_sin_series(angle.rest), c = sp_cos_series(angle.rest);
    const bool is_odd = (angle.quarter & 1u) != 0;
    const sp_f32 result = (float)((is_odd ? -c : s) / (is_odd ? s : c));
    return size < SP_INFINITY_F32 ? sp_with_signf(result, x) : SP_NAN_F32;
}

/* ---- their inverses ---- */

/* The arctangent of t, |t| <= tan(pi / 8), within a relative error of 2^-47: t + t^3 * P(t^2), P is
 * the Chebyshev fit of degree 8. */
SP_MATH_INLINE sp_f64 sp_atan_series(sp_f64 t)
{
    const sp_f64 q = t * t;
    sp_f64 p = -0.027231188880779692;
    p = p * q + 0.05168725600039612;
    p = p * q - 0.06550878776298272;
    p = p * q + 0.07681041344029722;
    p = p * q - 0.09090255665139077;
    p = p * q + 0.11111089637647514;
    p = p * q - 0.14285713930151892;
    p = p * q + 0.19999999997723208;
    p = p * q - 0.3333333333333092;
    return t + t * q * p;
}

/* The arctangent of y / x, neither of which is negative, and not both 0 or infinite. A NaN stays
 * one. */
SP_MATH_INLINE sp_f64 sp_atan_ratio(sp_f64 y, sp_f64 x)
{
    const bool is_steep = y > x * 2.41421356237309504880,
               is_middle = y > x * 0.41421356237309504880;
    const sp_f64 rise = is_steep ? -x : is_middle ? y - x : y;
    const sp_f64 run = is_steep ? y : is_middle ? x + y : x;
    const sp_f64 base = is_steep ? SP_HALF_PI_F64 : is_middle ? 0.5 * SP_HALF_PI_F64 : 0;
    return base + sp_atan_series(rise / run);
}

SP_MATH_INLINE sp_f32 sp_atanf(sp_f32 x)
{
    return sp_with_signf((float)sp_atan_ratio((double)sp_absf(x), 1.0), x);
}

/* NaN outside of [-1, 1], as the square root. */
SP_MATH_INLINE sp_f32 sp_asinf(sp_f32 x)
{
    const sp_f64 size = (double)sp_absf(x);
    const sp_f64 other = sp_sqrt_f64((1.0 - size) * (1.0 + size));
    return sp_with_signf((float)sp_atan_ratio(size, other), x);
}

SP_MATH_INLINE sp_f32 sp_acosf(sp_f32 x)
{
    const sp_f64 wide = (double)x;
    return (float)(2.0 * sp_atan_ratio(sp_sqrt_f64(1.0 - wide), sp_sqrt_f64(1.0 + wide)));
}

/* ---- hyperbolic functions ---- */

/* e^size; infinite floats, and those above 90, as e^90, which is more than the largest float. */
SP_MATH_INLINE sp_f64 sp_exp_size(sp_f64 size)
{
    const sp_f64 near = size < 90.0 ? size : 90.0;
    return sp_exp2_near(near * 1.44269504088896340736);
}

SP_MATH_INLINE sp_f32 sp_sinhf(sp_f32 x)
{
    const sp_f64 size = (double)sp_absf(x), e = sp_exp_size(size);
    const sp_f64 near = size < 1.0 ? size : 1.0, q = near * near;
    sp_f64 p = 1.0 / 1307674368000.0;
    p = p * q + 1.0 / 6227020800.0;
    p = p * q + 1.0 / 39916800.0;
    p = p * q + 1.0 / 362880.0;
    p = p * q + 1.0 / 5040.0;
    p = p * q + 1.0 / 120.0;
    p = p * q + 1.0 / 6.0;
    const sp_f64 small = near + near * q * p;
    const sp_f32 result = (float)(size < 1.0 ? small : 0.5 * (e - 1.0 / e));
    return x == x ? sp_with_signf(result, x) : SP_NAN_F32;
}

SP_MATH_INLINE sp_f32 sp_coshf(sp_f32 x)
{
    const sp_f64 e = sp_exp_size((double)sp_absf(x));
    const sp_f32 result = (float)(0.5 * (e + 1.0 / e));
    return x == x ? result : SP_NAN_F32;
}

/* ---- their inverses ---- */

/* The inverse hyperbolic tangent of s, |s| <= 0.1716, within a relative error of 2^-49. */
SP_MATH_INLINE sp_f64 sp_atanh_series(sp_f64 s)
{
    const sp_f64 q = s * s;
    sp_f64 p = 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    return s + s * q * p;
}

/* The logarithm of a positive, finite and normal number: 2^e * m with m in [sqrt 1/2, sqrt 2). */
SP_MATH_INLINE sp_f64 sp_log_normal(sp_f64 x)
{
    const uint64_t bits = sp_double_bits(x);
    const int64_t above = (int64_t)(bits - 0x3fe6a09e667f3bcdu);
    const int64_t exponent = above >> 52;
    const sp_f64 m = sp_double_from_bits(bits - ((uint64_t)exponent << 52));
    const sp_f64 whole = (double)exponent;
    return whole * 0.69314718055994530942 + 2.0 * sp_atanh_series((m - 1.0) / (m + 1.0));
}

SP_MATH_INLINE sp_f32 sp_asinhf(sp_f32 x)
{
    const sp_f64 size = (double)sp_absf(x), root = sp_sqrt_f64(size * size + 1.0);
    const sp_f64 small = sp_atanh_series(size / root), large = sp_log_normal(size + root);
    const sp_f32 result = (float)(size < 0.17 ? small : large);
    return sp_absf(x) < SP_INFINITY_F32 ? sp_with_signf(result, x) : x;
}

SP_MATH_INLINE sp_f32 sp_acoshf(sp_f32 x)
{
    const sp_f64 wide = (double)x;
    const sp_f32 result = (float)sp_log_normal(wide + sp_sqrt_f64((wide - 1.0) * (wide + 1.0)));
    return x < 1 ? SP_NAN_F32 : x < SP_INFINITY_F32 ? result : x;
}

SP_MATH_INLINE sp_f32 sp_atanhf(sp_f32 x)
{
    const sp_f32 size = sp_absf(x);
    const sp_f64 wide = (double)size;
    const sp_f64 small = sp_atanh_series(wide);
    const sp_f64 large = 0.5 * sp_log_normal((1.0 + wide) / (1.0 - wide));
    sp_f32 result = (float)(wide < 0.17 ? small : large);
    result = size < 1 ? result : size == 1 ? SP_INFINITY_F32 : SP_NAN_F32;
    return sp_with_signf(result, x);
}

#endif
