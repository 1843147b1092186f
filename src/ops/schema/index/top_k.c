/* SPDX-License-Identifier: Apache-2.0 */
/* TopK: always sorted, equal values by index. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

static sp_status read_top_k(const sp_op_call *call, uint32_t *axis, int64_t *k)
{
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t count = 1;
    SP_TRY(sp__shape_axis(x, sp__attribute_int(call->attributes, "axis", -1), axis));
    *k = sp__attribute_int(call->attributes, "k", 0);
    if (call->version >= 10) SP_TRY(sp__op_known_ints(call, 1, 1, k, &count));
    if (count == 1 && *k >= 0 && *k <= x->dims[*axis]) return SP_OK;
    return sp__fail(SP_MISMATCH, "k is %" PRId64 " for a dimension of %" PRId64,
                    count == 1 ? *k : 0, x->dims[*axis]);
}

sp_status sp__top_k_infer(sp_op_call *call)
{
    uint32_t axis;
    int64_t k;
    SP_TRY(read_top_k(call, &axis, &k));
    sp_shape y = call->inputs[0].shape;
    y.dims[axis] = k;
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    sp__op_set_output(call, 1, SP_I64, &y);
    return SP_OK;
}

sp_status sp__top_k_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t axis;
    sp_top_k_constants k = {.dtype = call->inputs[0].dtype,
                            .is_largest = sp__attribute_int(call->attributes, "largest", 1) != 0};
    SP_TRY(read_top_k(call, &axis, &k.count));
    k.outer = (int64_t)sp__shape_range_count(x, 0, axis);
    k.axis = x->dims[axis];
    k.inner = (int64_t)sp__shape_range_count(x, axis + 1, x->rank);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_top_k, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 1);
    return SP_OK;
}

const char *sp__top_k_rows(const sp_rows_call *call)
{
    uint32_t axis;
    int64_t k;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (read_top_k(call->many, &axis, &k) != SP_OK) return "its axis is unknown";
    if (rows.axis == axis) return "it sorts along the batch axis";
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        sp__rows_set_axis(call, i, rows.axis, &rows);
    }
    return NULL;
}
