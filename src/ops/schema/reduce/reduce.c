/* SPDX-License-Identifier: Apache-2.0 */
/* ReduceSum and the other reductions: the reduced dimensions, and the kernel's constants. */
#include "ops/schema/reduce/reduce.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "tensor/collapse.h"

/* A bit for each reduced dimension: from the attribute `axes`, or input 1. Absent axes mean all
 * dimensions, or none with noop_with_empty_axes. */
static sp_status read_axes(const sp_op_call *call, uint32_t *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    const sp_attribute *attribute = sp__attribute_find(call->attributes, "axes");
    int64_t given[SP_MAX_RANK];
    uint32_t count = 0, mask = 0;
    if (attribute && attribute->count > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " axes are given for shape %s", attribute->count,
                        sp__shape_print(x).text);
    }
    for (; attribute && count < attribute->count; count++) given[count] = attribute->as.ints[count];
    if (sp__op_has_input(call, 1)) {
        SP_TRY(sp__op_known_ints(call, 1, SP_MAX_RANK, given, &count));
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t axis;
        SP_TRY(sp__shape_axis(x, given[i], &axis));
        if (mask & (1u << axis)) {
            return sp__fail(SP_MISMATCH, "axis %" PRIu32 " is given twice", axis);
        }
        mask |= 1u << axis;
    }
    const bool is_noop = sp__attribute_int(call->attributes, "noop_with_empty_axes", 0) != 0;
    *out = count > 0 || is_noop ? mask : (1u << x->rank) - 1;
    return SP_OK;
}

sp_status sp__reduce_infer(sp_op_call *call)
{
    uint32_t axes = 0;
    SP_TRY(read_axes(call, &axes));
    const sp_shape *x = &call->inputs[0].shape;
    const bool keeps = sp__attribute_int(call->attributes, "keepdims", 1) != 0;
    sp_shape y = {.rank = 0};
    for (uint32_t i = 0; i < x->rank; i++) {
        const bool is_reduced = (axes >> i & 1) != 0;
        if (!is_reduced) y.dims[y.rank++] = x->dims[i];
        else if (keeps) y.dims[y.rank++] = 1;
    }
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__reduce_mean_infer(sp_op_call *call)
{
    SP_TRY(sp__reduce_infer(call));
    const sp_op_value *x = &call->inputs[0];
    const bool is_float = x->dtype == SP_F32 || x->dtype == SP_F64 || x->dtype == SP_F16;
    const bool is_empty = sp__shape_count(&x->shape) == 0;
    if (is_float || !is_empty || sp__shape_count(&call->outputs[0].shape) == 0) return SP_OK;
    return sp__fail(SP_MISMATCH, "the mean over no integers is undefined: shape %s",
                    sp__shape_print(&x->shape).text);
}

static sp_kernel_id reduce_kernel(sp_dtype dtype)
{
    switch (dtype) {
    case SP_F64:
        return SP_KERNEL_ID_reduce_f64;
    case SP_F16:
        return SP_KERNEL_ID_reduce_f16;
    case SP_I32:
        return SP_KERNEL_ID_reduce_i32;
    case SP_I64:
        return SP_KERNEL_ID_reduce_i64;
    case SP_I8:
        return SP_KERNEL_ID_reduce_i8;
    case SP_U8:
    case SP_BOOL:
        return SP_KERNEL_ID_reduce_u8;
    default:
        return SP_KERNEL_ID_reduce_f32;
    }
}

/* A reduction over no elements: every output is the neutral result. */
static sp_reduce_constants empty_reduction(uint64_t outputs, sp_reduction reduction)
{
    return (sp_reduce_constants){.reduction = (uint32_t)reduction,
                                 .kept_rank = 1,
                                 .reduced_rank = 1,
                                 .count = (int64_t)outputs,
                                 .kept_dims = {(int64_t)outputs},
                                 .kept_strides = {1}};
}

sp_reduce_constants sp__reduce_constants(const sp_shape *x, uint32_t axes, sp_reduction reduction)
{
    uint64_t extent = 1, outputs = 1;
    int64_t strides[SP_MAX_RANK], unused[SP_MAX_RANK] = {0};
    for (uint32_t i = 0; i < x->rank; i++) {
        const bool is_reduced = (axes >> i & 1) != 0;
        uint64_t *count = is_reduced ? &extent : &outputs;
        *count *= (uint64_t)x->dims[i]; /* overflows only if a later dimension is 0 */
    }
    if (extent == 0) return empty_reduction(outputs, reduction);
    sp__shape_strides(x, strides);
    sp_reduce_constants k = {
        .reduction = (uint32_t)reduction, .extent = (int64_t)extent, .count = (int64_t)outputs};
    bool ends_kept = false; /* whether the last dimension of size above 1 is kept */
    for (uint32_t i = 0; i < x->rank; i++) {
        const bool is_reduced = (axes >> i & 1) != 0;
        if (x->dims[i] != 1) ends_kept = !is_reduced;
        uint32_t *rank = is_reduced ? &k.reduced_rank : &k.kept_rank;
        (is_reduced ? k.dims : k.kept_dims)[*rank] = x->dims[i];
        (is_reduced ? k.strides : k.kept_strides)[(*rank)++] = strides[i];
    }
    k.is_columns = ends_kept;
    k.reduced_rank = sp__collapse(k.reduced_rank, k.dims, k.strides, unused);
    k.kept_rank = sp__collapse(k.kept_rank, k.kept_dims, k.kept_strides, unused);
    return k;
}

sp_status sp__reduce_dispatch(sp_lowering *lowering, const sp_reduce_constants *k, sp_dtype dtype,
                              sp_dispatch **out)
{
    return sp__lower_dispatch(lowering, reduce_kernel(dtype), k, sizeof(*k), out);
}

sp_status sp__reduce_statistics(const sp_op_call *call, sp_lowering *lowering, uint32_t axes,
                                sp_statistics *out)
{
    sp_reduce_constants k = sp__reduce_constants(&call->inputs[0].shape, axes, SP_REDUCE_MEAN);
    const uint64_t bytes = (uint64_t)k.count * sizeof(float);
    out->mean = sp__lower_scratch(lowering, bytes);
    out->variance = sp__lower_scratch(lowering, bytes);
    sp_dispatch *dispatch;
    SP_TRY(sp__reduce_dispatch(lowering, &k, SP_F32, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, out->mean, true);
    k.reduction = SP_REDUCE_VARIANCE;
    k.has_shift = true;
    SP_TRY(sp__reduce_dispatch(lowering, &k, SP_F32, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, out->mean, false);
    sp__lower_bind_scratch(dispatch, lowering, out->variance, true);
    return SP_OK;
}

static sp_status lower_reduction(const sp_op_call *call, sp_lowering *lowering,
                                 sp_reduction reduction)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axes = 0;
    SP_TRY(read_axes(call, &axes));
    const sp_dtype dtype = call->inputs[0].dtype;
    const sp_reduce_constants k = sp__reduce_constants(&call->inputs[0].shape, axes, reduction);
    if (axes == 0 && reduction <= SP_REDUCE_PROD) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    sp_dispatch *dispatch;
    SP_TRY(sp__reduce_dispatch(lowering, &k, dtype, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

#define REDUCE_LOWER(name, reduction)                                                              \
    sp_status sp__reduce_##name##_lower(const sp_op_call *call, sp_lowering *lowering)             \
    {                                                                                              \
        return lower_reduction(call, lowering, SP_REDUCE_##reduction);                             \
    }

REDUCE_LOWER(sum, SUM)
REDUCE_LOWER(mean, MEAN)
REDUCE_LOWER(max, MAX)
REDUCE_LOWER(min, MIN)
REDUCE_LOWER(prod, PROD)
REDUCE_LOWER(sum_square, SUM_SQUARE)
REDUCE_LOWER(l1, L1)
REDUCE_LOWER(l2, L2)
REDUCE_LOWER(log_sum, LOG_SUM)

/* First each output's maximum, which is subtracted to keep the exponentials in range. */
sp_status sp__reduce_log_sum_exp_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    uint32_t axes = 0;
    SP_TRY(read_axes(call, &axes));
    const sp_dtype dtype = call->inputs[0].dtype;
    sp_reduce_constants k =
        sp__reduce_constants(&call->inputs[0].shape, axes, SP_REDUCE_FINITE_MAX);
    const uint32_t shift = sp__lower_scratch(lowering, call->outputs[0].bytes);
    sp_dispatch *dispatch;
    SP_TRY(sp__reduce_dispatch(lowering, &k, dtype, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, shift, true);
    k.reduction = SP_REDUCE_LOG_SUM_EXP;
    k.has_shift = true;
    SP_TRY(sp__reduce_dispatch(lowering, &k, dtype, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, shift, false);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- rows ---- */

const char *sp__reduce_rows(const sp_rows_call *call)
{
    uint32_t axes = 0;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (read_axes(call->many, &axes) != SP_OK) return "its axes are unknown";
    if ((axes >> rows.axis & 1) != 0) return "it reduces the batch axis";
    const bool keeps = sp__attribute_int(call->many->attributes, "keepdims", 1) != 0;
    const uint32_t before = axes & ((1u << rows.axis) - 1);
    const uint32_t gone = keeps ? 0 : (uint32_t)__builtin_popcount(before);
    sp__rows_set_axis(call, 0, rows.axis - gone, &rows);
    return NULL;
}
