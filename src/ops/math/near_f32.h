/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a softmax where all elements are near the largest one, with half the
 * instructions and the same bits: exponentials are normal numbers there, and so are the quotients.
 * One text for all devices, after math_f32.h. */
#ifndef SP_OPS_MATH_NEAR_F32_H
#define SP_OPS_MATH_NEAR_F32_H

/* Are elements from `least` to `most` near? Not if one is NaN or infinite: their difference is no
 * number, or is infinite. */
SP_MATH_INLINE bool sp_is_near(sp_f32 least, sp_f32 most)
{
    return most - least <= 64.0f;
}

/* sp_expf for x in [-64, 0]. The exponent is added to that of a number near 1. */
SP_MATH_INLINE sp_f32 sp_near_expf(sp_f32 x)
{
    int32_t exponent;
    const sp_f32 p = sp_reduced_expm1f(x, &exponent) + 1.0f;
    return sp_float_from_bits(sp_float_bits(p) + ((uint32_t)exponent << 23));
}

/* e / sum, where e is such an exponential, `sum` at least 1 and no infinity, and `inverse` 1 / sum,
 * rounded. The first step brings the quotient within one unit in the last place, from where a step
 * with the exact remainder gives the rounded one (Markstein, Computation of elementary functions on
 * the IBM RISC System/6000 processor, 1990). The last bits of a remainder are above 2^-149. */
SP_MATH_INLINE sp_f32 sp_near_quotient(sp_f32 e, sp_f32 sum, sp_f32 inverse)
{
    sp_f32 quotient = e * inverse;
    quotient = sp_fmaf(sp_fmaf(-quotient, sum, e), inverse, quotient);
    return sp_fmaf(sp_fmaf(-quotient, sum, e), inverse, quotient);
}

#endif
