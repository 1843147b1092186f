/* SPDX-License-Identifier: Apache-2.0 */
/* y = a to the power b, with broadcasting. Floats: special cases as IEEE 754-2019's pow, NaNs
 * canonical. Integers wrap; a negative exponent gives the quotient 1 / a^-b: 0 unless a is 1 or -1,
 * and 0 for a = 0, as a division by 0 does. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"
#include "ops/math/pow_f32.h"

static double pow_f64(double x, double y)
{
    return sp_canonical_f64(y == 2 ? x * x : sp_pow(x, y));
}

static uint64_t pow_u64(uint64_t x, uint64_t n)
{
    uint64_t result = 1;
    for (; n > 0; n >>= 1, x *= x) {
        if (n & 1) result *= x;
    }
    return result;
}

static int64_t pow_i64(int64_t x, int64_t n)
{
    if (n >= 0) return (int64_t)pow_u64((uint64_t)x, (uint64_t)n);
    if (x != 1 && x != -1) return 0;
    return n & 1 ? x : 1;
}

static SP_ALWAYS_INLINE float any_pow_f32(float x, float y)
{
    return sp_powf(x, y);
}

#define SP_TYPE f32
#define SP_RESULT float
#define SP_NAME any_pow_f32
#include "ops/cpu/elementwise/binary_row.inc.h"
#undef SP_NAME

/* Fast path for squares, the most common power in models. */
static void row_pow_f32(const float *a, int64_t a_step, const float *b, int64_t b_step, float *y,
                        int64_t n)
{
    if (a_step == 1 && b_step == 0 && b[0] == 2) {
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = sp_canonical(a[i] * a[i]);
    } else {
        row_any_pow_f32(a, a_step, b, b_step, y, n);
    }
}

#define SP_NAME pow_f32
#define SP_FINISH(k, y, n) ((void)0)
#include "ops/cpu/elementwise/binary_kernel.inc.h"
#undef SP_TYPE

#define SP_TYPE f64
#define SP_NAME pow_f64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE i64
#define SP_NAME pow_i64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
#define SP_TYPE u64
#define SP_NAME pow_u64
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
