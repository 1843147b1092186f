/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax, CumSum, LpNormalization, LRN and MeanVarianceNormalization. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/reduce/axis.h"
#include "ops/schema/reduce/reduce.h"
#include "ops/ops.h"
#include "tensor/collapse.h"

sp_axis_constants sp__axis_constants(const sp_op_call *call, uint32_t axis, uint32_t end)
{
    const sp_shape *x = &call->inputs[0].shape;
    sp_axis_constants k = {.extent = (int64_t)sp__shape_range_count(x, axis, end),
                           .inner = (int64_t)sp__shape_range_count(x, end, x->rank)};
    k.rows = (int64_t)sp__shape_range_count(x, 0, axis) * k.inner;
    return k;
}

sp_status sp__axis_dispatch(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                            const sp_axis_constants *k)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, k, sizeof(*k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

static sp_status read_axis(const sp_op_call *call, int64_t fallback, uint32_t *out)
{
    return sp__shape_axis(&call->inputs[0].shape,
                          sp__attribute_int(call->attributes, "axis", fallback), out);
}

/* ---- ArgMax and ArgMin ---- */

sp_status sp__arg_infer(sp_op_call *call)
{
    uint32_t axis;
    SP_TRY(read_axis(call, 0, &axis));
    sp_shape y = call->inputs[0].shape;
    if (y.dims[axis] == 0) {
        return sp__fail(SP_MISMATCH, "the reduced dimension of shape %s is empty",
                        sp__shape_print(&y).text);
    }
    y.dims[axis] = 1;
    if (sp__attribute_int(call->attributes, "keepdims", 1) == 0) {
        y.rank--;
        for (uint32_t i = axis; i < y.rank; i++) y.dims[i] = y.dims[i + 1];
    }
    sp__op_set_output(call, 0, SP_I64, &y);
    return SP_OK;
}

static sp_kernel_id arg_kernel(sp_dtype dtype)
{
    switch (dtype) {
    case SP_F64:
        return SP_KERNEL_ID_arg_f64;
    case SP_I32:
        return SP_KERNEL_ID_arg_i32;
    case SP_I64:
        return SP_KERNEL_ID_arg_i64;
    case SP_I8:
        return SP_KERNEL_ID_arg_i8;
    case SP_U8:
        return SP_KERNEL_ID_arg_u8;
    default:
        return SP_KERNEL_ID_arg_f32;
    }
}

static sp_status lower_arg(const sp_op_call *call, sp_lowering *lowering, bool takes_least)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0;
    SP_TRY(read_axis(call, 0, &axis));
    sp_axis_constants k = sp__axis_constants(call, axis, axis + 1);
    k.takes_least = takes_least;
    k.takes_last = sp__attribute_int(call->attributes, "select_last_index", 0) != 0;
    return sp__axis_dispatch(call, lowering, arg_kernel(call->inputs[0].dtype), &k);
}

sp_status sp__arg_max_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_arg(call, lowering, false);
}

sp_status sp__arg_min_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_arg(call, lowering, true);
}

/* ---- Hardmax: axes as Softmax has them ---- */

sp_status sp__hardmax_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0, end = 0;
    SP_TRY(sp__softmax_axes(call, &axis, &end));
    const sp_axis_constants k = sp__axis_constants(call, axis, end);
    return sp__axis_dispatch(call, lowering, SP_KERNEL_ID_hardmax_f32, &k);
}

/* ---- CumSum ---- */

static sp_status cumsum_axis(const sp_op_call *call, uint32_t *out)
{
    int64_t axis;
    uint32_t count;
    SP_TRY(sp__op_known_ints(call, 1, 1, &axis, &count));
    if (count != 1) return sp__fail(SP_MISMATCH, "input 1 is empty; expected an axis");
    return sp__shape_axis(&call->inputs[0].shape, axis, out);
}

sp_status sp__cumsum_infer(sp_op_call *call)
{
    uint32_t axis;
    SP_TRY(cumsum_axis(call, &axis));
    return sp__op_infer_same(call);
}

sp_status sp__cumsum_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0;
    SP_TRY(cumsum_axis(call, &axis));
    sp_axis_constants k = sp__axis_constants(call, axis, axis + 1);
    k.is_exclusive = sp__attribute_int(call->attributes, "exclusive", 0) != 0;
    k.is_reverse = sp__attribute_int(call->attributes, "reverse", 0) != 0;
    const sp_dtype dtype = call->inputs[0].dtype;
    const sp_kernel_id kernel = dtype == SP_F64   ? SP_KERNEL_ID_cumsum_f64
                                : dtype == SP_I32 ? SP_KERNEL_ID_cumsum_i32
                                : dtype == SP_I64 ? SP_KERNEL_ID_cumsum_i64
                                                  : SP_KERNEL_ID_cumsum_f32;
    return sp__axis_dispatch(call, lowering, kernel, &k);
}

/* ---- LpNormalization ---- */

sp_status sp__lp_norm_infer(sp_op_call *call)
{
    uint32_t axis;
    const int64_t p = sp__attribute_int(call->attributes, "p", 2);
    SP_TRY(read_axis(call, -1, &axis));
    if (p != 1 && p != 2) return sp__fail(SP_MISMATCH, "p is %" PRId64 "; expected 1 or 2", p);
    return sp__op_infer_same(call);
}

sp_status sp__lp_norm_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axis = 0;
    SP_TRY(read_axis(call, -1, &axis));
    sp_axis_constants k = sp__axis_constants(call, axis, axis + 1);
    k.is_square = sp__attribute_int(call->attributes, "p", 2) == 2;
    return sp__axis_dispatch(call, lowering, SP_KERNEL_ID_lp_norm_f32, &k);
}

/* ---- LRN ---- */

sp_status sp__lrn_infer(sp_op_call *call)
{
    const int64_t size = sp__attribute_int(call->attributes, "size", 0);
    const sp_shape *x = &call->inputs[0].shape;
    if (x->rank < 2 || size < 1 || size > INT32_MAX) {
        return sp__fail(SP_MISMATCH, "a size of %" PRId64 " does not fit the channels of shape %s",
                        size, sp__shape_print(x).text);
    }
    call->depth = (uint64_t)(size < x->dims[1] ? size : x->dims[1]);
    return sp__op_infer_same(call);
}

sp_status sp__lrn_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    sp_lrn_constants k = {.planes = x->dims[0] * x->dims[1],
                          .channels = x->dims[1],
                          .plane = (int64_t)sp__shape_range_count(x, 2, x->rank),
                          .size = sp__attribute_int(call->attributes, "size", 0),
                          .alpha = sp__attribute_float(call->attributes, "alpha", 1e-4f),
                          .beta = sp__attribute_float(call->attributes, "beta", 0.75f),
                          .bias = sp__attribute_float(call->attributes, "bias", 1.0f)};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_lrn_f32, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- MeanVarianceNormalization ---- */

static sp_status mvn_axes(const sp_op_call *call, uint32_t *out)
{
    static const int64_t usual[] = {0, 2, 3};
    const sp_attribute *given = sp__attribute_find(call->attributes, "axes");
    const int64_t *axes = given ? given->as.ints : usual;
    *out = 0;
    for (uint32_t i = 0; i < (given ? given->count : 3); i++) {
        uint32_t axis;
        SP_TRY(sp__shape_axis(&call->inputs[0].shape, axes[i], &axis));
        *out |= 1u << axis;
    }
    return SP_OK;
}

sp_status sp__mvn_infer(sp_op_call *call)
{
    uint32_t axes;
    SP_TRY(mvn_axes(call, &axes));
    return sp__op_infer_same(call);
}

sp_status sp__mvn_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t axes = 0;
    SP_TRY(mvn_axes(call, &axes));
    sp_statistics statistics = {0};
    SP_TRY(sp__reduce_statistics(call, lowering, axes, &statistics));
    sp_shape kept = *x;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (axes >> i & 1) kept.dims[i] = 1;
    }
    sp_binary_constants k = {.count = (int64_t)sp__shape_count(x)};
    for (uint32_t i = 0; i < x->rank; i++) k.dims[i] = x->dims[i];
    sp__shape_strides(x, k.a);
    sp__shape_broadcast_strides(&kept, x, k.b);
    k.rank = sp__collapse(x->rank, k.dims, k.a, k.b);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_standardize_f32, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, statistics.mean, false);
    sp__lower_bind_scratch(dispatch, lowering, statistics.variance, false);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- rows ---- */

/* Outputs of the shape of input 0, computed along another axis. */
static const char *rows_beside(const sp_rows_call *call, const sp_rows_axis *rows, uint32_t axis)
{
    if (rows->axis == axis) return "it computes along the batch axis";
    sp__rows_set_axis(call, 0, rows->axis, rows);
    return NULL;
}

const char *sp__cumsum_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (cumsum_axis(call->many, &axis) != SP_OK) return "its axis is unknown";
    return rows_beside(call, &rows, axis);
}

const char *sp__lp_norm_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (read_axis(call->many, -1, &axis) != SP_OK) return "its axis is unknown";
    return rows_beside(call, &rows, axis);
}

const char *sp__arg_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (read_axis(call->many, 0, &axis) != SP_OK) return "its axis is unknown";
    if (rows.axis == axis) return "it reduces the batch axis";
    const bool is_moved =
        axis < rows.axis && sp__attribute_int(call->many->attributes, "keepdims", 1) == 0;
    sp__rows_set_axis(call, 0, rows.axis - (is_moved ? 1 : 0), &rows);
    return NULL;
}

const char *sp__mvn_rows(const sp_rows_call *call)
{
    uint32_t axes;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (mvn_axes(call->many, &axes) != SP_OK) return "its axes are unknown";
    if ((axes >> rows.axis & 1) != 0) return "it normalises along the batch axis";
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}
