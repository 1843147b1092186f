/* SPDX-License-Identifier: Apache-2.0 */
/* y = a to the power b, with broadcasting. Floats: special cases as IEEE 754-2019's pow, NaNs
 * canonical. Integers wrap; a negative exponent gives the quotient 1 / a^-b, that is 0 unless a is
 * 1 or -1, and 0 for 0, as a division by 0 does. */
#include "ops/cpu/elementwise.h"
#include "ops/cpu/math_f32.h"
#include "ops/cpu/math_f64.h"

/* log2 of a float that is positive and finite, in double. x = 2^e * m with m in [sqrt 1/2, sqrt 2),
 * log2 m = 2/ln 2 * (s + s^3/3 + ...) with s = (m-1)/(m+1); the next term is below 2^-45. */
static SP_ALWAYS_INLINE double log2_of_float(float x)
{
    const uint64_t bits = sp_double_bits((double)x); /* normal even if x is not */
    const int64_t above = (int64_t)(bits - 0x3fe6a09e667f3bcdu);
    const int64_t exponent = above >> 52;
    const double m = sp_double_from_bits(bits - ((uint64_t)exponent << 52));
    const double s = (m - 1.0) / (m + 1.0), q = s * s;
    double p = 0.16972882833987804792;
    p = p * q + 0.19235933878519512098;
    p = p * q + 0.22195308321368667807;
    p = p * q + 0.26230818925253880133;
    p = p * q + 0.32059889797532520164;
    p = p * q + 0.41219858311113240211;
    p = p * q + 0.57707801635558536295;
    p = p * q + 0.96179669392597560491;
    p = p * q + 2.8853900817779268147;
    return (double)exponent + s * p;
}

/* 2^x for x in [-200, 200]: Taylor's series of the fraction, degree 11, within 2^-46. */
static SP_ALWAYS_INLINE double exp2_near(double x)
{
    const double shift = 0x1.8p52;
    const double rounded = x + shift;
    const uint64_t exponent = sp_double_bits(rounded) - sp_double_bits(shift);
    const double z = (x - (rounded - shift)) * 0.69314718055994530942;
    double p = 1.0 / 39916800.0;
    p = p * z + 1.0 / 3628800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z + 1.0 / 5040.0;
    p = p * z + 1.0 / 720.0;
    p = p * z + 1.0 / 120.0;
    p = p * z + 1.0 / 24.0;
    p = p * z + 1.0 / 6.0;
    p = p * z + 0.5;
    p = p * z + 1.0;
    p = p * z + 1.0;
    return p * sp_double_from_bits((exponent + 1023) << 52);
}

/* Within 0.51 ulp, so exact where the result is a float; x^2 is x * x. */
static SP_ALWAYS_INLINE float pow_f32(float x, float y)
{
    const float size = sp_absf(x), inf = SP_INFINITY_F32;
    double power = (double)y * log2_of_float(size);
    power = power > 200 ? 200 : power;
    power = power < -200 ? -200 : power;
    float result = (float)exp2_near(power);
    result = size == 0 ? (y < 0 ? inf : 0.0f) : result;
    result = size == inf ? (y < 0 ? 0.0f : inf) : result;
    result = size == 1 ? 1.0f : result;
    /* From 2^24 on all floats are even integers. */
    const float near = sp_absf(y) < 16777216.0f ? y : 0.0f;
    const int32_t n = (int32_t)near;
    const uint32_t odd = (uint32_t)(n & 1) << 31;
    result = sp_float_from_bits(sp_float_bits(result) ^ (sp_float_bits(x) & odd));
    const float nan = sp_float_from_bits(0x7fc00000u);
    result = ((x < 0) & (size < inf) & ((float)n != near)) ? nan : result;
    result = ((x != x) | (y != y)) ? nan : result;
    result = y == 2 ? sp_canonical(x * x) : result;
    return ((y == 0) | (x == 1)) ? 1.0f : result;
}

static double pow_f64(double x, double y)
{
    return sp_canonical_f64(y == 2 ? x * x : sp_pow(x, y));
}

static uint64_t pow_u64(uint64_t x, uint64_t n)
{
    uint64_t result = 1;
    for (; n > 0; n >>= 1, x *= x) {
        if (n & 1) result *= x;
    }
    return result;
}

static int64_t pow_i64(int64_t x, int64_t n)
{
    if (n >= 0) return (int64_t)pow_u64((uint64_t)x, (uint64_t)n);
    if (x != 1 && x != -1) return 0;
    return n & 1 ? x : 1;
}

SP_BINARY_ROW(any_pow_f32, pow_f32, float, float)

/* A square is what models ask for most. */
static void row_pow_f32(const float *a, int64_t a_step, const float *b, int64_t b_step, float *y,
                        int64_t n)
{
    if (a_step == 1 && b_step == 0 && b[0] == 2) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = sp_canonical(a[i] * a[i]);
    } else {
        row_any_pow_f32(a, a_step, b, b_step, y, n);
    }
}

SP_BINARY_KERNEL_OF_ROWS(pow_f32, float, float, SP_FINISH_NOTHING)
SP_BINARY_KERNEL(pow_f64, pow_f64, double, double)
SP_BINARY_KERNEL(pow_i64, pow_i64, int64_t, int64_t)
SP_BINARY_KERNEL(pow_u64, pow_u64, uint64_t, uint64_t)
