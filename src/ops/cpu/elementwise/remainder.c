/* SPDX-License-Identifier: Apache-2.0 */
/* Mod: of integers with the sign of the divisor (mod) or of the dividend (fmod), of floats with the
 * sign of the dividend, exactly. A divisor of 0 gives 0 for integers, NaN for floats. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"
#include "ops/math/fmod_f64.h"

#define SP_TEXT "ops/cpu/elementwise/remainder_signed.inc.h"
#include "ops/cpu/arch/each_signed.inc.h"
#define SP_TEXT "ops/cpu/elementwise/remainder_unsigned.inc.h"
#include "ops/cpu/arch/each_unsigned.inc.h"

static double fmod_f64(double a, double b)
{
    return sp_fmod(a, b);
}

/* The remainder of two floats is a float. */
static float fmod_f32(float a, float b)
{
    return sp_canonical((float)sp_fmod((double)a, (double)b));
}

#define SP_TYPE f32
#define SP_NAME fmod_f32
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE f64
#define SP_NAME fmod_f64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
