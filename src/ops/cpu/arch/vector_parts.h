/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of some elements of a vector, and comparisons. Elements that are left out are
 * not touched in memory, so they may be outside any object. */
#ifndef SP_OPS_CPU_ARCH_VECTOR_PARTS_H
#define SP_OPS_CPU_ARCH_VECTOR_PARTS_H

#include "ops/cpu/arch/isa.h"

/* Elements of a vector, element i in bit i. */
typedef uint32_t sp_vector_part;

#define SP_VECTOR_ALL ((sp_vector_part)((1u << SP_VECTOR) - 1))

/* The elements [first, last), clipped to those of a vector. */
static SP_ALWAYS_INLINE sp_vector_part sp_vector_range(int64_t first, int64_t last)
{
    const int64_t from = first < 0 ? 0 : first < SP_VECTOR ? first : SP_VECTOR;
    const int64_t to = last < from ? from : last < SP_VECTOR ? last : SP_VECTOR;
    return (sp_vector_part)((1u << to) - (1u << from));
}

#if defined(__AVX512F__)

typedef __mmask16 sp_vector_mask; /* the result of a comparison */

static SP_ALWAYS_INLINE sp_vector_mask sp_vector_mask_of(sp_vector_part part)
{
    return (sp_vector_mask)part;
}

/* Either is a NaN. */
static SP_ALWAYS_INLINE sp_vector_mask sp_vector_unordered(sp_vector a, sp_vector b)
{
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_UNORD_Q);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_select(sp_vector_mask mask, sp_vector a, sp_vector b)
{
    return (sp_vector)_mm512_mask_mov_ps((__m512)b, mask, (__m512)a);
}

/* a > b ? a : b */
static SP_ALWAYS_INLINE sp_vector sp_vector_larger(sp_vector a, sp_vector b)
{
    return (sp_vector)_mm512_max_ps((__m512)a, (__m512)b);
}

/* a < b ? a : b */
static SP_ALWAYS_INLINE sp_vector sp_vector_smaller(sp_vector a, sp_vector b)
{
    return (sp_vector)_mm512_min_ps((__m512)a, (__m512)b);
}

/* Elements outside `part` are those of `others`. */
static SP_ALWAYS_INLINE sp_vector sp_vector_load_part(const float *from, sp_vector_part part,
                                                      sp_vector others)
{
    return (sp_vector)_mm512_mask_loadu_ps((__m512)others, (__mmask16)part, from);
}

static SP_ALWAYS_INLINE void sp_vector_store_part(float *to, sp_vector_part part, sp_vector v)
{
    _mm512_mask_storeu_ps(to, (__mmask16)part, (__m512)v);
}

/* a[0], a[2], ..., then b[1], b[3], ... */
static SP_ALWAYS_INLINE sp_vector sp_vector_alternate(sp_vector a, sp_vector b)
{
    const __m512i places =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
    return (sp_vector)_mm512_permutex2var_ps((__m512)a, places, (__m512)b);
}

#else

typedef sp_vector_bits sp_vector_mask;

static SP_ALWAYS_INLINE sp_vector_mask sp_vector_mask_of(sp_vector_part part)
{
#if SP_VECTOR == 4
    const sp_vector_bits bits = {1, 2, 4, 8};
#elif SP_VECTOR == 8
    const sp_vector_bits bits = {1, 2, 4, 8, 16, 32, 64, 128};
#else
    const sp_vector_bits bits = {1,       2,       4,       8,      16,      32,
                                 64,      128,     1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                 1 << 12, 1 << 13, 1 << 14, 1 << 15};
#endif
    return (((sp_vector_bits){0} + (int32_t)part) & bits) != 0;
}

static SP_ALWAYS_INLINE sp_vector_mask sp_vector_unordered(sp_vector a, sp_vector b)
{
    return (sp_vector_mask)((a != a) | (b != b));
}

static SP_ALWAYS_INLINE sp_vector sp_vector_select(sp_vector_mask mask, sp_vector a, sp_vector b)
{
    return (sp_vector)(((sp_vector_bits)a & mask) | ((sp_vector_bits)b & ~mask));
}

#if defined(__AVX2__) && SP_VECTOR == 8

static SP_ALWAYS_INLINE sp_vector sp_vector_larger(sp_vector a, sp_vector b)
{
    return (sp_vector)_mm256_max_ps((__m256)a, (__m256)b);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_smaller(sp_vector a, sp_vector b)
{
    return (sp_vector)_mm256_min_ps((__m256)a, (__m256)b);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_load_part(const float *from, sp_vector_part part,
                                                      sp_vector others)
{
    const sp_vector_mask mask = sp_vector_mask_of(part);
    const sp_vector loaded = (sp_vector)_mm256_maskload_ps(from, (__m256i)mask);
    return sp_vector_select(mask, loaded, others);
}

static SP_ALWAYS_INLINE void sp_vector_store_part(float *to, sp_vector_part part, sp_vector v)
{
    _mm256_maskstore_ps(to, (__m256i)sp_vector_mask_of(part), (__m256)v);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_alternate(sp_vector a, sp_vector b)
{
    const __m256 pairs = _mm256_shuffle_ps((__m256)a, (__m256)b, _MM_SHUFFLE(3, 1, 2, 0));
    return (sp_vector)_mm256_permute4x64_pd((__m256d)pairs, _MM_SHUFFLE(3, 1, 2, 0));
}

#else

/* AArch64's instructions for a maximum take +0 of two zeros, and give a NaN for a NaN. */
static SP_ALWAYS_INLINE sp_vector sp_vector_larger(sp_vector a, sp_vector b)
{
    return sp_vector_select(a > b, a, b);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_smaller(sp_vector a, sp_vector b)
{
    return sp_vector_select(a < b, a, b);
}

static SP_ALWAYS_INLINE sp_vector sp_vector_load_part(const float *from, sp_vector_part part,
                                                      sp_vector others)
{
    if (part == SP_VECTOR_ALL) return sp_vector_load(from);
    for (int i = 0; i < SP_VECTOR; i++) {
        if (part >> i & 1) others[i] = from[i];
    }
    return others;
}

static SP_ALWAYS_INLINE void sp_vector_store_part(float *to, sp_vector_part part, sp_vector v)
{
    for (int i = 0; i < SP_VECTOR; i++) {
        if (part >> i & 1) to[i] = v[i];
    }
}

static SP_ALWAYS_INLINE sp_vector sp_vector_alternate(sp_vector a, sp_vector b)
{
#if SP_VECTOR == 4
    return (sp_vector){a[0], a[2], b[1], b[3]};
#elif SP_VECTOR == 8
    return (sp_vector){a[0], a[2], a[4], a[6], b[1], b[3], b[5], b[7]};
#else
    return (sp_vector){a[0], a[2], a[4], a[6], a[8], a[10], a[12], a[14],
                       b[1], b[3], b[5], b[7], b[9], b[11], b[13], b[15]};
#endif
}

#endif
#endif

/* Element i of the result is element i + step, for i below it; others are any. */
#if SP_VECTOR == 16
#define SP_VECTOR_FROM_8(v)                                                                        \
    __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
#define SP_VECTOR_FROM_4(v)                                                                        \
    __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7)
#define SP_VECTOR_FROM_2(v)                                                                        \
    __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3)
#define SP_VECTOR_FROM_1(v)                                                                        \
    __builtin_shufflevector(v, v, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
#elif SP_VECTOR == 8
#define SP_VECTOR_FROM_4(v) __builtin_shufflevector(v, v, 4, 5, 6, 7, 4, 5, 6, 7)
#define SP_VECTOR_FROM_2(v) __builtin_shufflevector(v, v, 2, 3, 2, 3, 2, 3, 2, 3)
#define SP_VECTOR_FROM_1(v) __builtin_shufflevector(v, v, 1, 1, 1, 1, 1, 1, 1, 1)
#else
#define SP_VECTOR_FROM_2(v) __builtin_shufflevector(v, v, 2, 3, 2, 3)
#define SP_VECTOR_FROM_1(v) __builtin_shufflevector(v, v, 1, 1, 1, 1)
#endif

/* Element i takes element i + step in, for steps 8, 4, 2 and 1: element 0 at the end. */
static SP_ALWAYS_INLINE float sp_vector_tree_sum(sp_vector v)
{
#if SP_VECTOR >= 16
    v += SP_VECTOR_FROM_8(v);
#endif
#if SP_VECTOR >= 8
    v += SP_VECTOR_FROM_4(v);
#endif
    v += SP_VECTOR_FROM_2(v);
    v += SP_VECTOR_FROM_1(v);
    return v[0];
}

/* The largest element of a vector without NaN; a zero of either sign. */
static SP_ALWAYS_INLINE float sp_vector_largest(sp_vector v)
{
#if SP_VECTOR >= 16
    v = sp_vector_larger(v, SP_VECTOR_FROM_8(v));
#endif
#if SP_VECTOR >= 8
    v = sp_vector_larger(v, SP_VECTOR_FROM_4(v));
#endif
    v = sp_vector_larger(v, SP_VECTOR_FROM_2(v));
    v = sp_vector_larger(v, SP_VECTOR_FROM_1(v));
    return v[0];
}

/* The first `count` elements; all if there are more. */
static SP_ALWAYS_INLINE void sp_vector_store_first(float *to, int64_t count, sp_vector v)
{
    if (count >= SP_VECTOR) sp_vector_store(to, v);
    else sp_vector_store_part(to, sp_vector_range(0, count), v);
}

#endif
