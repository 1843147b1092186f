/* SPDX-License-Identifier: Apache-2.0 */
/* The remainder of a division of floats with the sign of the dividend, exactly, by long division of
 * the mantissas, 11 bits at a time (ops/cpu/elementwise/remainder.c). */

/* The double of `mantissa` (below 2^53) times 2^(exponent - 1075); exponent is at least 1. */
SP_CUDA_FUNCTION sp_f64 sp_from_parts(uint64_t mantissa, int64_t exponent)
{
    if (mantissa == 0) return 0;
    const int64_t shift = __clzll((int64_t)mantissa) - 11;
    if (shift >= exponent) return sp_from_bits(mantissa << (exponent - 1)); /* subnormal */
    const uint64_t fraction = (mantissa << shift) & (uint64_t)0x000fffffffffffffu;
    return sp_from_bits(fraction | (uint64_t)(exponent - shift) << 52);
}

SP_CUDA_CALLED sp_f64 sp_fmod(sp_f64 a, sp_f64 b)
{
    const uint64_t sign = sp_bits(a) & (uint64_t)0x8000000000000000u;
    const uint64_t x = sp_bits(a) ^ sign, y = sp_bits(b) & (uint64_t)0x7fffffffffffffffu;
    const uint64_t infinity = (uint64_t)0x7ff0000000000000u, top = (uint64_t)0x0010000000000000u;
    if (y == 0 || x >= infinity || y > infinity) return sp_nan_f64();
    if (x < y) return a;
    const int64_t x_exponent = x < top ? 1 : (int64_t)(x >> 52);
    const int64_t y_exponent = y < top ? 1 : (int64_t)(y >> 52);
    const uint64_t divisor = y < top ? y : (y & (top - 1)) | top;
    uint64_t rest = (x < top ? x : (x & (top - 1)) | top) % divisor;
#pragma unroll 1
    for (int64_t left = x_exponent - y_exponent; left > 0 && rest > 0; left -= 11) {
        rest = (rest << (left < 11 ? left : 11)) % divisor;
    }
    return sp_from_bits(sp_bits(sp_from_parts(rest, y_exponent)) | sign);
}

/* The remainder of two floats is a float. */
SP_CUDA_FUNCTION sp_f32 sp_fmod(sp_f32 a, sp_f32 b)
{
    return (float)sp_fmod(sp_f64(a.v), sp_f64(b.v)).v;
}
