/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log and pow of a double, without libm and without FMA: sums of two doubles where one is not
 * precise enough, so the bits are the same in every build. Scalar code: doubles are rare in models.
 *
 * log: x = 2^e * m with m in [sqrt 1/2, sqrt 2), log m = 2 * (s + s^3/3 + s^5/5 + ...) with s =
 * (m-1)/(m+1), the first terms in two doubles. exp: x = n * ln 2 + r, Taylor series of e^r. Sums
 * and products of two doubles are those of T. J. Dekker, Numerische Mathematik 18 (1971). */
#ifndef SP_OPS_CPU_ARCH_MATH_F64_H
#define SP_OPS_CPU_ARCH_MATH_F64_H

#include <stdbool.h>

#include "ops/cpu/arch/isa.h"

static SP_ALWAYS_INLINE double sp_double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static SP_ALWAYS_INLINE uint64_t sp_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#define SP_NAN_F64 sp_double_from_bits(0x7ff8000000000000u)
#define SP_INFINITY_F64 sp_double_from_bits(0x7ff0000000000000u)

static SP_ALWAYS_INLINE double sp_abs(double x)
{
    return sp_double_from_bits(sp_double_bits(x) & 0x7fffffffffffffffu);
}

/* As sp_canonical. */
static SP_ALWAYS_INLINE double sp_canonical_f64(double x)
{
    return x == x ? x : SP_NAN_F64;
}

/* The unevaluated sum high + low, |low| at most half a unit in the last place of high. */
typedef struct sp_two_f64 {
    double high, low;
} sp_two_f64;

/* Exactly a + b. */
static inline sp_two_f64 sp_two_sum(double a, double b)
{
    const double sum = a + b, part = sum - a;
    return (sp_two_f64){sum, (a - (sum - part)) + (b - part)};
}

/* Exactly a * b, for products far from the ends of the range. */
static inline sp_two_f64 sp_two_product(double a, double b)
{
    const double half = 134217729.0; /* 2^27 + 1: the upper 26 bits of a number */
    const double a_high = half * a - (half * a - a), a_low = a - a_high;
    const double b_high = half * b - (half * b - b), b_low = b - b_high;
    const double product = a * b;
    const double error =
        ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    return (sp_two_f64){product, error};
}

static inline sp_two_f64 sp_two_add(sp_two_f64 a, sp_two_f64 b)
{
    const sp_two_f64 sum = sp_two_sum(a.high, b.high);
    return sp_two_sum(sum.high, sum.low + (a.low + b.low));
}

static inline sp_two_f64 sp_two_multiply(sp_two_f64 a, sp_two_f64 b)
{
    const sp_two_f64 product = sp_two_product(a.high, b.high);
    return sp_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* ln 2: n times the high part is exact for the n of an exponent. */
#define SP_LN2_HIGH 0x1.62e42fefa38p-1
#define SP_LN2_LOW 0x1.ef35793c7673p-45

/* The logarithm of a positive number that is not infinite, within a relative error of 2^-66. */
static inline sp_two_f64 sp_log_two(double x)
{
    int64_t exponent = 0;
    if (x < 0x1p-1022) {
        x *= 0x1p54;
        exponent = -54;
    }
    const int64_t above = (int64_t)(sp_double_bits(x) - 0x3fe6a09e667f3bcdu);
    const int64_t e = above >> 52;
    exponent += e;
    const double m = sp_double_from_bits(sp_double_bits(x) - ((uint64_t)e << 52));
    const sp_two_f64 below = sp_two_sum(m, 1.0);
    sp_two_f64 s = {(m - 1.0) / below.high, 0};
    const sp_two_f64 back = sp_two_product(s.high, below.high);
    s.low = (((m - 1.0) - back.high) - back.low - s.high * below.low) / below.high;
    const sp_two_f64 square = sp_two_multiply(s, s);
    const double q = square.high;
    double tail = 1.0 / 29.0;
    tail = tail * q + 1.0 / 27.0;
    tail = tail * q + 1.0 / 25.0;
    tail = tail * q + 1.0 / 23.0;
    tail = tail * q + 1.0 / 21.0;
    tail = tail * q + 1.0 / 19.0;
    tail = tail * q + 1.0 / 17.0;
    tail = tail * q + 1.0 / 15.0;
    tail = tail * q + 1.0 / 13.0;
    tail = tail * q + 1.0 / 11.0;
    tail = tail * q + 1.0 / 9.0;
    tail = tail * q + 1.0 / 7.0;
    /* 1/5, 1/3 and 1 in two doubles. */
    sp_two_f64 series =
        sp_two_add((sp_two_f64){0.2, -0x1.999999999999ap-57}, (sp_two_f64){tail * q, 0});
    series =
        sp_two_add((sp_two_f64){1.0 / 3.0, 0x1.5555555555555p-56}, sp_two_multiply(series, square));
    series = sp_two_add((sp_two_f64){1, 0}, sp_two_multiply(series, square));
    series = sp_two_multiply(series, (sp_two_f64){2 * s.high, 2 * s.low});
    const sp_two_f64 scale = {(double)exponent * SP_LN2_HIGH, (double)exponent * SP_LN2_LOW};
    return sp_two_add(scale, series);
}

/* Taylor's series of e^z by Horner, from its terms of degree 11 and above, p, down to degree 2. */
static SP_ALWAYS_INLINE double sp_exp_series(double p, double z)
{
    p = p * z + 1.0 / 3628800.0;
    p = p * z + 1.0 / 362880.0;
    p = p * z + 1.0 / 40320.0;
    p = p * z + 1.0 / 5040.0;
    p = p * z + 1.0 / 720.0;
    p = p * z + 1.0 / 120.0;
    p = p * z + 1.0 / 24.0;
    p = p * z + 1.0 / 6.0;
    return p * z + 0.5;
}

/* e^(x.high + x.low), within 0.65 ulp if it is a normal number. NaN passes. */
static inline double sp_exp_two(sp_two_f64 x)
{
    if (x.high > 709.8) return SP_INFINITY_F64;
    if (x.high < -745.2) return 0;
    if (x.high != x.high) return SP_NAN_F64;
    const double shift = 0x1.8p52; /* rounds to an integer in the low bits */
    const double rounded = x.high * 1.4426950408889634 + shift;
    const double n = rounded - shift;
    const int64_t exponent = (int64_t)(sp_double_bits(rounded) - sp_double_bits(shift));
    const sp_two_f64 r =
        sp_two_add((sp_two_f64){x.high - n * SP_LN2_HIGH, 0}, (sp_two_f64){x.low, -n * SP_LN2_LOW});
    const double z = r.high;
    double p = 1.0 / 87178291200.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z + 1.0 / 39916800.0;
    p = sp_exp_series(p, z);
    const sp_two_f64 line = sp_two_sum(1.0, z);
    const double result = line.high + (line.low + (r.low + r.low * z + z * z * p));
    /* In two factors, as in sp_expf. */
    const int64_t half = exponent >> 1;
    return result * sp_double_from_bits((uint64_t)(half + 1023) << 52) *
           sp_double_from_bits((uint64_t)(exponent - half + 1023) << 52);
}

/* Within 0.65 ulp; 1 ulp where the result is subnormal. */
static inline double sp_exp(double x)
{
    return sp_exp_two((sp_two_f64){x, 0});
}

/* Within 0.51 ulp. */
static inline double sp_log(double x)
{
    if (x == 0) return -SP_INFINITY_F64;
    if (!(x > 0)) return SP_NAN_F64;
    return x == SP_INFINITY_F64 ? x : sp_log_two(x).high;
}

/* Is y an integer, and an odd one? */
static inline bool sp_is_odd(double y, bool *is_integer)
{
    const double size = y < 0 ? -y : y;
    *is_integer = true;
    if (!(size < 0x1p53)) return false;
    const int64_t n = (int64_t)y;
    *is_integer = (double)n == y;
    return *is_integer && (n & 1) != 0;
}

/* |x|^y where neither is special. */
static inline double sp_pow_size(double size, double y)
{
    if (y >= 0x1p64 || y <= -0x1p64) return (size > 1) == (y > 0) ? SP_INFINITY_F64 : 0;
    if (y < 0x1p-80 && y > -0x1p-80) return 1;
    const sp_two_f64 log = sp_log_two(size);
    sp_two_f64 product = sp_two_product(log.high, y);
    product = sp_two_sum(product.high, product.low + log.low * y);
    return sp_exp_two(product);
}

/* Within 0.7 ulp, 1 ulp where the result is subnormal, and exact where the result is a double.
 * Special cases as IEEE 754-2019's pow. */
static inline double sp_pow(double x, double y)
{
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return SP_NAN_F64;
    bool is_integer;
    const bool is_odd = sp_is_odd(y, &is_integer);
    const bool is_negative = sp_double_bits(x) >> 63 != 0;
    const double size = is_negative ? -x : x;
    double result;
    if (size == 0 || size == SP_INFINITY_F64) result = (size == 0) == (y < 0) ? SP_INFINITY_F64 : 0;
    else if (is_negative && !is_integer) return SP_NAN_F64;
    else result = size == 1 ? 1 : sp_pow_size(size, y);
    return is_negative && is_odd ? -result : result;
}

#endif
