/* SPDX-License-Identifier: Apache-2.0 */
/* Element-by-element ops of one input, and of two with broadcasting. */
#include "base/error.h"
#include "base/macros.h"
#include "tensor/collapse.h"
#include "ops/ops.h"

sp_status sp__binary_infer(sp_op_call *call)
{
    const sp_op_value *a = &call->inputs[0], *b = &call->inputs[1];
    sp_shape shape;
    SP_TRY(sp__op_same_types(call));
    SP_TRY(sp__shape_broadcast(&a->shape, &b->shape, &shape));
    sp__op_set_output(call, 0, a->dtype, &shape);
    return SP_OK;
}

static sp_status lower_binary(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id f32,
                              sp_kernel_id i32, sp_kernel_id i64)
{
    const sp_shape *shape = &call->outputs[0].shape;
    sp_binary_constants k = {.count = (int64_t)sp__shape_count(shape),
                             .tile_count = SP_TILE_ELEMENTS};
    for (uint32_t i = 0; i < shape->rank; i++) k.dims[i] = shape->dims[i];
    sp__shape_broadcast_strides(&call->inputs[0].shape, shape, k.a);
    sp__shape_broadcast_strides(&call->inputs[1].shape, shape, k.b);
    k.rank = sp__collapse(shape->rank, k.dims, k.a, k.b);
    const sp_dtype dtype = call->outputs[0].dtype;
    const sp_kernel_id kernel = dtype == SP_F32 ? f32 : dtype == SP_I32 ? i32 : i64;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    sp__lower_bind_output(dispatch, call, 0);
    if (sp__shape_equal(&call->inputs[0].shape, shape)) sp__lower_in_place(lowering, 0);
    else if (sp__shape_equal(&call->inputs[1].shape, shape)) sp__lower_in_place(lowering, 1);
    return sp__lower_cover(dispatch, k.count, k.tile_count);
}

#define BINARY_LOWER(name)                                                                         \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        return lower_binary(call, lowering, SP_KERNEL_ID_##name##_f32, SP_KERNEL_ID_##name##_i32,  \
                            SP_KERNEL_ID_##name##_i64);                                            \
    }

BINARY_LOWER(add)
BINARY_LOWER(sub)
BINARY_LOWER(mul)
BINARY_LOWER(div)

static sp_status lower_unary(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                             uint32_t tile_count)
{
    const sp_flat_constants k = {.count = (int64_t)sp__shape_count(&call->outputs[0].shape),
                                 .tile_count = tile_count};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    sp__lower_in_place(lowering, 0);
    return sp__lower_cover(dispatch, k.count, k.tile_count);
}

#define UNARY_LOWER(name, tile_count)                                                              \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        return lower_unary(call, lowering, SP_KERNEL_ID_##name##_f32, tile_count);                 \
    }

UNARY_LOWER(relu, SP_TILE_ELEMENTS)
UNARY_LOWER(sigmoid, SP_TILE_EVALUATIONS)
UNARY_LOWER(tanh, SP_TILE_EVALUATIONS)
UNARY_LOWER(exp, SP_TILE_EVALUATIONS)
