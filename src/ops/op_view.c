/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose output is their input's bytes under another shape: no dispatch. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* 0 keeps the input's dimension (unless allowzero), one -1 takes what is left. */
sp_status sp__reshape_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    int64_t dims[SP_MAX_RANK];
    uint32_t rank;
    SP_TRY(sp__op_known_ints(call, 1, SP_MAX_RANK, dims, &rank));
    const bool allows_zero = sp__attribute_int(call->attributes, "allowzero", 0) != 0;
    int64_t free_axis = -1;
    sp_shape y = {.rank = rank};
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 0 && !allows_zero) {
            if (i >= x->shape.rank) {
                return sp__fail(SP_MISMATCH, "dimension %" PRIu32 " of shape %s does not exist", i,
                                sp__shape_print(&x->shape).text);
            }
            dims[i] = x->shape.dims[i];
        }
        if (dims[i] < -1 || (dims[i] == -1 && free_axis >= 0)) {
            return sp__fail(SP_MISMATCH, "dimension %" PRIu32 " of the new shape is %" PRId64, i,
                            dims[i]);
        }
        if (dims[i] == -1) free_axis = i;
        y.dims[i] = dims[i] == -1 ? 1 : dims[i];
    }
    uint64_t bytes;
    SP_TRY(sp__shape_bytes(&y, x->dtype, &bytes));
    if (free_axis >= 0 && bytes > 0) y.dims[free_axis] = (int64_t)(x->bytes / bytes);
    SP_TRY(sp__shape_bytes(&y, x->dtype, &bytes));
    if (bytes != x->bytes) {
        return sp__fail(SP_MISMATCH, "shape %s cannot become %s", sp__shape_print(&x->shape).text,
                        sp__shape_print(&y).text);
    }
    sp__op_set_output(call, 0, x->dtype, &y);
    return SP_OK;
}

sp_status sp__flatten_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape;
    int64_t axis = sp__attribute_int(call->attributes, "axis", 1);
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > (int64_t)x->rank) {
        return sp__fail(SP_MISMATCH, "axis is outside shape %s", sp__shape_print(x).text);
    }
    const sp_shape y = {.rank = 2,
                        .dims = {(int64_t)sp__shape_range_count(x, 0, (uint32_t)axis),
                                 (int64_t)sp__shape_range_count(x, (uint32_t)axis, x->rank)}};
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__view_lower(const sp_op_call *call, sp_lowering *lowering)
{
    (void)call;
    sp__lower_alias(lowering, 0);
    return SP_OK;
}
