/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches of elementwise kernels. */
#include "ops/schema/math/elementwise.h"

#include "base/macros.h"
#include "tensor/collapse.h"

static uint64_t term_bytes(sp_dtype dtype, const sp_shape *shape)
{
    return sp__shape_count(shape) * sp_dtype_bytes(dtype);
}

sp_term sp__term_input(const sp_op_call *call, uint32_t index)
{
    const sp_op_value *input = &call->inputs[index];
    return (sp_term){{SP_OPERAND_INPUT, index, false, input->bytes}, input->dtype, input->shape};
}

sp_term sp__term_output(const sp_op_call *call, uint32_t index)
{
    const sp_op_value *output = &call->outputs[index];
    return (sp_term){{SP_OPERAND_OUTPUT, index, true, output->bytes}, output->dtype, output->shape};
}

sp_term sp__term_scratch(sp_lowering *lowering, sp_dtype dtype, const sp_shape *shape)
{
    const uint64_t bytes = term_bytes(dtype, shape);
    return (sp_term){
        {SP_OPERAND_SCRATCH, sp__lower_scratch(lowering, bytes), false, bytes}, dtype, *shape};
}

sp_term sp__term_result(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_op_value *y = &call->outputs[0];
    if (!sp__is_half(y->dtype)) return sp__term_output(call, 0);
    return sp__term_scratch(lowering, SP_F32, &y->shape);
}

static void term_bind(sp_dispatch *dispatch, const sp_term *term, bool is_write)
{
    sp_operand operand = term->operand;
    operand.is_write = is_write;
    sp__lower_bind(dispatch, operand);
}

/* A dispatch of a flat kernel. */
static sp_status emit_flat(sp_lowering *lowering, sp_kernel_id kernel, const void *constants,
                           uint32_t bytes, const sp_term *x, const sp_term *y)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, constants, bytes, &dispatch));
    term_bind(dispatch, x, false);
    term_bind(dispatch, y, true);
    return SP_OK;
}

sp_status sp__emit_unary(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *x,
                         const sp_term *y)
{
    const sp_flat_constants k = {.count = (int64_t)sp__shape_count(&y->shape)};
    return emit_flat(lowering, set->of[x->dtype], &k, sizeof(k), x, y);
}

sp_status sp__emit_function(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *x,
                            double alpha, double beta, const sp_term *y)
{
    const sp_function_constants k = {
        .count = (int64_t)sp__shape_count(&y->shape), .alpha = alpha, .beta = beta};
    return emit_flat(lowering, set->of[x->dtype], &k, sizeof(k), x, y);
}

sp_status sp__emit_cast(sp_lowering *lowering, const sp_term *x, const sp_term *y)
{
    static const sp_kernel_id kernels[] = {[SP_F32] = SP_KERNEL_ID_cast_f32,
                                           [SP_F64] = SP_KERNEL_ID_cast_f64,
                                           [SP_F16] = SP_KERNEL_ID_cast_f16,
                                           [SP_BF16] = SP_KERNEL_ID_cast_bf16,
                                           SP_SET_SIGNED(cast),
                                           SP_SET_UNSIGNED(cast),
                                           [SP_BOOL] = SP_KERNEL_ID_cast_bool};
    const sp_cast_constants k = {.count = (int64_t)sp__shape_count(&y->shape), .to = y->dtype};
    return emit_flat(lowering, kernels[x->dtype], &k, sizeof(k), x, y);
}

sp_status sp__emit_binary(sp_lowering *lowering, const sp_kernel_set *set, const sp_term *a,
                          const sp_term *b, const sp_term *y)
{
    const sp_shape *shape = &y->shape;
    sp_binary_constants k = {.count = (int64_t)sp__shape_count(shape)};
    for (uint32_t i = 0; i < shape->rank; i++) k.dims[i] = shape->dims[i];
    sp__shape_broadcast_strides(&a->shape, shape, k.a);
    sp__shape_broadcast_strides(&b->shape, shape, k.b);
    k.rank = sp__collapse(shape->rank, k.dims, k.a, k.b);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, set->of[a->dtype], &k, sizeof(k), &dispatch));
    term_bind(dispatch, a, false);
    term_bind(dispatch, b, false);
    term_bind(dispatch, y, true);
    return SP_OK;
}

sp_status sp__emit_convert(sp_lowering *lowering, const sp_term *x, sp_dtype dtype, sp_term *out)
{
    const sp_term from = *x; /* `out` may be `x` */
    *out = from;
    if (from.dtype == dtype) return SP_OK;
    *out = sp__term_scratch(lowering, dtype, &from.shape);
    return sp__emit_cast(lowering, &from, out);
}

sp_status sp__emit_input(const sp_op_call *call, sp_lowering *lowering, uint32_t index,
                         sp_term *out)
{
    const sp_term input = sp__term_input(call, index);
    return sp__emit_convert(lowering, &input, sp__compute_type(input.dtype), out);
}

sp_status sp__emit_result(const sp_op_call *call, sp_lowering *lowering, const sp_term *y)
{
    if (y->operand.kind == SP_OPERAND_OUTPUT) return SP_OK;
    const sp_term output = sp__term_output(call, 0);
    return sp__emit_cast(lowering, y, &output);
}

void sp__allow_in_place(const sp_op_call *call, sp_lowering *lowering, uint32_t index)
{
    const sp_op_value *x = &call->inputs[index], *y = &call->outputs[0];
    const bool is_same = x->dtype == y->dtype && sp__shape_equal(&x->shape, &y->shape);
    if (is_same && !sp__is_half(x->dtype)) sp__lower_in_place(lowering, index);
}
