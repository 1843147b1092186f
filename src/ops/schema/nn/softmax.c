/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax. */
#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/reduce/axis.h"
#include "ops/ops.h"

sp_status sp__softmax_axes(const sp_op_call *call, uint32_t *axis, uint32_t *end)
{
    const sp_shape *x = &call->inputs[0].shape;
    const bool is_old = call->version < 13;
    const int64_t given = sp__attribute_int(call->attributes, "axis", is_old ? 1 : -1);
    *axis = *end = x->rank;
    if (x->rank == 0) return SP_OK; /* one element: any axis */
    if (is_old && given == (int64_t)x->rank) return SP_OK;
    SP_TRY(sp__shape_axis(x, given, axis));
    *end = is_old ? x->rank : *axis + 1;
    return SP_OK;
}

sp_status sp__softmax_infer(sp_op_call *call)
{
    uint32_t axis, end;
    SP_TRY(sp__softmax_axes(call, &axis, &end));
    return sp__op_infer_same(call);
}

static sp_status lower_softmax(const sp_op_call *call, sp_lowering *lowering, bool is_log)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0, end = 0;
    SP_TRY(sp__softmax_axes(call, &axis, &end));
    sp_axis_constants k = sp__axis_constants(call, axis, end);
    k.is_log = is_log;
    const sp_dtype dtype = call->inputs[0].dtype;
    const sp_kernel_id kernel = dtype == SP_F64   ? SP_KERNEL_ID_softmax_f64
                                : dtype == SP_F16 ? SP_KERNEL_ID_softmax_f16
                                                  : SP_KERNEL_ID_softmax_f32;
    sp__lower_in_place(lowering, 0);
    return sp__axis_dispatch(call, lowering, kernel, &k);
}

sp_status sp__softmax_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_softmax(call, lowering, false);
}

sp_status sp__log_softmax_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_softmax(call, lowering, true);
}

/* Of Hardmax too. */
const char *sp__softmax_rows(const sp_rows_call *call)
{
    uint32_t axis, end;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (sp__softmax_axes(call->many, &axis, &end) != SP_OK) return "its axis is unknown";
    if (rows.axis >= axis && rows.axis < end) return "it normalises along the batch axis";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
