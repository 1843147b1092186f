/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log and pow of a double, without libm and without FMA: sums of two doubles where one is not
 * precise enough, so the bits are the same in every build. Scalar code: doubles are rare in models.
 * One text for all devices (math_f32.h).
 *
 * log: x = 2^e * m with m in [sqrt 1/2, sqrt 2), log m = 2 * (s + s^3/3 + s^5/5 + ...) with s =
 * (m-1)/(m+1), the first terms in two doubles. exp: x = n * ln 2 + r, Taylor series of e^r. Sums
 * and products of two doubles are those of T. J. Dekker, Numerische Mathematik 18 (1971). */
#ifndef SP_OPS_MATH_MATH_F64_H
#define SP_OPS_MATH_MATH_F64_H

#define SP_NAN_F64 sp_double_from_bits(0x7ff8000000000000u)
#define SP_INFINITY_F64 sp_double_from_bits(0x7ff0000000000000u)

/* The unevaluated sum high + low, |low| at most half a unit in the last place of high. */
typedef struct sp_two_f64 {
    sp_f64 high, low;
} sp_two_f64;

/* Exactly a + b. */
SP_MATH_INLINE sp_two_f64 sp_two_sum(sp_f64 a, sp_f64 b)
{
    const sp_f64 sum = a + b, part = sum - a;
    const sp_two_f64 both = {sum, (a - (sum - part)) + (b - part)};
    return both;
}

/* Exactly a * b, for products far from the ends of the range. */
SP_MATH_INLINE sp_two_f64 sp_two_product(sp_f64 a, sp_f64 b)
{
    const sp_f64 half = 134217729.0; /* 2^27 + 1: the upper 26 bits of a number */
    const sp_f64 a_high = half * a - (half * a - a), a_low = a - a_high;
    const sp_f64 b_high = half * b - (half * b - b), b_low = b - b_high;
    const sp_f64 product = a * b;
    const sp_f64 error =
        ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
    const sp_two_f64 both = {product, error};
    return both;
}

SP_MATH_INLINE sp_two_f64 sp_two_add(sp_two_f64 a, sp_two_f64 b)
{
    const sp_two_f64 sum = sp_two_sum(a.high, b.high);
    return sp_two_sum(sum.high, sum.low + (a.low + b.low));
}

SP_MATH_INLINE sp_two_f64 sp_two_multiply(sp_two_f64 a, sp_two_f64 b)
{
    const sp_two_f64 product = sp_two_product(a.high, b.high);
    return sp_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

/* ln 2: n times the high part is exact for the n of an exponent. */
#define SP_LN2_HIGH 0x1.62e42fefa38p-1
#define SP_LN2_LOW 0x1.ef35793c7673p-45

/* The logarithm of a positive number that is not infinite, within a relative error of 2^-66. */
SP_MATH_CALLED sp_two_f64 sp_log_two(sp_f64 x)
{
    int64_t exponent = 0;
    if (x < 0x1p-1022) {
        x = x * 0x1p54;
        exponent = -54;
    }
    const int64_t above = (int64_t)(sp_double_bits(x) - 0x3fe6a09e667f3bcdu);
    const int64_t e = above >> 52;
    exponent += e;
    const sp_f64 m = sp_double_from_bits(sp_double_bits(x) - ((uint64_t)e << 52));
    const sp_two_f64 below = sp_two_sum(m, 1.0);
    sp_two_f64 s = {(m - 1.0) / below.high, 0};
    const sp_two_f64 back = sp_two_product(s.high, below.high);
    s.low = (((m - 1.0) - back.high) - back.low - s.high * below.low) / below.high;
    const sp_two_f64 square = sp_two_multiply(s, s);
    const sp_f64 q = square.high;
    sp_f64 tail = 1.0 / 29.0;
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
    const sp_two_f64 last = {tail * q, 0};
    /* 1/5, 1/3 and 1 in two doubles. */
    const sp_two_f64 fifth = {0.2, -0x1.999999999999ap-57};
    const sp_two_f64 third = {1.0 / 3.0, 0x1.5555555555555p-56};
    const sp_two_f64 one = {1, 0};
    sp_two_f64 series = sp_two_add(fifth, last);
    series = sp_two_add(third, sp_two_multiply(series, square));
    series = sp_two_add(one, sp_two_multiply(series, square));
    const sp_two_f64 twice = {2 * s.high, 2 * s.low};
    series = sp_two_multiply(series, twice);
    const sp_f64 n = (double)exponent;
    const sp_two_f64 scale = {n * SP_LN2_HIGH, n * SP_LN2_LOW};
    return sp_two_add(scale, series);
}

/* Taylor's series of e^z by Horner, from its terms of degree 11 and above, p, down to degree 2. */
SP_MATH_INLINE sp_f64 sp_exp_series(sp_f64 p, sp_f64 z)
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
SP_MATH_CALLED sp_f64 sp_exp_two(sp_two_f64 x)
{
    if (x.high > 709.8) return SP_INFINITY_F64;
    if (x.high < -745.2) return 0;
    if (x.high != x.high) return SP_NAN_F64;
    const sp_f64 shift = 0x1.8p52; /* rounds to an integer in the low bits */
    const sp_f64 rounded = x.high * 1.4426950408889634 + shift;
    const sp_f64 n = rounded - shift;
    const int64_t exponent = (int64_t)(sp_double_bits(rounded) - sp_double_bits(shift));
    const sp_two_f64 high = {x.high - n * SP_LN2_HIGH, 0}, low = {x.low, -n * SP_LN2_LOW};
    const sp_two_f64 r = sp_two_add(high, low);
    const sp_f64 z = r.high;
    sp_f64 p = 1.0 / 87178291200.0;
    p = p * z + 1.0 / 6227020800.0;
    p = p * z + 1.0 / 479001600.0;
    p = p * z + 1.0 / 39916800.0;
    p = sp_exp_series(p, z);
    const sp_two_f64 line = sp_two_sum(1.0, z);
    const sp_f64 result = line.high + (line.low + (r.low + r.low * z + z * z * p));
    /* In two factors, as in sp_expf. */
    const int64_t half = exponent >> 1;
    return result * sp_double_from_bits((uint64_t)(half + 1023) << 52) *
           sp_double_from_bits((uint64_t)(exponent - half + 1023) << 52);
}

/* Within 0.65 ulp; 1 ulp where the result is subnormal. */
SP_MATH_CALLED sp_f64 sp_exp(sp_f64 x)
{
    const sp_two_f64 exact = {x, 0};
    return sp_exp_two(exact);
}

/* Within 0.51 ulp. */
SP_MATH_CALLED sp_f64 sp_log(sp_f64 x)
{
    if (x == 0) return -SP_INFINITY_F64;
    if (!(x > 0)) return SP_NAN_F64;
    return x == SP_INFINITY_F64 ? x : sp_log_two(x).high;
}

/* Is y an integer, and an odd one? */
SP_MATH_INLINE bool sp_is_odd(sp_f64 y, bool *is_integer)
{
    const sp_f64 size = y < 0 ? -y : y;
    *is_integer = true;
    if (!(size < 0x1p53)) return false;
    const int64_t n = (int64_t)y;
    *is_integer = (double)n == y;
    return *is_integer && (n & 1) != 0;
}

/* |x|^y where neither is special. */
SP_MATH_CALLED sp_f64 sp_pow_size(sp_f64 size, sp_f64 y)
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
SP_MATH_CALLED sp_f64 sp_pow(sp_f64 x, sp_f64 y)
{
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return SP_NAN_F64;
    bool is_integer;
    const bool is_odd = sp_is_odd(y, &is_integer);
    const bool is_negative = sp_double_bits(x) >> 63 != 0;
    const sp_f64 size = is_negative ? -x : x;
    sp_f64 result;
    if (size == 0 || size == SP_INFINITY_F64) result = (size == 0) == (y < 0) ? SP_INFINITY_F64 : 0;
    else if (is_negative && !is_integer) return SP_NAN_F64;
    else result = size == 1 ? 1 : sp_pow_size(size, y);
    return is_negative && is_odd ? -result : result;
}

#endif
