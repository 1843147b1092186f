/* SPDX-License-Identifier: Apache-2.0 */
/* y = a op b with broadcasting; y may be the memory of an operand that has y's shape. Floats: one
 * rounded operation, NaNs canonical; f32 then the activation. Integers wrap; a division by 0 gives
 * 0 and the smallest number divided by -1 itself, on every processor. */
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define FLOAT_OPS(suffix, type, canonical)                                                         \
    static SP_ALWAYS_INLINE type add_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(a + b);                                                                   \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sub_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(a - b);                                                                   \
    }                                                                                              \
    static SP_ALWAYS_INLINE type mul_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(a * b);                                                                   \
    }                                                                                              \
    static SP_ALWAYS_INLINE type div_##suffix(type a, type b)                                      \
    {                                                                                              \
        return canonical(a / b);                                                                   \
    }

/* Unsigned arithmetic wraps by definition, if it is not of a type that is promoted to int. */
#define INT_OPS(suffix, type, wide)                                                                \
    static SP_ALWAYS_INLINE type add_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((wide)a + (wide)b);                                                          \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sub_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((wide)a - (wide)b);                                                          \
    }                                                                                              \
    static SP_ALWAYS_INLINE type mul_##suffix(type a, type b)                                      \
    {                                                                                              \
        return (type)((wide)a * (wide)b);                                                          \
    }                                                                                              \
    static SP_ALWAYS_INLINE type div_##suffix(type a, type b)                                      \
    {                                                                                              \
        if (b == 0) return 0;                                                                      \
        return b == -1 ? sub_##suffix(0, a) : (type)(a / b);                                       \
    }

#define UNSIGNED_DIV(suffix, type)                                                                 \
    static SP_ALWAYS_INLINE type div_##suffix(type a, type b)                                      \
    {                                                                                              \
        return b == 0 ? 0 : (type)(a / b);                                                         \
    }

FLOAT_OPS(f32, float, sp_canonical)
FLOAT_OPS(f64, double, sp_canonical_f64)
INT_OPS(i8, int8_t, uint32_t)
INT_OPS(i16, int16_t, uint32_t)
INT_OPS(i32, int32_t, uint32_t)
INT_OPS(i64, int64_t, uint64_t)
UNSIGNED_DIV(u8, uint8_t)
UNSIGNED_DIV(u16, uint16_t)
UNSIGNED_DIV(u32, uint32_t)
UNSIGNED_DIV(u64, uint64_t)

#define ACTIVATE(k, y, n) sp_activate((k)->activation, y, 1, 0, n)
#define ACTIVATED_KERNEL(name)                                                                     \
    SP_BINARY_ROW(name, name, float, float)                                                        \
    SP_BINARY_KERNEL_OF_ROWS(name, float, float, ACTIVATE)

#define KERNEL(name, type) SP_BINARY_KERNEL(name, name, type, type)
#define KERNELS(suffix, type)                                                                      \
    KERNEL(add_##suffix, type)                                                                     \
    KERNEL(sub_##suffix, type)                                                                     \
    KERNEL(mul_##suffix, type)                                                                     \
    KERNEL(div_##suffix, type)

ACTIVATED_KERNEL(add_f32)
ACTIVATED_KERNEL(sub_f32)
ACTIVATED_KERNEL(mul_f32)
ACTIVATED_KERNEL(div_f32)
KERNELS(f64, double)
KERNELS(i8, int8_t)
KERNELS(i16, int16_t)
KERNELS(i32, int32_t)
KERNELS(i64, int64_t)
KERNEL(div_u8, uint8_t)
KERNEL(div_u16, uint16_t)
KERNEL(div_u32, uint32_t)
KERNEL(div_u64, uint64_t)
