/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/rows.h"

#include <string.h>

/* ---- for rules ---- */

bool sp__rows_find_axis(const sp_shape *shape, uint64_t rows, const sp_rows_value *value,
                        sp_rows_axis *out)
{
    uint64_t after = 1; /* elements of the dimensions after the axis */
    if (value->inner == 0) return false;
    for (uint32_t axis = shape->rank; axis-- > 0;) {
        const uint64_t from = after * (uint64_t)shape->dims[axis];
        const bool has_all = value->inner % after == 0 && from % (value->inner * rows) == 0;
        if (has_all && from > 0) {
            *out = (sp_rows_axis){
                .axis = axis, .outer = from / (value->inner * rows), .inner = value->inner / after};
            return true;
        }
        after = from;
        if (after == 0) return false;
    }
    return false;
}

const char *sp__rows_find_input(const sp_rows_call *call, uint32_t index, sp_rows_axis *out)
{
    const sp_op_value *input = &call->many->inputs[index];
    if (input->bytes == 0) return "its input has no elements";
    if (sp__rows_find_axis(&input->shape, call->rows, &call->inputs[index], out)) return NULL;
    return "the rows are spread over several axes";
}

bool sp__rows_match(const sp_rows_axis *a, const sp_rows_axis *b)
{
    return a->axis == b->axis && a->inner == b->inner;
}

bool sp__rows_find_growth(const sp_rows_call *call, uint32_t output, sp_rows_axis *out)
{
    const sp_shape *many = &call->many->outputs[output].shape;
    const sp_shape *single = &call->single->outputs[output].shape;
    uint32_t count = 0;
    if (many->rank != single->rank) return false;
    for (uint32_t i = 0; i < many->rank; i++) {
        if (many->dims[i] == single->dims[i]) continue;
        count++;
        *out = (sp_rows_axis){.axis = i, .outer = 1, .inner = (uint64_t)single->dims[i]};
    }
    return count == 1 && (uint64_t)many->dims[out->axis] == out->inner * call->rows;
}

void sp__rows_set_axis(const sp_rows_call *call, uint32_t output, uint32_t axis,
                       const sp_rows_axis *from)
{
    const sp_shape *shape = &call->many->outputs[output].shape;
    call->outputs[output] =
        (sp_rows_value){.kind = SP_ROWS_BATCHED,
                        .inner = from->inner * sp__shape_range_count(shape, axis + 1, shape->rank)};
}

const char *sp__rows_check_sizes(const sp_rows_call *call, uint32_t size_inputs)
{
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        const bool may_be_sizes = i < 32 && (size_inputs >> i & 1) != 0;
        if (call->inputs[i].kind == SP_ROWS_SIZES && !may_be_sizes) {
            return "it computes with the batch size";
        }
    }
    return NULL;
}

const char *sp__rows_only_first(const sp_rows_call *call, uint32_t size_inputs, sp_rows_axis *out)
{
    const char *why = sp__rows_check_sizes(call, size_inputs);
    if (why != NULL) return why;
    for (uint32_t i = 1; i < call->many->input_count; i++) {
        if (call->inputs[i].kind == SP_ROWS_BATCHED) return "a parameter is batched";
    }
    if (call->inputs[0].kind != SP_ROWS_BATCHED) return "its input has no rows";
    return sp__rows_find_input(call, 0, out);
}

/* ---- a call ---- */

static bool is_batched(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        if (call->inputs[i].kind != SP_ROWS_SHARED) return true;
    }
    return false;
}

static bool is_known(const sp_op_value *value)
{
    return value->data != NULL;
}

/* Folding has limits, so one call's output may be known and the other's not. */
static bool is_equal(const sp_op_value *many, const sp_op_value *single)
{
    if (many->dtype != single->dtype || !sp__shape_equal(&many->shape, &single->shape))
        return false;
    if (!is_known(many) || !is_known(single) || many->data == single->data) return true;
    return memcmp(many->data, single->data, (size_t)many->bytes) == 0;
}

/* Outputs that are known in both calls need no rule: nothing is computed by the run. */
static bool outputs_are_known(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        if (!is_known(&call->many->outputs[i]) || !is_known(&call->single->outputs[i]))
            return false;
    }
    return true;
}

/* Has the larger call's known output the elements of the other's for each row along the axis? */
static bool is_repeated(const sp_rows_call *call, uint32_t output, const sp_rows_axis *rows)
{
    const sp_op_value *many = &call->many->outputs[output];
    const sp_op_value *single = &call->single->outputs[output];
    const sp_shape *shape = &single->shape;
    if (many->dtype != single->dtype) return false;
    const size_t bytes = (size_t)(sp_dtype_bytes(single->dtype) *
                                  sp__shape_range_count(shape, rows->axis, shape->rank));
    const uint64_t outer = sp__shape_range_count(shape, 0, rows->axis);
    const char *from = single->data;
    const char *at = many->data;
    for (uint64_t i = 0; i < outer; i++) {
        for (uint64_t row = 0; row < call->rows; row++, at += bytes) {
            if (memcmp(at, from + i * bytes, bytes) != 0) return false;
        }
    }
    return true;
}

/* A known value that grows with the batch has rows if they are all equal, such as zeros. */
static void outputs_set_known(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        sp_rows_axis rows;
        if (is_equal(&call->many->outputs[i], &call->single->outputs[i])) continue;
        call->outputs[i].kind = SP_ROWS_SIZES;
        const bool grows = sp__rows_find_growth(call, i, &rows);
        if (grows && is_repeated(call, i, &rows)) sp__rows_set_axis(call, i, rows.axis, &rows);
    }
}

static bool outputs_are_equal(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        if (!is_equal(&call->many->outputs[i], &call->single->outputs[i])) return false;
    }
    return true;
}

/* A batched output grows along the axis of its rows, and along no other; a shared one is the same.
 */
static bool output_grows(const sp_rows_call *call, uint32_t index)
{
    const sp_op_value *many = &call->many->outputs[index];
    const sp_op_value *single = &call->single->outputs[index];
    const sp_rows_value *value = &call->outputs[index];
    sp_rows_axis growth, rows;
    if (value->kind == SP_ROWS_SHARED) return is_equal(many, single);
    if (value->kind != SP_ROWS_BATCHED || many->dtype != single->dtype) return false;
    return sp__rows_find_growth(call, index, &growth) &&
           sp__rows_find_axis(&many->shape, call->rows, value, &rows) && rows.axis == growth.axis;
}

static bool outputs_grow(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        if (!output_grows(call, i)) return false;
    }
    return true;
}

static void outputs_set_axes(const sp_rows_call *call)
{
    for (uint32_t i = 0; i < call->many->output_count; i++) {
        const sp_shape *shape = &call->many->outputs[i].shape;
        sp_rows_value *value = &call->outputs[i];
        sp_rows_axis rows;
        if (value->kind != SP_ROWS_BATCHED) continue;
        const bool has_axis = sp__rows_find_axis(shape, call->rows, value, &rows);
        value->axis = has_axis && rows.outer == 1 ? (int32_t)rows.axis : -1;
    }
}

static const char *call_prove(const sp_rows_call *call)
{
    if (outputs_are_known(call)) {
        outputs_set_known(call);
        return NULL;
    }
    if (!is_batched(call) && outputs_are_equal(call)) return NULL; /* zeroed: shared */
    const sp_op_traits *traits = call->many->op->traits;
    if (traits->rows == NULL) return "there is no proof for this op";
    const char *why = traits->rows(call);
    if (why != NULL) return why;
    return outputs_grow(call) ? NULL : "its output does not grow along the batch axis";
}

const char *sp__rows_prove(const sp_rows_call *call)
{
    const char *why = call_prove(call);
    if (why == NULL) outputs_set_axes(call);
    return why;
}

/* ---- shared rules ---- */

/* Where input `index` has the rows, as an axis of the output. A shared input must repeat along that
 * axis, so it says nothing of the axis itself. */
static const char *input_axis(const sp_rows_call *call, uint32_t index, sp_rows_axis *out)
{
    const sp_shape *in = &call->many->inputs[index].shape;
    const sp_shape *y = &call->many->outputs[0].shape;
    const char *why = sp__rows_find_input(call, index, out);
    if (why != NULL) return why;
    const int64_t size = in->dims[out->axis];
    if (in->rank > y->rank) return "its input does not broadcast";
    out->axis += y->rank - in->rank;
    return y->dims[out->axis] == size ? NULL : "its input does not broadcast";
}

static bool repeats_along(const sp_shape *in, const sp_shape *y, uint32_t axis)
{
    const uint32_t missing = y->rank - in->rank;
    return axis < missing || in->dims[axis - missing] == 1;
}

/* The axis that all batched inputs have. */
static const char *common_axis(const sp_rows_call *call, sp_rows_axis *out)
{
    bool has_axis = false;
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        sp_rows_axis axis;
        if (call->inputs[i].kind != SP_ROWS_BATCHED) continue;
        const char *why = input_axis(call, i, &axis);
        if (why != NULL) return why;
        if (!has_axis) *out = axis;
        has_axis = true;
        if (!sp__rows_match(&axis, out)) return "its inputs have their rows in different places";
    }
    return has_axis ? NULL : "its inputs have no rows";
}

const char *sp__elementwise_rows(const sp_rows_call *call)
{
    sp_rows_axis first = {0};
    const char *why = sp__rows_check_sizes(call, 0);
    if (why == NULL) why = common_axis(call, &first);
    if (why != NULL) return why;
    /* Before version 7 an attribute says where the second input begins. */
    if (sp__attribute_find(call->many->attributes, "axis") != NULL) return "it broadcasts by axis";
    for (uint32_t i = 0; i < call->many->input_count; i++) {
        const sp_op_value *in = &call->many->inputs[i];
        if (!in->is_present || call->inputs[i].kind == SP_ROWS_BATCHED) continue;
        if (!repeats_along(&in->shape, &call->many->outputs[0].shape, first.axis)) {
            return "a parameter has a size along the batch axis";
        }
    }
    for (uint32_t k = 0; k < call->many->output_count; k++) {
        sp__rows_set_axis(call, k, first.axis, &first);
    }
    return NULL;
}

const char *sp__reshape_rows(const sp_rows_call *call)
{
    const char *why = sp__rows_check_sizes(call, 1u << 1);
    if (why != NULL) return why;
    if (call->inputs[0].kind != SP_ROWS_BATCHED) return "its input has no rows";
    call->outputs[0] = call->inputs[0];
    return NULL;
}

const char *sp__image_rows(const sp_rows_call *call)
{
    sp_rows_axis axis;
    const char *why = sp__rows_only_first(call, 0, &axis);
    if (why != NULL) return why;
    if (axis.axis != 0) return "the rows are not along the first axis";
    for (uint32_t i = 0; i < call->many->output_count; i++) sp__rows_set_axis(call, i, 0, &axis);
    return NULL;
}
