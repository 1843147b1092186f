/* SPDX-License-Identifier: Apache-2.0 */
/* HardSwish, x * clip(x + 3, 0, 6) / 6 with each step rounded, of vectors: the bits of
 * sp_hard_swishf, without its division where there is a fused multiply-add.
 *
 * With c = clip(x + 3, 0, 6) and a = x * c, both rounded, the result is a / 6, rounded to R(a / 6).
 * Instead, with r and s the floats next to 1/6, r above and s below it,
 *
 *     q = x * (c * r)      each rounded
 *     m = fma(q, 6, -a)    6q - a
 *     y = fma(-m, s, q)    q - m * s, rounded once
 *
 * Let u be the distance of floats around a / 6.
 *
 * - Normal results. q has three roundings and r's error, a has one: |q - a / 6| < 4u. a is an even
 *   multiple of u, since it is more than 4 times as large as a / 6, and so is 6q; m has few bits
 *   then and is exact. q - m / 6 is a / 6; m * s differs from m / 6 by less than 4u / 2^24. A
 *   number in the middle of two floats is h = (2n + 1) u / 2, and 6 (a / 6 - h) = a - 3 (2n + 1) u
 *   is an odd multiple of u: a / 6 is at least u / 6 away from h. So both are rounded to one float.
 *   (Below a power of two floats are denser: all of it holds with half of u.)
 * - Subnormal results: |x| < 2^-124, c is 3 and c * r is 1/2, u is 2^-149. q = R(x / 2), so again
 *   |q - a / 6| < u, and m is exact. If a was rounded it is an even multiple of u, and the same
 *   holds. If not, a / 6 is x / 2, which q is already, rounded to even: m is 0, or 3u or -3u for an
 *   odd x. m * s is smaller than u / 2, since s is below 1/6, so y is q.
 * - c = 0 (x <= -3): q and a are -0, m is -0 + 0 = +0, y is -0, as -0 / 6. x = +-0: the same, with
 *   the sign of x.
 * - a overflows: c * r is 1, q is x, m is -inf and y is inf, as inf / 6. x = inf: m is a NaN, in
 *   place of which it becomes -inf. x = -inf is -inf * 0, and it and NaN are NaN in q and in y. */
#ifndef SP_OPS_CPU_ARCH_HARD_SWISH_H
#define SP_OPS_CPU_ARCH_HARD_SWISH_H

#include "base/macros.h"
#include "ops/cpu/arch/vector_parts.h"

/* A NaN is any NaN. */
static SP_ALWAYS_INLINE sp_vector sp_vector_hard_swish(sp_vector x)
{
    const sp_vector six = sp_vector_splat(6);
    const sp_vector above = sp_vector_larger(sp_vector_splat(0), x + sp_vector_splat(3));
    const sp_vector c = sp_vector_smaller(six, above);
    const sp_vector a = x * c;
#if SP_HAS_HARDWARE_FMA
    const float more = 0x1.555556p-3f, less = 0x1.555554p-3f; /* than 1/6 */
    const sp_vector q = x * (c * sp_vector_splat(more));
    if (SP_PLANTED(hard_swish_by_product)) return q;
    const sp_vector m = sp_vector_fma(q, six, -a);
    const sp_vector number = sp_vector_larger(m, sp_vector_splat(-__builtin_inff()));
    const float s = SP_PLANTED(hard_swish_rounds_up) ? more : less;
    return sp_vector_fma(-number, sp_vector_splat(s), q);
#else
    return a / six;
#endif
}

/* x and y may be equal. */
static inline void sp_hard_swish_list(const float *x, int64_t count, float *y)
{
    int64_t i = 0;
    for (; i + SP_VECTOR <= count; i += SP_VECTOR) {
        const sp_vector result = sp_vector_hard_swish(sp_vector_load(x + i));
        sp_vector_store(y + i, sp_vector_canonical(result));
    }
    if (i == count) return;
    const sp_vector_part part = sp_vector_range(0, count - i);
    const sp_vector rest = sp_vector_load_part(x + i, part, sp_vector_splat(0));
    sp_vector_store_part(y + i, part, sp_vector_canonical(sp_vector_hard_swish(rest)));
}

#endif
