/* SPDX-License-Identifier: Apache-2.0 */
/* Gather, GatherElements, GatherND and OneHot: indices are data, checked while the kernel runs. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

static uint32_t input_bytes(const sp_op_call *call, uint32_t index)
{
    return (uint32_t)sp_dtype_bytes(call->inputs[index].dtype);
}

static sp_status read_axis(const sp_op_call *call, uint32_t *axis)
{
    return sp__shape_axis(&call->inputs[0].shape, sp__attribute_int(call->attributes, "axis", 0),
                          axis);
}

/* Bindings: x, indices, y. */
static sp_status emit_gather(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                             const void *constants, uint32_t bytes)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernel, constants, bytes, &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- Gather ---- */

sp_status sp__gather_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[1].shape;
    uint32_t axis;
    SP_TRY(read_axis(call, &axis));
    sp_shape y = {.rank = x->rank - 1 + indices->rank};
    if (y.rank > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "shapes %s and %s give more than %d dimensions",
                        sp__shape_print(x).text, sp__shape_print(indices).text, SP_MAX_RANK);
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < axis; i++) y.dims[at++] = x->dims[i];
    for (uint32_t i = 0; i < indices->rank; i++) y.dims[at++] = indices->dims[i];
    for (uint32_t i = axis + 1; i < x->rank; i++) y.dims[at++] = x->dims[i];
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__gather_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape;
    uint32_t axis;
    SP_TRY(read_axis(call, &axis));
    sp_gather_constants k = {.outer = (int64_t)sp__shape_range_count(x, 0, axis),
                             .axis = x->dims[axis],
                             .inner_bytes = (int64_t)sp__shape_range_count(x, axis + 1, x->rank) *
                                            input_bytes(call, 0),
                             .count = (int64_t)sp__shape_count(&call->inputs[1].shape),
                             .index_bytes = input_bytes(call, 1)};
    return emit_gather(call, lowering, SP_KERNEL_ID_gather, &k, sizeof(k));
}

/* ---- GatherElements ---- */

sp_status sp__elements_shapes(const sp_op_call *call, uint32_t axis)
{
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[1].shape;
    bool fits = x->rank == indices->rank;
    for (uint32_t i = 0; i < x->rank && fits; i++) {
        fits = i == axis || indices->dims[i] <= x->dims[i];
    }
    if (fits) return SP_OK;
    return sp__fail(SP_MISMATCH, "indices of shape %s do not match data of shape %s",
                    sp__shape_print(indices).text, sp__shape_print(x).text);
}

sp_status sp__gather_elements_infer(sp_op_call *call)
{
    uint32_t axis;
    SP_TRY(read_axis(call, &axis));
    SP_TRY(sp__elements_shapes(call, axis));
    sp__op_set_output(call, 0, call->inputs[0].dtype, &call->inputs[1].shape);
    return SP_OK;
}

sp_status sp__gather_elements_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape, *y = &call->outputs[0].shape;
    sp_gather_elements_constants k = {.rank = y->rank,
                                      .element_bytes = input_bytes(call, 0),
                                      .index_bytes = input_bytes(call, 1),
                                      .count = (int64_t)sp__shape_count(y)};
    uint32_t axis;
    SP_TRY(read_axis(call, &axis));
    sp__shape_strides(x, k.x);
    k.axis_size = x->dims[axis];
    k.axis_stride = k.x[axis];
    k.x[axis] = 0;
    for (uint32_t i = 0; i < y->rank; i++) k.dims[i] = y->dims[i];
    return emit_gather(call, lowering, SP_KERNEL_ID_gather_elements, &k, sizeof(k));
}

/* ---- GatherND ---- */

/* The first `batch` dimensions of both are batch dimensions; the last dimension of the indices is
 * an index of `depth` numbers. */
static sp_status read_batch(const sp_op_call *call, uint32_t *batch, uint32_t *depth)
{
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[1].shape;
    const int64_t dims = sp__attribute_int(call->attributes, "batch_dims", 0);
    bool fits = dims >= 0 && dims < (int64_t)x->rank && dims < (int64_t)indices->rank;
    for (uint32_t i = 0; fits && i < (uint32_t)dims; i++) fits = x->dims[i] == indices->dims[i];
    const int64_t last = indices->rank > 0 ? indices->dims[indices->rank - 1] : 0;
    if (!fits || last < 1 || last > (int64_t)x->rank - dims) {
        return sp__fail(
            SP_MISMATCH,
            "indices of shape %s do not match data of shape %s with batch_dims %" PRId64,
            sp__shape_print(indices).text, sp__shape_print(x).text, dims);
    }
    *batch = (uint32_t)dims;
    *depth = (uint32_t)last;
    return SP_OK;
}

sp_status sp__gather_nd_infer(sp_op_call *call)
{
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[1].shape;
    uint32_t batch, depth;
    SP_TRY(read_batch(call, &batch, &depth));
    const uint32_t rank = indices->rank - 1 + x->rank - batch - depth;
    if (rank > SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "shapes %s and %s give more than %d dimensions",
                        sp__shape_print(x).text, sp__shape_print(indices).text, SP_MAX_RANK);
    }
    sp_shape y = {.rank = rank};
    uint32_t at = 0;
    for (uint32_t i = 0; i + 1 < indices->rank; i++) y.dims[at++] = indices->dims[i];
    for (uint32_t i = batch + depth; i < x->rank; i++) y.dims[at++] = x->dims[i];
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__gather_nd_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *x = &call->inputs[0].shape, *indices = &call->inputs[1].shape;
    const int64_t bytes = input_bytes(call, 0);
    uint32_t batch, depth;
    SP_TRY(read_batch(call, &batch, &depth));
    sp_gather_nd_constants k = {
        .depth = depth,
        .index_bytes = input_bytes(call, 1),
        .rows = (int64_t)sp__shape_range_count(indices, 0, indices->rank - 1),
        .batch_rows = (int64_t)sp__shape_range_count(indices, batch, indices->rank - 1),
        .batch_bytes = (int64_t)sp__shape_range_count(x, batch, x->rank) * bytes,
        .slice_bytes = (int64_t)sp__shape_range_count(x, batch + depth, x->rank) * bytes};
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(x, strides);
    for (uint32_t i = 0; i < depth; i++) {
        k.dims[i] = x->dims[batch + i];
        k.strides[i] = strides[batch + i] * bytes;
    }
    return emit_gather(call, lowering, SP_KERNEL_ID_gather_nd, &k, sizeof(k));
}

/* ---- OneHot ---- */

enum { INPUT_DEPTH = 1, INPUT_VALUES = 2 };

static sp_status read_depth(const sp_op_call *call, int64_t *out)
{
    const sp_op_value *depth = &call->inputs[INPUT_DEPTH];
    uint32_t count = 1;
    if (depth->dtype == SP_F32 && sp__shape_count(&depth->shape) == 1 && depth->data) {
        const float number = *(const float *)depth->data;
        *out = number > 0 && number < 1e9f ? (int64_t)number : 0;
    } else {
        SP_TRY(sp__op_known_ints(call, INPUT_DEPTH, 1, out, &count));
    }
    if (count == 1 && *out >= 1) return SP_OK;
    return sp__fail(SP_MISMATCH, "the depth must be one number above 0");
}

static sp_status one_hot_axis(const sp_op_call *call, uint32_t *axis)
{
    const sp_shape y = {.rank = call->inputs[0].shape.rank + 1};
    return sp__shape_axis(&y, sp__attribute_int(call->attributes, "axis", -1), axis);
}

sp_status sp__one_hot_infer(sp_op_call *call)
{
    const sp_shape *indices = &call->inputs[0].shape;
    const sp_op_value *values = &call->inputs[INPUT_VALUES];
    int64_t depth;
    uint32_t axis, from = 0;
    if (values->shape.rank != 1 || values->shape.dims[0] != 2) {
        return sp__fail(SP_MISMATCH, "the values have shape %s; expected [2]",
                        sp__shape_print(&values->shape).text);
    }
    if (indices->rank == SP_MAX_RANK) {
        return sp__fail(
            SP_MISMATCH,
            "indices of shape %s have the highest rank, the output would have one more dimension",
            sp__shape_print(indices).text);
    }
    SP_TRY(read_depth(call, &depth));
    SP_TRY(one_hot_axis(call, &axis));
    sp_shape y = {.rank = indices->rank + 1};
    for (uint32_t i = 0; i < y.rank; i++) y.dims[i] = i == axis ? depth : indices->dims[from++];
    sp__op_set_output(call, 0, values->dtype, &y);
    return SP_OK;
}

sp_status sp__one_hot_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_shape *indices = &call->inputs[0].shape;
    uint32_t axis;
    SP_TRY(one_hot_axis(call, &axis));
    sp_one_hot_constants k = {.element_bytes = input_bytes(call, INPUT_VALUES),
                              .index_type = call->inputs[0].dtype,
                              .outer = (int64_t)sp__shape_range_count(indices, 0, axis),
                              .depth = call->outputs[0].shape.dims[axis],
                              .inner =
                                  (int64_t)sp__shape_range_count(indices, axis, indices->rank)};
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_one_hot, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, INPUT_VALUES);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

/* ---- rows ---- */

/* Rows of indices into shared data, or rows of data along another axis, picked by shared indices.
 */
const char *sp__gather_rows(const sp_rows_call *call)
{
    const sp_rows_value *values = call->inputs;
    const uint32_t from = values[1].kind == SP_ROWS_BATCHED ? 1 : 0;
    const uint32_t rank = call->many->inputs[1].shape.rank;
    uint32_t axis;
    sp_rows_axis rows;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (values[1 - from].kind == SP_ROWS_BATCHED) return "each row has its own indices and data";
    if (read_axis(call->many, &axis) != SP_OK) return "its axis is unknown";
    why = sp__rows_find_input(call, from, &rows);
    if (why != NULL) return why;
    if (from == 0 && rows.axis == axis) return "it picks along the batch axis";
    uint32_t to = rows.axis;
    if (from == 1) to += axis;
    else if (rows.axis > axis) to += rank - 1;
    sp__rows_set_axis(call, 0, to, &rows);
    return NULL;
}

/* Rows of data and of their indices in one place; or rows of indices along the op's axis into
 * shared data. */
const char *sp__gather_elements_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows, data;
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (call->inputs[1].kind != SP_ROWS_BATCHED) return "its indices have no rows";
    why = sp__rows_find_input(call, 1, &rows);
    if (why != NULL) return why;
    if (read_axis(call->many, &axis) != SP_OK) return "its axis is unknown";
    if (call->inputs[0].kind == SP_ROWS_BATCHED) {
        why = sp__rows_find_input(call, 0, &data);
        if (why != NULL) return why;
        if (!sp__rows_match(&rows, &data)) return "its inputs have their rows in different places";
        if (rows.axis == axis) return "it picks along the batch axis";
    } else if (rows.axis != axis) {
        return "a parameter has a size along the batch axis";
    }
    sp__rows_set_axis(call, 0, rows.axis, &rows);
    return NULL;
}

/* Rows of both along a batch dimension of the op. Else only one has rows: indices, or what each
 * index selects. */
static const char *gather_nd_axis(const sp_rows_call *call, uint32_t batch, uint32_t depth,
                                  sp_rows_axis *out)
{
    const uint32_t last = call->many->inputs[1].shape.rank - 1;
    const bool has_data = call->inputs[0].kind == SP_ROWS_BATCHED;
    const bool has_indices = call->inputs[1].kind == SP_ROWS_BATCHED;
    sp_rows_axis data = {0};
    const char *why = has_data ? sp__rows_find_input(call, 0, &data) : NULL;
    if (why == NULL && has_indices) why = sp__rows_find_input(call, 1, out);
    if (why != NULL) return why;
    if (has_data && has_indices) {
        const bool is_batch = out->axis < batch && sp__rows_match(out, &data);
        return is_batch ? NULL : "each row has its own indices and data";
    }
    if (has_indices) {
        if (out->axis == last) return "an index is spread over the rows";
        return out->axis >= batch ? NULL : "a parameter has a size along the batch axis";
    }
    if (data.axis < batch) return "a parameter has a size along the batch axis";
    if (data.axis < batch + depth) return "it picks along the batch axis";
    *out = data;
    out->axis += last - batch - depth;
    return NULL;
}

const char *sp__gather_nd_rows(const sp_rows_call *call)
{
    uint32_t batch, depth;
    sp_rows_axis rows = {0};
    const char *why = sp__rows_check_sizes(call, 0);
    if (why != NULL) return why;
    if (read_batch(call->many, &batch, &depth) != SP_OK) return "its indices are unknown";
    why = gather_nd_axis(call, batch, depth, &rows);
    if (why == NULL) sp__rows_set_axis(call, 0, rows.axis, &rows);
    return why;
}

const char *sp__one_hot_rows(const sp_rows_call *call)
{
    uint32_t axis;
    sp_rows_axis rows;
    const char *why = sp__rows_only_first(call, 0, &rows);
    if (why != NULL) return why;
    if (one_hot_axis(call->many, &axis) != SP_OK) return "its axis is unknown";
    sp__rows_set_axis(call, 0, rows.axis + (rows.axis >= axis ? 1 : 0), &rows);
    return NULL;
}
