/* SPDX-License-Identifier: Apache-2.0 */
/* The remainder of a division of doubles. One text for all devices (math_f32.h). */
#ifndef SP_OPS_MATH_FMOD_F64_H
#define SP_OPS_MATH_FMOD_F64_H

/* The double of `mantissa` (below 2^53) times 2^(exponent - 1075); exponent is at least 1. */
SP_MATH_INLINE sp_f64 sp_from_parts(uint64_t mantissa, int64_t exponent)
{
    if (mantissa == 0) return 0;
    const int64_t shift = sp_leading_zeros(mantissa) - 11;
    if (shift >= exponent) return sp_double_from_bits(mantissa << (exponent - 1)); /* subnormal */
    const uint64_t fraction = (mantissa << shift) & 0x000fffffffffffffu;
    return sp_double_from_bits(fraction | (uint64_t)(exponent - shift) << 52);
}

/* a - n * b with the sign of a, exactly: long division of the mantissas, 11 bits at a time. NaN for
 * b = 0 and for an infinite a. */
SP_MATH_CALLED sp_f64 sp_fmod(sp_f64 a, sp_f64 b)
{
    const uint64_t sign = sp_double_bits(a) & 0x8000000000000000u;
    const uint64_t x = sp_double_bits(a) ^ sign, y = sp_double_bits(b) & 0x7fffffffffffffffu;
    const uint64_t infinity = 0x7ff0000000000000u, top = 0x0010000000000000u;
    if (y == 0 || x >= infinity || y > infinity) return SP_NAN_F64;
    if (x < y) return a;
    const int64_t x_exponent = x < top ? 1 : (int64_t)(x >> 52);
    const int64_t y_exponent = y < top ? 1 : (int64_t)(y >> 52);
    const uint64_t divisor = y < top ? y : (y & (top - 1)) | top;
    uint64_t rest = (x < top ? x : (x & (top - 1)) | top) % divisor;
    for (int64_t left = x_exponent - y_exponent; left > 0 && rest > 0; left -= 11) {
        rest = (rest << (left < 11 ? left : 11)) % divisor;
    }
    return sp_double_from_bits(sp_double_bits(sp_from_parts(rest, y_exponent)) | sign);
}

#endif
