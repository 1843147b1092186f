/* SPDX-License-Identifier: Apache-2.0 */
/* Casts between all element types. To a float type: to nearest even, rounded once, too large is
 * infinity, NaNs canonical. Floats to integers: towards zero, what is outside the type becomes its
 * nearest end, NaN is 0. Integers to smaller integers: the low bits. To bool: 0 is false, all else,
 * NaN too, is true; from bool: 0 or 1. */
#include <streampool/dtype.h>

#include "ops/cpu/arch/half.h"

/* ---- one element: from_CARRIER, where a carrier holds every number of the source exactly ---- */

#define FROM_FLOAT(suffix, type, carrier, short_name, most, least, above)                          \
    static SP_ALWAYS_INLINE type suffix##_from_##short_name(carrier x)                             \
    {                                                                                              \
        if (x >= (carrier)(above)) return (type)(most);                                            \
        if (x <= (carrier)(least)) return (type)(least);                                           \
        return x == x ? (type)x : 0;                                                               \
    }

#define TO_INTEGER(suffix, type, most, least, above)                                               \
    FROM_FLOAT(suffix, type, float, f, most, least, above)                                         \
    FROM_FLOAT(suffix, type, double, d, most, least, above)                                        \
    static SP_ALWAYS_INLINE type suffix##_from_i(int64_t x)                                        \
    {                                                                                              \
        return (type)x;                                                                            \
    }                                                                                              \
    static SP_ALWAYS_INLINE type suffix##_from_u(uint64_t x)                                       \
    {                                                                                              \
        return (type)x;                                                                            \
    }

TO_INTEGER(i8, int8_t, INT8_MAX, INT8_MIN, 0x1p7)
TO_INTEGER(i16, int16_t, INT16_MAX, INT16_MIN, 0x1p15)
TO_INTEGER(i32, int32_t, INT32_MAX, INT32_MIN, 0x1p31)
TO_INTEGER(i64, int64_t, INT64_MAX, INT64_MIN, 0x1p63)
TO_INTEGER(u8, uint8_t, UINT8_MAX, 0, 0x1p8)
TO_INTEGER(u16, uint16_t, UINT16_MAX, 0, 0x1p16)
TO_INTEGER(u32, uint32_t, UINT32_MAX, 0, 0x1p32)
TO_INTEGER(u64, uint64_t, UINT64_MAX, 0, 0x1p64)

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

/* ---- rows: every pair ---- */

#define ROW(from, from_type, load, carrier, to, to_type)                                           \
    static void row_##from##_##to(const from_type *x, to_type *y, int64_t n)                       \
    {                                                                                              \
        SP_INDEPENDENT for (int64_t i = 0; i < n; i++) y[i] = to##_from_##carrier(load(x[i]));     \
    }

#define ROW_CASE(from, dtype, to, to_type)                                                         \
    case dtype:                                                                                    \
        row_##from##_##to(x, (to_type *)y + first, n);                                             \
        break;

#define CAST_KERNEL(from, from_type, load, carrier)                                                \
    ROW(from, from_type, load, carrier, f32, float)                                                \
    ROW(from, from_type, load, carrier, f64, double)                                               \
    ROW(from, from_type, load, carrier, f16, uint16_t)                                             \
    ROW(from, from_type, load, carrier, bf16, uint16_t)                                            \
    ROW(from, from_type, load, carrier, i8, int8_t)                                                \
    ROW(from, from_type, load, carrier, i16, int16_t)                                              \
    ROW(from, from_type, load, carrier, i32, int32_t)                                              \
    ROW(from, from_type, load, carrier, i64, int64_t)                                              \
    ROW(from, from_type, load, carrier, u8, uint8_t)                                               \
    ROW(from, from_type, load, carrier, u16, uint16_t)                                             \
    ROW(from, from_type, load, carrier, u32, uint32_t)                                             \
    ROW(from, from_type, load, carrier, u64, uint64_t)                                             \
    ROW(from, from_type, load, carrier, bool, uint8_t)                                             \
    sp_status SP_KERNEL(cast_##from)(const sp_tile *tile)                                          \
    {                                                                                              \
        const sp_cast_constants *k = tile->constants;                                              \
        const int64_t first = tile->index[0] * k->tile_count;                                      \
        const int64_t left = k->count - first;                                                     \
        const int64_t n = left < k->tile_count ? left : k->tile_count;                             \
        const from_type *x = (const from_type *)tile->bindings[0] + first;                         \
        void *y = tile->bindings[1];                                                               \
        switch ((sp_dtype)k->to) {                                                                 \
            ROW_CASE(from, SP_F32, f32, float)                                                     \
            ROW_CASE(from, SP_F64, f64, double)                                                    \
            ROW_CASE(from, SP_F16, f16, uint16_t)                                                  \
            ROW_CASE(from, SP_BF16, bf16, uint16_t)                                                \
            ROW_CASE(from, SP_I8, i8, int8_t)                                                      \
            ROW_CASE(from, SP_I16, i16, int16_t)                                                   \
            ROW_CASE(from, SP_I32, i32, int32_t)                                                   \
            ROW_CASE(from, SP_I64, i64, int64_t)                                                   \
            ROW_CASE(from, SP_U8, u8, uint8_t)                                                     \
            ROW_CASE(from, SP_U16, u16, uint16_t)                                                  \
            ROW_CASE(from, SP_U32, u32, uint32_t)                                                  \
            ROW_CASE(from, SP_U64, u64, uint64_t)                                                  \
            ROW_CASE(from, SP_BOOL, bool, uint8_t)                                                 \
        case SP_DTYPE_NONE:                                                                        \
            break;                                                                                 \
        }                                                                                          \
        return SP_OK;                                                                              \
    }

static SP_ALWAYS_INLINE uint64_t load_bool(uint8_t x)
{
    return x != 0;
}

CAST_KERNEL(f32, float, , f)
CAST_KERNEL(f64, double, , d)
CAST_KERNEL(f16, uint16_t, sp_float_of_f16, f)
CAST_KERNEL(bf16, uint16_t, sp_float_of_bf16, f)
CAST_KERNEL(i8, int8_t, , i)
CAST_KERNEL(i16, int16_t, , i)
CAST_KERNEL(i32, int32_t, , i)
CAST_KERNEL(i64, int64_t, , i)
CAST_KERNEL(u8, uint8_t, , u)
CAST_KERNEL(u16, uint16_t, , u)
CAST_KERNEL(u32, uint32_t, , u)
CAST_KERNEL(u64, uint64_t, , u)
CAST_KERNEL(bool, uint8_t, load_bool, u)
