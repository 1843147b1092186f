/* SPDX-License-Identifier: Apache-2.0 */
/* f16 in and out of f32, where all arithmetic on f16 happens. Without branches, so loops over them
 * vectorise. */
#ifndef SP_OPS_CPU_HALF_H
#define SP_OPS_CPU_HALF_H

#include "ops/cpu/isa.h"

/* Exact. */
static SP_ALWAYS_INLINE float sp_half_to_float(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t rest = (uint32_t)(half & 0x7fffu) << 13;
    /* Another bias of the exponent, exactly; subnormals become normal on the way. */
    const uint32_t number = sp_float_bits(sp_float_from_bits(rest) * 0x1p112f);
    return sp_float_from_bits(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : number));
}

/* To nearest, ties to even; every NaN becomes 0x7e00. */
static SP_ALWAYS_INLINE uint16_t sp_float_to_half(float x)
{
    const uint32_t sign = sp_float_bits(x) & 0x80000000u;
    const uint32_t size = sp_float_bits(x) ^ sign;
    /* An ulp of 1/2 is the smallest f16: the addition rounds to a multiple of it. */
    const uint32_t small = sp_float_bits(sp_float_from_bits(size) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (size + ((size >> 13) & 1) + 0xfffu - (112u << 23)) >> 13;
    uint32_t half = size < 0x38800000u ? small : normal;
    half = size >= 0x477ff000u ? 0x7c00u : half; /* 65520 and more round to infinity */
    half = size > 0x7f800000u ? 0x7e00u : half;
    return (uint16_t)(half | (size > 0x7f800000u ? 0 : sign >> 16));
}

#endif
