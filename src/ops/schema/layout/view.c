/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose output is their input's bytes with another shape: no dispatch. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

/* 0 keeps the input's dimension (unless allowzero), one -1 is inferred. */
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
    if (free_axis >= 0 && bytes == 0) {
        return sp__fail(
            SP_MISMATCH,
            "shape %s cannot become a shape with -1 and a dimension of 0: any size would fit",
            sp__shape_print(&x->shape).text);
    }
    if (free_axis >= 0) y.dims[free_axis] = (int64_t)(x->bytes / bytes);
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
        return sp__fail(SP_MISMATCH, "axis is out of range for shape %s", sp__shape_print(x).text);
    }
    const sp_shape y = {.rank = 2,
                        .dims = {(int64_t)sp__shape_range_count(x, 0, (uint32_t)axis),
                                 (int64_t)sp__shape_range_count(x, (uint32_t)axis, x->rank)}};
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

/* Marks the dimensions in `axes` of a shape of rank `rank`. */
static sp_status mark_axes(const int64_t *axes, uint32_t count, uint32_t rank,
                           bool is_marked[SP_MAX_RANK])
{
    const sp_shape whole = {.rank = rank};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        SP_TRY(sp__shape_axis(&whole, axes[i], &axis));
        if (is_marked[axis]) {
            return sp__fail(SP_MISMATCH, "axis %" PRIu32 " is given twice", axis);
        }
        is_marked[axis] = true;
    }
    return SP_OK;
}

/* The axes are an attribute to version 12, then an input; without axes all dimensions of 1 are
 * removed. */
sp_status sp__squeeze_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    int64_t axes[SP_MAX_RANK];
    uint32_t count;
    bool has_axes, is_removed[SP_MAX_RANK] = {0};
    SP_TRY(sp__op_known_list(call, "axes", 13, 1, axes, &count, &has_axes));
    SP_TRY(mark_axes(axes, count, x->shape.rank, is_removed));
    sp_shape y = {.rank = 0};
    for (uint32_t i = 0; i < x->shape.rank; i++) {
        const int64_t size = x->shape.dims[i];
        if (is_removed[i] && size != 1) {
            return sp__fail(SP_MISMATCH, "dimension %" PRIu32 " of shape %s is not 1", i,
                            sp__shape_print(&x->shape).text);
        }
        if (!is_removed[i] && (has_axes || size != 1)) y.dims[y.rank++] = size;
    }
    sp__op_set_output(call, 0, x->dtype, &y);
    return SP_OK;
}

sp_status sp__unsqueeze_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    int64_t axes[SP_MAX_RANK];
    uint32_t count;
    bool has_axes, is_new[SP_MAX_RANK] = {0};
    SP_TRY(sp__op_known_list(call, "axes", 13, 1, axes, &count, &has_axes));
    sp_shape y = {.rank = x->shape.rank + count};
    if (y.rank > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH,
                        "%" PRIu32
                        " more dimensions than those of shape %s exceed the highest rank",
                        count, sp__shape_print(&x->shape).text);
    }
    SP_TRY(mark_axes(axes, count, y.rank, is_new));
    uint32_t from = 0;
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] = is_new[i] ? 1 : x->shape.dims[from++];
    sp__op_set_output(call, 0, x->dtype, &y);
    return SP_OK;
}

sp_status sp__view_lower(const sp_op_call *call, sp_lowering *lowering)
{
    (void)call;
    sp__lower_alias(lowering, 0);
    return SP_OK;
}
