/* SPDX-License-Identifier: Apache-2.0 */
/* The power of a float, computed in double, without libm and without branches. Special cases as
 * IEEE 754-2019's pow. One text for all devices (math_f32.h). */
#ifndef SP_OPS_MATH_POW_F32_H
#define SP_OPS_MATH_POW_F32_H

/* log2 of a float that is positive and finite, in double. x = 2^e * m with m in [sqrt 1/2, sqrt 2),
 * log2 m = 2/ln 2 * (s + s^3/3 + ...) with s = (m-1)/(m+1); the next term is below 2^-45. */
SP_MATH_INLINE sp_f64 sp_log2_of_float(sp_f32 x)
{
    const uint64_t bits = sp_double_bits((double)x); /* normal even if x is not */
    const int64_t above = (int64_t)(bits - 0x3fe6a09e667f3bcdu);
    const int64_t exponent = above >> 52;
    const sp_f64 m = sp_double_from_bits(bits - ((uint64_t)exponent << 52));
    const sp_f64 s = (m - 1.0) / (m + 1.0), q = s * s;
    sp_f64 p = 0.16972882833987804792;
    p = p * q + 0.19235933878519512098;
    p = p * q + 0.22195308321368667807;
    p = p * q + 0.26230818925253880133;
    p = p * q + 0.32059889797532520164;
    p = p * q + 0.41219858311113240211;
    p = p * q + 0.57707801635558536295;
    p = p * q + 0.96179669392597560491;
    p = p * q + 2.8853900817779268147;
    const sp_f64 whole = (double)exponent;
    return whole + s * p;
}

/* 2^x for x in [-200, 200]: Taylor's series of the fraction, degree 11, within 2^-46. */
SP_MATH_INLINE sp_f64 sp_exp2_near(sp_f64 x)
{
    const sp_f64 shift = 0x1.8p52;
    const sp_f64 rounded = x + shift;
    const uint64_t exponent = sp_double_bits(rounded) - sp_double_bits(shift);
    const sp_f64 z = (x - (rounded - shift)) * 0.69314718055994530942;
    sp_f64 p = sp_exp_series(1.0 / 39916800.0, z);
    p = p * z + 1.0;
    p = p * z + 1.0;
    return p * sp_double_from_bits((exponent + 1023) << 52);
}

/* Within 0.51 ulp, so exact where the result is a float; x^2 is x * x. */
SP_MATH_INLINE sp_f32 sp_powf(sp_f32 x, sp_f32 y)
{
    const sp_f32 size = sp_absf(x), inf = SP_INFINITY_F32;
    const sp_f64 factor = (double)y;
    sp_f64 power = factor * sp_log2_of_float(size);
    power = power > 200 ? 200 : power;
    power = power < -200 ? -200 : power;
    sp_f32 result = (float)sp_exp2_near(power);
    result = size == 0 ? (y < 0 ? inf : 0.0f) : result;
    result = size == inf ? (y < 0 ? 0.0f : inf) : result;
    result = size == 1 ? 1.0f : result;
    /* From 2^24 on all floats are even integers. */
    const sp_f32 near = sp_absf(y) < 16777216.0f ? y : 0.0f;
    const int32_t n = (int32_t)near;
    const bool is_integer = (float)n == near;
    const uint32_t odd = (uint32_t)(n & (int32_t)is_integer) << 31;
    result = sp_float_from_bits(sp_float_bits(result) ^ (sp_float_bits(x) & odd));
    result = ((x < 0) & (size < inf) & !is_integer) ? SP_NAN_F32 : result;
    result = ((x != x) | (y != y)) ? SP_NAN_F32 : result;
    result = y == 2 ? sp_canonical(x * x) : result;
    return ((y == 0) | (x == 1)) ? 1.0f : result;
}

#endif
