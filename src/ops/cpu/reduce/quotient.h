/* SPDX-License-Identifier: Apache-2.0 */
/* Quotients of many elements by the same divisors without divisions, correctly rounded as by one
 * (P. Markstein, IBM J. Res. Dev. 34, 1990). With high = 1 / b and low = (1 - b high) / b, rounded,
 *
 *     q = fma(a, high, a low)    is one of the two floats beside a / b,
 *     r = a - b q                is exact,
 *     fma(r, high, q)            is a / b, rounded once,
 *
 * if nothing underflows: for divisors from 1 to 2^13, and elements that are 0, a NaN, or from
 * SP_QUOTIENT_LEAST to 1. */
#ifndef SP_OPS_CPU_REDUCE_QUOTIENT_H
#define SP_OPS_CPU_REDUCE_QUOTIENT_H

#include "base/macros.h"
#include "ops/cpu/arch/vector_parts.h"

#define SP_QUOTIENT_LEAST 8.2718061e-25f /* 2^-80; r is a multiple of 2^-149 down to 2^-91 */

typedef uint32_t sp_vector_unsigned __attribute__((vector_size(SP_VECTOR * 4)));

typedef struct sp_divisor {
    sp_vector by, high, low;
} sp_divisor;

static SP_ALWAYS_INLINE sp_divisor sp_divisor_of(sp_vector by)
{
    const sp_vector one = sp_vector_splat(1), high = one / by;
    return (sp_divisor){.by = by, .high = high, .low = sp_vector_fma(-by, high, one) / by};
}

static SP_ALWAYS_INLINE sp_vector sp_divide(const sp_divisor *d, sp_vector a)
{
    const sp_vector q = sp_vector_fma(a, d->high, a * d->low);
    return sp_vector_fma(sp_vector_fma(-d->by, q, a), d->high, q);
}

static SP_ALWAYS_INLINE sp_vector_unsigned sp_vector_smaller_unsigned(sp_vector_unsigned a,
                                                                      sp_vector_unsigned b)
{
#if defined(__AVX512F__)
    return (sp_vector_unsigned)_mm512_min_epu32((__m512i)a, (__m512i)b);
#elif defined(__AVX2__) && SP_VECTOR == 8
    return (sp_vector_unsigned)_mm256_min_epu32((__m256i)a, (__m256i)b);
#elif defined(SP_NEON)
    return (sp_vector_unsigned)vminq_u32((uint32x4_t)a, (uint32x4_t)b);
#else
    const sp_vector_unsigned is_smaller = (sp_vector_unsigned)(a < b);
    return (a & is_smaller) | (b & ~is_smaller);
#endif
}

/* The least of elements, none of which has a sign: as bits, less 1, so that 0 is the largest. */
static SP_ALWAYS_INLINE sp_vector_unsigned sp_least_join(sp_vector_unsigned least, sp_vector a)
{
    return sp_vector_smaller_unsigned((sp_vector_unsigned)a - 1, least);
}

/* Can all of them be divided? */
static SP_ALWAYS_INLINE bool sp_least_divides(sp_vector_unsigned least)
{
    if (!SP_HAS_HARDWARE_FMA) return false;
    uint32_t all = UINT32_MAX;
    for (int i = 0; i < SP_VECTOR; i++) all = least[i] < all ? least[i] : all;
    return all >= sp_float_bits(SP_QUOTIENT_LEAST) - 1 || SP_PLANTED(quotient_of_tiny);
}

#endif
