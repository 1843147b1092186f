/* SPDX-License-Identifier: Apache-2.0 */
/* Max, Min, comparisons and logic with broadcasting. Max and Min: a NaN on either side gives the
 * canonical NaN, of equals the first is taken (+0 and -0 are equal). Comparisons with a NaN are
 * false. Bools are written as 0 or 1 and any other byte counts as true. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define SP_TYPE f32
#include "ops/cpu/elementwise/compare_float.inc.h"
#define SP_TYPE f64
#include "ops/cpu/elementwise/compare_float.inc.h"
#define SP_TEXT "ops/cpu/elementwise/compare_integer.inc.h"
#include "ops/cpu/arch/each_integer.inc.h"

#define SP_TYPE f32
#include "ops/cpu/elementwise/equal.inc.h"
#define SP_TYPE f64
#include "ops/cpu/elementwise/equal.inc.h"
#define SP_TEXT "ops/cpu/elementwise/equal.inc.h"
#include "ops/cpu/arch/each_signed.inc.h"

static SP_ALWAYS_INLINE uint8_t and_bool(uint8_t a, uint8_t b)
{
    return (a != 0) & (b != 0);
}
static SP_ALWAYS_INLINE uint8_t or_bool(uint8_t a, uint8_t b)
{
    return (a | b) != 0;
}
static SP_ALWAYS_INLINE uint8_t xor_bool(uint8_t a, uint8_t b)
{
    return (a != 0) != (b != 0);
}
static SP_ALWAYS_INLINE uint8_t equal_bool(uint8_t a, uint8_t b)
{
    return (a != 0) == (b != 0);
}

#define SP_TYPE u8
#define SP_NAME and_bool
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME or_bool
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME xor_bool
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME equal_bool
#include "ops/cpu/elementwise/binary.inc.h"
#undef SP_TYPE
