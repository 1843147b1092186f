/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks for the lowerings of elementwise ops: operands with types and shapes, and one
 * function per kernel family that emits a dispatch over them.
 *
 * f16 and bf16 are storage types: operands are cast to f32, the op's f32 kernels run, and the
 * result is cast back, so the only additional rounding is at the end. */
#ifndef SP_OPS_SCHEMA_MATH_ELEMENTWISE_H
#define SP_OPS_SCHEMA_MATH_ELEMENTWISE_H

#include "ops/ops.h"

/* An operand of a dispatch. */
typedef struct sp_term {
    sp_operand operand;
    sp_dtype dtype;
    sp_shape shape;
} sp_term;

/* The kernel of an operation for each element type; types without one have sp_kernel_id 0, which is
 * no elementwise kernel. */
typedef struct sp_kernel_set {
    sp_kernel_id of[SP_BOOL + 1];
} sp_kernel_set;

#define SP_SET_F32(op) [SP_F32] = SP_KERNEL_ID_##op##_f32
#define SP_SET_FLOATS(op) SP_SET_F32(op), [SP_F64] = SP_KERNEL_ID_##op##_f64
#define SP_SET_SIGNED(op)                                                                          \
    [SP_I8] = SP_KERNEL_ID_##op##_i8, [SP_I16] = SP_KERNEL_ID_##op##_i16,                          \
    [SP_I32] = SP_KERNEL_ID_##op##_i32, [SP_I64] = SP_KERNEL_ID_##op##_i64
#define SP_SET_UNSIGNED(op)                                                                        \
    [SP_U8] = SP_KERNEL_ID_##op##_u8, [SP_U16] = SP_KERNEL_ID_##op##_u16,                          \
    [SP_U32] = SP_KERNEL_ID_##op##_u32, [SP_U64] = SP_KERNEL_ID_##op##_u64
/* One kernel for signed and unsigned integers. */
#define SP_SET_INTS_AS_SIGNED(op)                                                                  \
    SP_SET_SIGNED(op), [SP_U8] = SP_KERNEL_ID_##op##_i8, [SP_U16] = SP_KERNEL_ID_##op##_i16,       \
                       [SP_U32] = SP_KERNEL_ID_##op##_i32, [SP_U64] = SP_KERNEL_ID_##op##_i64

static inline bool sp__is_half(sp_dtype dtype)
{
    return dtype == SP_F16 || dtype == SP_BF16;
}

/* The type that kernels compute in. */
static inline sp_dtype sp__compute_type(sp_dtype dtype)
{
    return sp__is_half(dtype) ? SP_F32 : dtype;
}

sp_term sp__term_input(const sp_op_call *call, uint32_t index);
sp_term sp__term_output(const sp_op_call *call, uint32_t index);
/* New scratch of the call. */
sp_term sp__term_scratch(sp_lowering *lowering, sp_dtype dtype, const sp_shape *shape);
/* Output 0 in its compute type: itself, or scratch for sp__emit_result. */
sp_term sp__term_result(const sp_op_call *call, sp_lowering *lowering);

/* Each emits one dispatch; y is written and may be one of the inputs if type and shape are equal.
 * The kernel defines what `alpha` and `beta` mean. */
sp_status sp__emit_unary(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *x,
                         const sp_term *y);
sp_status sp__emit_function(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *x,
                            double alpha, double beta, const sp_term *y);
sp_status sp__emit_binary(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *a,
                          const sp_term *b, const sp_term *y);
sp_status sp__emit_cast(sp_lowering *lowering, const sp_term *x, const sp_term *y);

/* `x` in another type: itself, or a cast to new scratch. */
sp_status sp__emit_convert(sp_lowering *lowering, const sp_term *x, sp_dtype dtype, sp_term *out);
/* Input `index` in its compute type. */
sp_status sp__emit_input(const sp_op_call *call, sp_lowering *lowering, uint32_t index,
                         sp_term *out);
/* Writes output 0 from the term that sp__term_result returned. */
sp_status sp__emit_result(const sp_op_call *call, sp_lowering *lowering, const sp_term *y);

/* Allows output 0 to be written over input `index` if both have the same type and shape and the
 * first dispatch reads one and writes the other. */
void sp__allow_in_place(const sp_op_call *call, sp_lowering *lowering, uint32_t index);

#endif
