/* SPDX-License-Identifier: Apache-2.0 */
/* Ops whose values are known before the run: the shape rule of Constant, Shape and Size sets them.
 * The data of a known output is borrowed from the call; callers that keep it copy it. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

static void set_known(sp_op_call *call, sp_dtype dtype, const sp_shape *shape, const void *data)
{
    sp__op_set_output(call, 0, dtype, shape);
    call->outputs[0].data = data;
}

sp_status sp__constant_infer(sp_op_call *call)
{
    if (call->attributes.count != 1) {
        return sp__fail(SP_CORRUPT, "%" PRIu32 " values are given; expected one",
                        call->attributes.count);
    }
    const sp_attribute *value = &call->attributes.items[0];
    const sp_shape scalar = {.rank = 0};
    const sp_shape list = {.rank = 1, .dims = {value->count}};
    switch (value->type) {
    case SP_ATTRIBUTE_TENSOR:
        set_known(call, value->as.tensors->dtype, &value->as.tensors->shape,
                  value->as.tensors->data);
        return SP_OK;
    case SP_ATTRIBUTE_FLOAT:
        set_known(call, SP_F32, &scalar, value->as.floats);
        return SP_OK;
    case SP_ATTRIBUTE_FLOATS:
        set_known(call, SP_F32, &list, value->as.floats);
        return SP_OK;
    case SP_ATTRIBUTE_INT:
        set_known(call, SP_I64, &scalar, value->as.ints);
        return SP_OK;
    case SP_ATTRIBUTE_INTS:
        set_known(call, SP_I64, &list, value->as.ints);
        return SP_OK;
    default:
        break;
    }
    return sp__fail(SP_UNSUPPORTED, "a value of type %s is not supported",
                    sp__attribute_type_name(value->type));
}

sp_status sp__shape_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape;
    const int64_t rank = x->rank;
    int64_t start = sp__attribute_int(call->attributes, "start", 0);
    int64_t end = sp__attribute_int(call->attributes, "end", rank);
    if (start < 0) start = start < -rank ? 0 : start + rank;
    if (end < 0) end = end < -rank ? 0 : end + rank;
    if (end > rank) end = rank;
    if (start > end) start = end;
    const sp_shape y = {.rank = 1, .dims = {end - start}};
    set_known(call, SP_I64, &y, x->dims + start);
    return SP_OK;
}

sp_status sp__size_infer(sp_op_call *call)
{
    const sp_shape scalar = {.rank = 0};
    call->outputs[0].number = (int64_t)sp__shape_count(&call->inputs[0].shape);
    set_known(call, SP_I64, &scalar, &call->outputs[0].number);
    return SP_OK;
}

sp_status sp__known_lower(const sp_op_call *call, sp_lowering *lowering)
{
    (void)call, (void)lowering;
    return SP_OK;
}

sp_status sp__constant_of_shape_infer(sp_op_call *call)
{
    int64_t dims[SP_MAX_RANK];
    uint32_t rank;
    sp_shape y;
    SP_TRY(sp__op_known_ints(call, 0, SP_MAX_RANK, dims, &rank));
    SP_TRY(sp__shape_make(dims, rank, &y));
    const sp_attribute *value = sp__attribute_find(call->attributes, "value");
    if (value && sp__shape_count(&value->as.tensors->shape) != 1) {
        return sp__fail(SP_MISMATCH, "the value has shape %s; expected one element",
                        sp__shape_print(&value->as.tensors->shape).text);
    }
    sp__op_set_output(call, 0, value ? value->as.tensors->dtype : SP_F32, &y);
    return SP_OK;
}

sp_status sp__constant_of_shape_lower(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_op_value *y = &call->outputs[0];
    const sp_attribute *value = sp__attribute_find(call->attributes, "value");
    sp_fill_constants k = {.count = (int64_t)sp__shape_count(&y->shape),
                           .element_bytes = (uint32_t)sp_dtype_bytes(y->dtype)};
    if (value) memcpy(&k.value, value->as.tensors->data, k.element_bytes);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_fill, &k, sizeof(k), &dispatch));
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* All elements of ConstantOfShape are equal, so the rows may be anywhere along the axis that grows.
 */
const char *sp__constant_of_shape_rows(const sp_rows_call *call)
{
    sp_rows_axis rows;
    if (!sp__rows_find_growth(call, 0, &rows)) return "its shape does not grow with the batch";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
