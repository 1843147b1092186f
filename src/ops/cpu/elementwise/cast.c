/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between all element types. To a float type: to nearest even, rounded once, overflow is
 * infinity, NaNs canonical. Floats to integers: towards zero, saturating, NaN is 0. Integers to
 * smaller integers: the low bits. To bool: 0 is false, everything else, NaN too, is true; from
 * bool: 0 or 1. */
#include <streampool/dtype.h>

#include "ops/cpu/arch/typed.h"

/* ---- one element: from_CARRIER, where a carrier represents every number of the source exactly
 * ---- */

#define SP_TYPE i8
#define SP_ABOVE 0x1p7
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE i16
#define SP_ABOVE 0x1p15
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE i32
#define SP_ABOVE 0x1p31
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE i64
#define SP_ABOVE 0x1p63
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE u8
#define SP_ABOVE 0x1p8
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE u16
#define SP_ABOVE 0x1p16
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE u32
#define SP_ABOVE 0x1p32
#include "ops/cpu/elementwise/cast_to_integer.inc.h"
#define SP_TYPE u64
#define SP_ABOVE 0x1p64
#include "ops/cpu/elementwise/cast_to_integer.inc.h"

#define FROM(suffix, short_name, type, carrier, expression)                                        \
    static SP_ALWAYS_INLINE type suffix##_from_##short_name(carrier x)                             \
    {                                                                                              \
        return expression;                                                                         \
    }

FROM(f32, f, float, float, sp_canonical(x))
FROM(f32, d, float, double, sp_canonical((float)x))
FROM(f32, i, float, int64_t, (float)x)
FROM(f32, u, float, uint64_t, (float)x)
FROM(f64, f, double, float, sp_canonical_f64((double)x))
FROM(f64, d, double, double, sp_canonical_f64(x))
FROM(f64, i, double, int64_t, (double)x)
FROM(f64, u, double, uint64_t, (double)x)
FROM(f16, f, uint16_t, float, sp_f16_of_float(x))
FROM(f16, d, uint16_t, double, sp_f16_of_float(sp_odd_float_of_f64(x)))
FROM(f16, i, uint16_t, int64_t, sp_f16_of_float(sp_odd_float_of_f64(sp_sticky_f64_of_i64(x))))
FROM(f16, u, uint16_t, uint64_t, sp_f16_of_float(sp_odd_float_of_f64(sp_sticky_f64_of_u64(x))))
FROM(bf16, f, uint16_t, float, sp_bf16_of_float(x))
FROM(bf16, d, uint16_t, double, sp_bf16_of_float(sp_odd_float_of_f64(x)))
FROM(bf16, i, uint16_t, int64_t, sp_bf16_of_float(sp_odd_float_of_f64(sp_sticky_f64_of_i64(x))))
FROM(bf16, u, uint16_t, uint64_t, sp_bf16_of_float(sp_odd_float_of_f64(sp_sticky_f64_of_u64(x))))
FROM(bool, f, uint8_t, float, x != 0)
FROM(bool, d, uint8_t, double, x != 0)
FROM(bool, i, uint8_t, int64_t, x != 0)
FROM(bool, u, uint8_t, uint64_t, x != 0)

/* ---- rows, for every pair of types ---- */

#define ROW(to, to_type)                                                                           \
    static void SP_OF(row_##to)(const SP_ELEMENT *x, to_type *y, int64_t n)                        \
    {                                                                                              \
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] =                                      \
            SP_GLUE(to##_from, SP_CARRIER)(SP_LOAD(x[i]));                                         \
    }

#define ROW_CASE(dtype, to, to_type)                                                               \
    case dtype:                                                                                    \
        SP_OF(row_##to)(x, (to_type *)y + first, n);                                               \
        break;

#define SP_TYPE f32
#define SP_CARRIER f
#define SP_NAME cast_f32
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE f64
#define SP_CARRIER d
#define SP_NAME cast_f64
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE f16
#define SP_CARRIER f
#define SP_NAME cast_f16
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE bf16
#define SP_CARRIER f
#define SP_NAME cast_bf16
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE i8
#define SP_CARRIER i
#define SP_NAME cast_i8
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE i16
#define SP_CARRIER i
#define SP_NAME cast_i16
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE i32
#define SP_CARRIER i
#define SP_NAME cast_i32
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE i64
#define SP_CARRIER i
#define SP_NAME cast_i64
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE u8
#define SP_CARRIER u
#define SP_NAME cast_u8
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE u16
#define SP_CARRIER u
#define SP_NAME cast_u16
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE u32
#define SP_CARRIER u
#define SP_NAME cast_u32
#include "ops/cpu/elementwise/cast.inc.h"
#define SP_TYPE u64
#define SP_CARRIER u
#define SP_NAME cast_u64
#include "ops/cpu/elementwise/cast.inc.h"

/* SP_TYPE is macro-expanded and `bool` is a macro, so the type is called `logical` here. */
static SP_ALWAYS_INLINE uint64_t load_bool(uint8_t x)
{
    return x != 0;
}

typedef uint8_t sp_element_logical;
#define sp_load_logical load_bool

#define SP_TYPE logical
#define SP_CARRIER u
#define SP_NAME cast_bool
#include "ops/cpu/elementwise/cast.inc.h"
