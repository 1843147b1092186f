/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes a square of vectors in registers: blocks of 1, 2, 4, ... elements on both sides of the
 * diagonal change places. And permutations of a vector. */
#ifndef SP_OPS_CPU_ARCH_VECTOR_TRANSPOSE_H
#define SP_OPS_CPU_ARCH_VECTOR_TRANSPOSE_H

#include "ops/cpu/arch/vector_parts.h"

/* Element i of the result is element i ^ distance. */
static SP_ALWAYS_INLINE sp_vector sp_vector_swap(sp_vector v, const int32_t distance)
{
#if defined(__AVX512F__)
    const __m512i index =
        _mm512_xor_si512(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                         _mm512_set1_epi32(distance));
    return (sp_vector)_mm512_permutexvar_ps(index, (__m512)v);
#elif defined(__AVX2__) && SP_VECTOR == 8
    const __m256i index =
        _mm256_xor_si256(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(distance));
    return (sp_vector)_mm256_permutevar8x32_ps((__m256)v, index);
#else
    sp_vector result;
    for (int32_t i = 0; i < SP_VECTOR; i++) result[i] = v[i ^ distance];
    return result;
#endif
}

/* Element i of the result is element index[i]. */
static SP_ALWAYS_INLINE sp_vector sp_vector_permute(sp_vector v, sp_vector_bits index)
{
#if defined(__AVX512F__)
    return (sp_vector)_mm512_permutexvar_ps((__m512i)index, (__m512)v);
#elif defined(__AVX2__) && SP_VECTOR == 8
    return (sp_vector)_mm256_permutevar8x32_ps((__m256)v, (__m256i)index);
#else
    sp_vector result;
    for (int32_t i = 0; i < SP_VECTOR; i++) result[i] = v[index[i]];
    return result;
#endif
}

/* Elements whose index has the bit `distance`. */
static SP_ALWAYS_INLINE sp_vector_mask sp_vector_upper(const uint32_t distance)
{
    sp_vector_part part = 0;
    for (uint32_t i = 0; i < SP_VECTOR; i++) part |= (i & distance) != 0 ? 1u << i : 0;
    return sp_vector_mask_of(part);
}

static SP_ALWAYS_INLINE void sp_vector_transpose(sp_vector rows[SP_VECTOR])
{
#pragma GCC unroll 4
    for (uint32_t distance = 1; distance < SP_VECTOR; distance *= 2) {
        const sp_vector_mask upper = sp_vector_upper(distance);
#pragma GCC unroll 16
        for (uint32_t i = 0; i < SP_VECTOR; i++) {
            if ((i & distance) != 0) continue;
            const sp_vector a = rows[i], b = rows[i + distance];
            rows[i] = sp_vector_select(upper, sp_vector_swap(b, (int32_t)distance), a);
            rows[i + distance] = sp_vector_select(upper, b, sp_vector_swap(a, (int32_t)distance));
        }
    }
}

#endif
