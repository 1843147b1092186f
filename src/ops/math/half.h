/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16 to and from wider numbers, on the bits: to nearest even, rounded once, NaNs
 * canonical. No branches, so loops over them vectorise without instructions for f16. One text for
 * all devices (math_f32.h). */
#ifndef SP_OPS_MATH_HALF_H
#define SP_OPS_MATH_HALF_H

SP_MATH_INLINE sp_f32 sp_float_of_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, size = h & 0x7fffu;
    const uint32_t normal = (size << 13) + (112u << 23); /* the bias is 112 less */
    const sp_f32 units = (float)(int32_t)size, subnormal = units * 0x1p-24f;
    uint32_t bits = size < 0x0400u ? sp_float_bits(subnormal) : normal;
    bits = size == 0x7c00u ? 0x7f800000u : bits;
    return size > 0x7c00u ? SP_NAN_F32 : sp_float_from_bits(bits | sign);
}

SP_MATH_INLINE uint16_t sp_f16_of_float(sp_f32 x)
{
    const uint32_t sign = sp_float_bits(x) & 0x80000000u, size = sp_float_bits(x) ^ sign;
    /* To 10 bits of fraction; a carry goes into the exponent: from 65520 on the result is
     * infinity. */
    const uint32_t normal = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1)) >> 13;
    /* The last bit of 0.5 + x is that of a subnormal f16. */
    const uint32_t subnormal = sp_float_bits(sp_float_from_bits(size) + 0.5f) - 0x3f000000u;
    uint32_t h = size < 0x38800000u ? subnormal : normal;
    h = size >= 0x47800000u ? 0x7c00u : h;
    return (uint16_t)(size > 0x7f800000u ? 0x7e00u : h | sign >> 16);
}

SP_MATH_INLINE sp_f32 sp_float_of_bf16(uint16_t h)
{
    return sp_canonical(sp_float_from_bits((uint32_t)h << 16));
}

SP_MATH_INLINE uint16_t sp_bf16_of_float(sp_f32 x)
{
    const uint32_t bits = sp_float_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return (uint16_t)(x == x ? rounded : 0x7fc0u);
}

/* The bits of an f32 with 10 bits of fraction, the type of operands that tensor cores call tf32. */
SP_MATH_INLINE uint32_t sp_tf32_bits_of_float(sp_f32 x)
{
    const uint32_t bits = sp_float_bits(x);
    const uint32_t rounded = (bits + 0xfffu + ((bits >> 13) & 1)) & ~0x1fffu;
    return x == x ? rounded : 0x7fc00000u;
}

/* Rounds to odd, so a second rounding, to fewer bits, is correct. */
SP_MATH_INLINE sp_f32 sp_odd_float_of_f64(sp_f64 x)
{
    const sp_f32 near = (float)x;
    const sp_f64 back = (double)near;
    const sp_f64 near_size = back < 0 ? -back : back, size = x < 0 ? -x : x;
    const uint32_t bits = sp_float_bits(near) - (uint32_t)(near_size > size);
    return ((back != x) & (x == x)) ? sp_float_from_bits(bits | 1) : near;
}

/* Integers that a double cannot represent keep 53 bits, the last of which is sticky: set if a
 * dropped bit was. It is far below the last bit of an f16 or bf16. */
SP_MATH_INLINE sp_f64 sp_sticky_f64_of_u64(uint64_t x)
{
    const uint64_t rest = x & 0x7ffu;
    return (double)(x >> 53 == 0 ? x : (x ^ rest) | (uint64_t)(rest != 0) << 11);
}

SP_MATH_INLINE sp_f64 sp_sticky_f64_of_i64(int64_t x)
{
    const sp_f64 size = sp_sticky_f64_of_u64(x < 0 ? 0 - (uint64_t)x : (uint64_t)x);
    return x < 0 ? -size : size;
}

#endif
