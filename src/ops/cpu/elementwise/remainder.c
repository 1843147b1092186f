/* SPDX-License-Identifier: Apache-2.0 */
/* Mod: of integers with the sign of the divisor (mod) or of the dividend (fmod), of floats with the
 * sign of the dividend, exactly. A divisor of 0 gives 0 for integers, NaN for floats. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define SP_TEXT "ops/cpu/elementwise/remainder_signed.inc.h"
#include "ops/cpu/arch/each_signed.inc.h"
#define SP_TEXT "ops/cpu/elementwise/remainder_unsigned.inc.h"
#include "ops/cpu/arch/each_unsigned.inc.h"

/* The float of `mantissa` (below 2^53) times 2^(exponent - 1075); exponent is at least 1. */
static inline double from_parts(uint64_t mantissa, int64_t exponent)
{
    if (mantissa == 0) return 0;
    int64_t shift = __builtin_clzll(mantissa) - 11;
    if (shift >= exponent) { /* subnormal */
        return sp_double_from_bits(mantissa << (exponent - 1));
    }
    exponent -= shift;
    return sp_double_from_bits(((mantissa << shift) & 0x000fffffffffffffu) | (uint64_t)exponent
                                                                                 << 52);
}

/* Long division of the mantissas, 11 bits at a time. */
static double fmod_f64(double a, double b)
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
    return sp_double_from_bits(sp_double_bits(from_parts(rest, y_exponent)) | sign);
}

/* The remainder of two floats is a float. */
static float fmod_f32(float a, float b)
{
    return sp_canonical((float)fmod_f64((double)a, (double)b));
}

#define SP_TYPE f32
#define SP_NAME fmod_f32
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE f64
#define SP_NAME fmod_f64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
