/* SPDX-License-Identifier: Apache-2.0 */
/* exp and log of a double, without libm and without fused operations; the approximations are those
 * of Sun's fdlibm, as published on netlib. No branches. */
#ifndef SP_OPS_CPU_MATH_F64_H
#define SP_OPS_CPU_MATH_F64_H

#include "ops/cpu/isa.h"

static SP_ALWAYS_INLINE uint64_t sp_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static SP_ALWAYS_INLINE double sp_double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static SP_ALWAYS_INLINE double sp_canonical_f64(double x)
{
    return x == x ? x : sp_double_from_bits(UINT64_C(0x7ff8000000000000));
}

/* 2^n, n in [-1022, 1023]. */
static SP_ALWAYS_INLINE double sp_exponent_f64(int64_t n)
{
    return sp_double_from_bits((uint64_t)(n + 1023) << 52);
}

/* Within 1 ulp where the result is normal. */
static SP_ALWAYS_INLINE double sp_exp(double x)
{
    double clamped = x > 710.0 ? 710.0 : x;
    clamped = clamped < -746.0 ? -746.0 : clamped;
    /* n = round(x / ln 2): adding 1.5 * 2^52 rounds to an integer in the low bits. */
    const double shift = 6755399441055744.0;
    const double rounded = clamped * 1.44269504088896338700 + shift;
    const double n = rounded - shift;
    const int64_t exponent = (int64_t)(sp_double_bits(rounded) - UINT64_C(0x4338000000000000));
    const double high = clamped - n * 6.93147180369123816490e-01;
    const double low = n * 1.90821492927058770002e-10;
    const double r = high - low;
    const double t = r * r;
    double p = t * 4.13813679705723846039e-08 - 1.65339022054652515390e-06;
    p = t * p + 6.61375632143793436117e-05;
    p = t * p - 2.77777777770155933842e-03;
    p = t * p + 1.66666666666666019037e-01;
    const double c = r - t * p;
    const double y = 1.0 - ((low - (r * c) / (2.0 - c)) - high);
    const int64_t half = exponent >> 1;
    return y * sp_exponent_f64(half) * sp_exponent_f64(exponent - half);
}

/* Within 1 ulp; log(0) is -inf, of a negative number NaN. */
static SP_ALWAYS_INLINE double sp_log(double x)
{
    const double scaled = x < 0x1p-1022 ? x * 0x1p54 : x;
    const double offset = x < 0x1p-1022 ? -54.0 : 0.0;
    /* x = m * 2^e with m from sqrt(1/2) up to sqrt(2). */
    const uint64_t bits = sp_double_bits(scaled) - UINT64_C(0x3fe6a09e667f3bcd);
    const double e = (double)((int64_t)bits >> 52) + offset;
    const double f =
        sp_double_from_bits((bits & UINT64_C(0x000fffffffffffff)) + UINT64_C(0x3fe6a09e667f3bcd)) -
        1.0;
    const double s = f / (2.0 + f);
    const double z = s * s, w = z * z;
    const double even = w * (3.999999999940941908e-01 +
                             w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    const double odd = z * (6.666666666666735130e-01 +
                            w * (2.857142874366239149e-01 +
                                 w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    const double half_square = 0.5 * f * f;
    double y =
        e * 6.93147180369123816490e-01 -
        ((half_square - (s * (half_square + (even + odd)) + e * 1.90821492927058770002e-10)) - f);
    const double infinity = __builtin_inf();
    y = x == infinity ? infinity : y;
    y = x == 0 ? -infinity : y;
    return x >= 0 ? y : __builtin_nan("");
}

#endif
