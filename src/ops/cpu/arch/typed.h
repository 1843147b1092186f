/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for templates, which are compiled for several element types. A template is a file
 * NAME.inc.h that is included once per type, so debuggers, linters and coverage see its lines:
 *
 *     #define SP_TYPE f16
 *     #include "ops/cpu/reduce/softmax.inc.h"
 *
 * arch/each_integer.inc.h and its siblings include a template for all types of a class.
 *
 * In it SP_OF(name) is name_f16, SP_ELEMENT the type of an element in memory, SP_WIDE the type that
 * it is computed in, and SP_WIDE_OF(name) name_f32. A template undefines its parameters at its end;
 * one that is included by other templates leaves SP_TYPE defined. */
#ifndef SP_OPS_CPU_ARCH_TYPED_H
#define SP_OPS_CPU_ARCH_TYPED_H

#include "ops/cpu/arch/half.h"

#define SP_GLUE_PASTE_(a, b) a##_##b
#define SP_GLUE(a, b) SP_GLUE_PASTE_(a, b)

#define SP_OF(name) SP_GLUE(name, SP_TYPE)
#define SP_WIDE_OF(name) SP_GLUE(name, SP_OF(sp_wide))
#define SP_WRAPPING_OF(name) SP_GLUE(name, SP_OF(sp_wrapping))

#define SP_ELEMENT SP_OF(sp_element)
#define SP_WIDE SP_WIDE_OF(sp_element)
#define SP_WRAPPING SP_WRAPPING_OF(sp_element)
#define SP_LOAD SP_OF(sp_load)
#define SP_STORE SP_OF(sp_store)

/* ---- elements in memory ---- */

typedef float sp_element_f32;
typedef double sp_element_f64;
typedef uint16_t sp_element_f16, sp_element_bf16;
typedef int8_t sp_element_i8;
typedef int16_t sp_element_i16;
typedef int32_t sp_element_i32;
typedef int64_t sp_element_i64;
typedef uint8_t sp_element_u8;
typedef uint16_t sp_element_u16;
typedef uint32_t sp_element_u32;
typedef uint64_t sp_element_u64;

/* ---- the type that an element is computed in ---- */

#define sp_wide_f32 f32
#define sp_wide_f64 f64
#define sp_wide_f16 f32
#define sp_wide_bf16 f32
#define sp_wide_i8 i8
#define sp_wide_i16 i16
#define sp_wide_i32 i32
#define sp_wide_i64 i64
#define sp_wide_u8 u8
#define sp_wide_u16 u16
#define sp_wide_u32 u32
#define sp_wide_u64 u64

/* ---- the type of sums and products: those of integers wrap, as unsigned arithmetic does by
 * definition unless the type is promoted to int ---- */

#define sp_wrapping_f32 f32
#define sp_wrapping_f64 f64
#define sp_wrapping_f16 f32
#define sp_wrapping_bf16 f32
#define sp_wrapping_i8 u32
#define sp_wrapping_i16 u32
#define sp_wrapping_i32 u32
#define sp_wrapping_i64 u64
#define sp_wrapping_u8 u32
#define sp_wrapping_u16 u32
#define sp_wrapping_u32 u32
#define sp_wrapping_u64 u64

/* ---- loads to SP_WIDE, and stores: rounded once, NaNs canonical ---- */

#define sp_load_f32(x) (x)
#define sp_load_f64(x) (x)
#define sp_load_f16 sp_float_of_f16
#define sp_load_bf16 sp_float_of_bf16
#define sp_load_i8(x) (x)
#define sp_load_i16(x) (x)
#define sp_load_i32(x) (x)
#define sp_load_i64(x) (x)
#define sp_load_u8(x) (x)
#define sp_load_u16(x) (x)
#define sp_load_u32(x) (x)
#define sp_load_u64(x) (x)

#define sp_store_f32 sp_canonical
#define sp_store_f64 sp_canonical_f64
#define sp_store_f16 sp_f16_of_float
#define sp_store_bf16 sp_bf16_of_float
#define sp_store_i8(x) (x)
#define sp_store_i32(x) ((int32_t)(x))
#define sp_store_i64(x) ((int64_t)(x))
#define sp_store_u8(x) (x)
#define sp_store_u32(x) (x)
#define sp_store_u64(x) (x)

/* ---- one step of a chain: chain + a * b, of f32 rounded once ---- */

#define sp_step_f32(chain, a, b) sp_fmaf(a, b, chain)
#define sp_step_f64(chain, a, b) ((chain) + (a) * (b))
#define sp_step_u32(chain, a, b) ((chain) + (a) * (b))
#define sp_step_u64(chain, a, b) ((chain) + (a) * (b))

/* ---- functions and limits with uniform names ---- */

#define sp_canonical_f32 sp_canonical
#define sp_abs_f32 sp_absf
#define sp_abs_f64 sp_abs
#define sp_copysign_f32 sp_copysignf
#define sp_sqrt_f32 __builtin_sqrtf
#define sp_sqrt_f64 __builtin_sqrt
#define sp_exp_f32 sp_expf
#define sp_exp_f64 sp_exp
#define sp_log_f32 sp_logf
#define sp_log_f64 sp_log

#define sp_least_f32 (-__builtin_inff())
#define sp_least_f64 (-__builtin_inf())
#define sp_least_i8 INT8_MIN
#define sp_least_i16 INT16_MIN
#define sp_least_i32 INT32_MIN
#define sp_least_i64 INT64_MIN
#define sp_least_u8 0
#define sp_least_u16 0
#define sp_least_u32 0
#define sp_least_u64 0

#define sp_most_f32 __builtin_inff()
#define sp_most_f64 __builtin_inf()
#define sp_most_i8 INT8_MAX
#define sp_most_i16 INT16_MAX
#define sp_most_i32 INT32_MAX
#define sp_most_i64 INT64_MAX
#define sp_most_u8 UINT8_MAX
#define sp_most_u16 UINT16_MAX
#define sp_most_u32 UINT32_MAX
#define sp_most_u64 UINT64_MAX

#endif
