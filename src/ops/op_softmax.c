/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax. Up to version 12 the input is a matrix that the axis cuts its dimensions
 * into, and rows of it are normalised; from 13 on it is the axis alone. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

sp_status sp__softmax_axis(const sp_op_call *call, uint32_t *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    const int64_t axis = sp__attribute_int(call->attributes, "axis", call->version < 13 ? 1 : -1);
    *out = 0;
    if (x->rank == 0) return SP_OK; /* one element: any axis */
    if (call->version < 13 && axis == (int64_t)x->rank) {
        *out = x->rank; /* rows of one element */
        return SP_OK;
    }
    return sp__shape_axis(x, axis, out);
}

sp_status sp__softmax_infer(sp_op_call *call)
{
    uint32_t axis;
    SP_TRY(sp__softmax_axis(call, &axis));
    return sp__op_infer_same(call);
}

static sp_status lower(const sp_op_call *call, sp_lowering *lowering, bool is_log)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0;
    SP_TRY(sp__softmax_axis(call, &axis));
    const sp_shape *x = &call->inputs[0].shape;
    const uint32_t end = call->version < 13 || axis == x->rank ? x->rank : axis + 1;
    const uint64_t outer = sp__shape_range_count(x, 0, axis);
    const uint64_t inner = sp__shape_range_count(x, end, x->rank);
    sp_softmax_constants k = {.rows = (int64_t)(outer * inner),
                              .extent = (int64_t)sp__shape_range_count(x, axis, end),
                              .inner = (int64_t)inner,
                              .is_log = is_log};
    k.tile_rows = SP_TILE_EVALUATIONS / k.extent + 1;
    const sp_dtype dtype = call->inputs[0].dtype;
    const sp_kernel_id kernel = dtype == SP_F64   ? SP_KERNEL_ID_softmax_f64
                                : dtype == SP_F16 ? SP_KERNEL_ID_softmax_f16
                                                  : SP_KERNEL_ID_softmax_f32;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return sp__lower_cover(dispatch, k.rows, k.tile_rows);
}

sp_status sp__softmax_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower(call, lowering, false);
}

sp_status sp__log_softmax_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower(call, lowering, true);
}
