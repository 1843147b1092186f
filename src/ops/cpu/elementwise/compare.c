/* SPDX-License-Identifier: Apache-2.0 */
/* Max, Min, comparisons and logic with broadcasting. Max and Min: a NaN on either side gives the
 * canonical NaN, the first of equals stays (+0 and -0 are equal). Comparisons with a NaN are false.
 * Bools are written as 0 or 1 and any other byte counts as true. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define FLOAT_EXTREMES(suffix, type, canonical)                                                    \
    static SP_ALWAYS_INLINE type max_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(((b > a) | (b != b)) ? b : a);                                            \
    }                                                                                              \
    static SP_ALWAYS_INLINE type min_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(((b < a) | (b != b)) ? b : a);                                            \
    }

#define INT_EXTREMES(suffix, type)                                                                 \
    static SP_ALWAYS_INLINE type max_##suffix(type a, type b)                                      \
    {                                                                                              \
        return b > a ? b : a;                                                                      \
    }                                                                                              \
    static SP_ALWAYS_INLINE type min_##suffix(type a, type b)                                      \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }

#define ORDER(suffix, type)                                                                        \
    static SP_ALWAYS_INLINE uint8_t less_##suffix(type a, type b)                                  \
    {                                                                                              \
        return a < b;                                                                              \
    }                                                                                              \
    static SP_ALWAYS_INLINE uint8_t less_or_equal_##suffix(type a, type b)                         \
    {                                                                                              \
        return a <= b;                                                                             \
    }

#define EQUALITY(suffix, type)                                                                     \
    static SP_ALWAYS_INLINE uint8_t equal_##suffix(type a, type b)                                 \
    {                                                                                              \
        return a == b;                                                                             \
    }                                                                                              \
    SP_BINARY_KERNEL(equal_##suffix, equal_##suffix, type, uint8_t)

#define KERNELS(suffix, type)                                                                      \
    ORDER(suffix, type)                                                                            \
    SP_BINARY_KERNEL(max_##suffix, max_##suffix, type, type)                                       \
    SP_BINARY_KERNEL(min_##suffix, min_##suffix, type, type)                                       \
    SP_BINARY_KERNEL(less_##suffix, less_##suffix, type, uint8_t)                                  \
    SP_BINARY_KERNEL(less_or_equal_##suffix, less_or_equal_##suffix, type, uint8_t)

#define INT_KERNELS(suffix, type)                                                                  \
    INT_EXTREMES(suffix, type)                                                                     \
    KERNELS(suffix, type)

FLOAT_EXTREMES(f32, float, sp_canonical)
FLOAT_EXTREMES(f64, double, sp_canonical_f64)
KERNELS(f32, float)
KERNELS(f64, double)
INT_KERNELS(i8, int8_t)
INT_KERNELS(i16, int16_t)
INT_KERNELS(i32, int32_t)
INT_KERNELS(i64, int64_t)
INT_KERNELS(u8, uint8_t)
INT_KERNELS(u16, uint16_t)
INT_KERNELS(u32, uint32_t)
INT_KERNELS(u64, uint64_t)

EQUALITY(f32, float)
EQUALITY(f64, double)
EQUALITY(i8, int8_t)
EQUALITY(i16, int16_t)
EQUALITY(i32, int32_t)
EQUALITY(i64, int64_t)

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

SP_BINARY_KERNEL(and_bool, and_bool, uint8_t, uint8_t)
SP_BINARY_KERNEL(or_bool, or_bool, uint8_t, uint8_t)
SP_BINARY_KERNEL(xor_bool, xor_bool, uint8_t, uint8_t)
SP_BINARY_KERNEL(equal_bool, equal_bool, uint8_t, uint8_t)
