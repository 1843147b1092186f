/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that select, repeat or convert elements: Where, Expand, Cast, CastLike, Dropout. */
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/math/elementwise.h"
#include "tensor/collapse.h"
#include "tensor/onnx_dtype.h"

/* ---- Where ---- */

sp_status sp__where_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[1], *y = &call->inputs[2];
    sp_shape sides, shape;
    SP_TRY(sp__shape_broadcast(&x->shape, &y->shape, &sides));
    SP_TRY(sp__shape_broadcast(&call->inputs[0].shape, &sides, &shape));
    sp__op_set_output(call, 0, x->dtype, &shape);
    return SP_OK;
}

sp_status sp__where_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_id kernels[] = {[1] = SP_KERNEL_ID_where_8,
                                           [2] = SP_KERNEL_ID_where_16,
                                           [4] = SP_KERNEL_ID_where_32,
                                           [8] = SP_KERNEL_ID_where_64};
    const sp_op_value *out = &call->outputs[0];
    if (out->bytes == 0) return SP_OK;
    sp_select_constants k = {.count = (int64_t)sp__shape_count(&out->shape)};
    int64_t *const strides[] = {k.condition, k.x, k.y};
    for (uint32_t i = 0; i < out->shape.rank; i++) k.dims[i] = out->shape.dims[i];
    for (uint32_t i = 0; i < 3; i++) {
        sp__shape_broadcast_strides(&call->inputs[i].shape, &out->shape, strides[i]);
    }
    k.rank = sp__collapse_all(out->shape.rank, k.dims, strides, 3);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernels[sp_dtype_bytes(out->dtype)], &k, sizeof(k),
                              &dispatch));
    for (uint32_t i = 0; i < 3; i++) sp__lower_bind_input(dispatch, call, i);
    sp__lower_bind_output(dispatch, call, 0);
    for (uint32_t i = 3; i-- > 1;) {
        if (sp__shape_equal(&call->inputs[i].shape, &out->shape)) sp__lower_in_place(lowering, i);
    }
    return SP_OK;
}

/* ---- Expand ---- */

/* Broadcasts in both directions: a 1 in the given shape keeps the input's dimension. */
sp_status sp__expand_infer(sp_op_call *call)
{
    int64_t dims[SP_MAX_RANK];
    uint32_t rank;
    sp_shape wanted, shape;
    SP_TRY(sp__op_known_ints(call, 1, SP_MAX_RANK, dims, &rank));
    SP_TRY(sp__shape_make(dims, rank, &wanted));
    SP_TRY(sp__shape_broadcast(&call->inputs[0].shape, &wanted, &shape));
    sp__op_set_output(call, 0, call->inputs[0].dtype, &shape);
    return SP_OK;
}

sp_status sp__expand_lower(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_op_value *x = &call->inputs[0], *y = &call->outputs[0];
    sp_layout view;
    SP_TRY(sp__layout_init_contiguous(&view, x->dtype, &x->shape));
    SP_TRY(sp__layout_expand(&view, &y->shape, &view));
    return sp__lower_view(call, lowering, &view);
}

/* ---- Cast ---- */

/* The attributes saturate and round_mode only apply to 8-bit floats. */
sp_status sp__cast_infer(sp_op_call *call)
{
    sp_dtype dtype;
    SP_TRY(sp__onnx_dtype(sp__attribute_int(call->attributes, "to", 0), &dtype));
    sp__op_set_output(call, 0, dtype, &call->inputs[0].shape);
    return SP_OK;
}

sp_status sp__cast_like_infer(sp_op_call *call)
{
    sp__op_set_output(call, 0, call->inputs[1].dtype, &call->inputs[0].shape);
    return SP_OK;
}

sp_status sp__cast_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->inputs[0].dtype == call->outputs[0].dtype) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_term x = sp__term_input(call, 0), y = sp__term_output(call, 0);
    return sp__emit_cast(lowering, &x, &y);
}

/* ---- Dropout ---- */

enum { INPUT_RATIO = 1, INPUT_TRAINING = 2, OUTPUT_MASK = 1 };

static bool is_zero(const sp_op_value *value)
{
    static const unsigned char zero[8] = {0};
    return memcmp(value->data, zero, sp_dtype_bytes(value->dtype)) == 0;
}

/* Training drops elements at random: refused unless the ratio is 0. */
static sp_status check_training(const sp_op_call *call)
{
    if (!sp__op_has_input(call, INPUT_TRAINING)) return SP_OK;
    const sp_op_value *training = &call->inputs[INPUT_TRAINING];
    if (sp__shape_count(&training->shape) != 1) {
        return sp__fail(SP_MISMATCH, "training_mode has shape %s; expected one bool",
                        sp__shape_print(&training->shape).text);
    }
    if (training->data == NULL) {
        return sp__fail(SP_UNSUPPORTED,
                        "not supported: Dropout with a training_mode that is not constant");
    }
    if (is_zero(training)) return SP_OK;
    const bool has_ratio = sp__op_has_input(call, INPUT_RATIO);
    const sp_op_value *ratio = &call->inputs[INPUT_RATIO];
    if (has_ratio && ratio->data != NULL && ratio->bytes > 0 && is_zero(ratio)) return SP_OK;
    return sp__fail(SP_UNSUPPORTED, "not supported: Dropout in training mode");
}

sp_status sp__dropout_infer(sp_op_call *call)
{
    const sp_op_value *x = &call->inputs[0];
    SP_TRY(check_training(call));
    sp__op_set_output(call, 0, x->dtype, &x->shape);
    if (call->output_count <= OUTPUT_MASK) return SP_OK;
    sp__op_set_output(call, OUTPUT_MASK, call->version < 10 ? x->dtype : SP_BOOL, &x->shape);
    return SP_OK;
}

sp_status sp__dropout_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->output_count <= OUTPUT_MASK) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    const sp_op_value *mask = &call->outputs[OUTPUT_MASK];
    const sp_flat_constants copy = {.count = (int64_t)call->inputs[0].bytes};
    const sp_fill_constants fill = {.value = sp__lower_one(mask->dtype),
                                    .count = (int64_t)sp__shape_count(&mask->shape),
                                    .element_bytes = (uint32_t)sp_dtype_bytes(mask->dtype)};
    if (mask->bytes == 0) return SP_OK;
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_copy_bytes, &copy, sizeof(copy), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_fill, &fill, sizeof(fill), &dispatch));
    sp__lower_bind_output(dispatch, call, OUTPUT_MASK);
    return SP_OK;
}

/* ---- rows ---- */

/* Input 1 gives its type only. */
const char *sp__cast_like_rows(const sp_rows_call *call)
{
    if (call->inputs[0].kind == SP_ROWS_SIZES) return "it computes with the batch size";
    call->outputs[0] = call->inputs[0];
    return NULL;
}

/* An input with rows keeps their axis; one without is repeated for each row. */
const char *sp__expand_rows(const sp_rows_call *call)
{
    const sp_shape *x = &call->many->inputs[0].shape, *y = &call->many->outputs[0].shape;
    sp_rows_axis rows;
    const char *why = sp__rows_check_sizes(call, 1u << 1);
    if (why != NULL) return why;
    if (call->inputs[0].kind == SP_ROWS_SHARED) {
        if (!sp__rows_find_growth(call, 0, &rows)) return "it repeats by the batch size";
        const uint32_t missing = y->rank - x->rank;
        const bool repeats = rows.axis < missing || x->dims[rows.axis - missing] == 1;
        if (!repeats) return "a parameter has a size along the batch axis";
    } else {
        why = sp__rows_find_input(call, 0, &rows);
        if (why != NULL) return why;
        rows.axis += y->rank - x->rank;
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
