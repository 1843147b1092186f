/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: one step of the body for each element along an axis of its inputs, with states that are
 * carried from step to step. Before version 9 it has a batch dimension; each row is an independent
 * scan. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "exec/partial/partial_run_build.h"

/* A tensor of `count` elements, all of one shape, stacked along an axis. */
typedef struct stack {
    sp_run_value whole; /* created with the first element */
    char *data;
    const sp_graph_slot *slot; /* declares an element */
    int64_t axis, count;
    sp_shape element;
} stack;

/* One scan: states and inputs before it, states and stacks after it. */
typedef struct scan {
    sp_partial_run *run;
    const sp_graph_node *node;
    const sp_graph_body *body;
    uint32_t state_count, input_count, output_count;
    sp_run_value *states, *inputs;
    stack *outputs;
    int64_t length; /* steps */
    int64_t extent; /* of the inputs along their axis, >= length */
} scan;

/* ---- elements ---- */

/* The blocks of contiguous bytes that make up one element along an axis: their number, size and
 * stride. */
typedef struct blocks {
    uint64_t count, bytes, stride;
} blocks;

static blocks blocks_of(const sp_shape *shape, uint32_t axis, sp_dtype dtype)
{
    const uint64_t bytes =
        sp__shape_range_count(shape, axis + 1, shape->rank) * sp_dtype_bytes(dtype);
    return (blocks){.count = sp__shape_range_count(shape, 0, axis),
                    .bytes = bytes,
                    .stride = bytes * (uint64_t)shape->dims[axis]};
}

/* Element `index` of `from` along the axis: shares its memory if it is contiguous, else a copy. */
static sp_status element_create(sp_partial_run *run, const sp_run_value *from, uint32_t axis,
                                int64_t index, sp_run_value *out)
{
    const blocks b = blocks_of(&from->shape, axis, from->dtype);
    sp_shape shape = {.rank = from->shape.rank - 1};
    for (uint32_t i = 0; i < shape.rank; i++) {
        shape.dims[i] = from->shape.dims[i < axis ? i : i + 1];
    }
    const char *first = (const char *)from->data + (uint64_t)index * b.bytes;
    if (b.count == 1) {
        *out = sp__run_value_retain(from);
        out->shape = shape;
        out->bytes = b.bytes;
        out->data = first;
        return SP_OK;
    }
    void *data;
    SP_TRY(sp__run_value_create(&run->values, from->dtype, &shape, out, &data));
    for (uint64_t i = 0; i < b.count && b.bytes > 0; i++) {
        memcpy((char *)data + i * b.bytes, first + i * b.stride, (size_t)b.bytes);
    }
    return SP_OK;
}

/* ---- stacks ---- */

static sp_status stack_begin(sp_partial_run *run, stack *s, const sp_run_value *element)
{
    sp_shape shape;
    uint32_t axis;
    void *data;
    SP_TRY(sp__partial_body_widened_axis(&element->shape, s->axis, &axis));
    SP_TRY(sp__partial_body_widen(&element->shape, axis, s->count, &shape));
    SP_TRY(sp__run_value_create(&run->values, element->dtype, &shape, &s->whole, &data));
    memset(data, 0, (size_t)s->whole.bytes); /* steps past `length` stay 0 */
    s->data = data;
    s->axis = axis;
    s->element = element->shape;
    return SP_OK;
}

static sp_status stack_put(sp_partial_run *run, stack *s, int64_t index,
                           const sp_run_value *element)
{
    if (s->data == NULL) SP_TRY(stack_begin(run, s, element));
    if (element->dtype != s->whole.dtype || !sp__shape_equal(&element->shape, &s->element)) {
        return sp__fail(
            SP_MISMATCH,
            "output '%s' of the body is %s of shape %s, in earlier iterations %s of shape %s",
            run->graph->values[s->slot->value].name, sp_dtype_name(element->dtype),
            sp__shape_print(&element->shape).text, sp_dtype_name(s->whole.dtype),
            sp__shape_print(&s->element).text);
    }
    const blocks b = blocks_of(&s->whole.shape, (uint32_t)s->axis, s->whole.dtype);
    char *first = s->data + (uint64_t)index * b.bytes;
    for (uint64_t i = 0; i < b.count && b.bytes > 0; i++) {
        memcpy(first + i * b.stride, (const char *)element->data + i * b.bytes, (size_t)b.bytes);
    }
    return SP_OK;
}

/* The tensor, also without elements. */
static sp_status stack_finish(sp_partial_run *run, stack *s, sp_run_value *out)
{
    if (s->data == NULL) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): every stack has a slot */
        const sp_shape *element = &s->slot->shape;
        uint32_t axis;
        SP_TRY(sp__partial_body_widened_axis(element, s->axis, &axis));
        return sp__partial_body_empty_output(run, s->slot, s->count, axis, out);
    }
    *out = s->whole;
    s->whole = (sp_run_value){0};
    s->data = NULL;
    return SP_OK;
}

/* ---- one scan ---- */

static sp_status step_begin(scan *s, int64_t step)
{
    const sp_graph_body *body = s->body;
    SP_TRY(sp__partial_body_begin(s->run, body));
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(sp__partial_body_set_input(s->run, &body->inputs[i], &s->states[i]));
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        const sp_scan_axis *scan_axis = &body->input_axes[i];
        sp_run_value element;
        uint32_t axis;
        SP_TRY(sp__shape_axis(&s->inputs[i].shape, scan_axis->axis, &axis));
        SP_TRY(element_create(s->run, &s->inputs[i], axis,
                              scan_axis->is_reversed ? s->length - 1 - step : step, &element));
        SP_TRY(sp__partial_body_set_input(s->run, &body->inputs[s->state_count + i], &element));
    }
    return SP_OK;
}

static sp_status step_end(scan *s, int64_t step)
{
    const sp_graph_body *body = s->body;
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(sp__partial_body_output(s->run, body->outputs[i].value, &s->states[i]));
    }
    for (uint32_t i = 0; i < s->output_count; i++) {
        const uint32_t value = body->outputs[s->state_count + i].value;
        const bool is_reversed = body->output_axes[i].is_reversed;
        sp_run_value element;
        SP_TRY(sp__partial_run_value(s->run, value, &element));
        SP_TRY(
            stack_put(s->run, &s->outputs[i], is_reversed ? s->length - 1 - step : step, &element));
    }
    return SP_OK;
}

static sp_status step_run(scan *s, int64_t step)
{
    sp_status status = step_begin(s, step);
    if (status == SP_OK) status = sp__partial_run_body(s->run, s->body, NULL);
    if (status == SP_OK) status = step_end(s, step);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "step %" PRId64 ": ", step);
}

/* All inputs must have the same extent along their axes. */
static sp_status find_extent(scan *s)
{
    for (uint32_t i = 0; i < s->input_count; i++) {
        const sp_shape *shape = &s->inputs[i].shape;
        uint32_t axis;
        SP_TRY(sp__shape_axis(shape, s->body->input_axes[i].axis, &axis));
        if (i == 0) s->extent = shape->dims[axis];
        if (shape->dims[axis] == s->extent) continue;
        return sp__fail(SP_MISMATCH,
                        "scan input %" PRIu32 " of shape %s has %" PRId64
                        " elements along its axis; scan input 0 has %" PRId64,
                        i, sp__shape_print(shape).text, shape->dims[axis], s->extent);
    }
    return SP_OK;
}

/* `length` below 0: the whole extent. The final states replace the initial ones in `states`. */
static sp_status scan_run(scan *s, int64_t length)
{
    SP_TRY(find_extent(s));
    if (length > s->extent) {
        return sp__fail(SP_MISMATCH,
                        "the sequence length is %" PRId64 "; the inputs have %" PRId64 " steps",
                        length, s->extent);
    }
    s->length = length >= 0 ? length : s->extent;
    SP_TRY(sp__partial_body_check_trips(s->run, (uint64_t)s->length)); /* before the first step */
    for (uint32_t i = 0; i < s->output_count; i++) {
        s->outputs[i] = (stack){.slot = &s->body->outputs[s->state_count + i],
                                .axis = s->body->output_axes[i].axis,
                                .count = s->extent};
    }
    for (int64_t step = 0; step < s->length; step++) SP_TRY(step_run(s, step));
    return SP_OK;
}

/* ---- from version 9 on ---- */

/* The caller owns the value: a state, or a stacked output. */
static sp_status output_finish(scan *s, uint32_t index, sp_run_value *out)
{
    if (index >= s->state_count) {
        return stack_finish(s->run, &s->outputs[index - s->state_count], out);
    }
    *out = s->states[index];
    s->states[index] = (sp_run_value){0};
    return SP_OK;
}

static sp_status scan_run_unbatched(scan *s)
{
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(sp__partial_body_output(s->run, s->node->inputs[i], &s->states[i]));
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        SP_TRY(sp__partial_body_output(s->run, s->node->inputs[s->state_count + i], &s->inputs[i]));
    }
    SP_TRY(scan_run(s, -1));
    for (uint32_t i = 0; i < s->node->output_count; i++) {
        sp_run_value value;
        SP_TRY(output_finish(s, i, &value));
        sp__run_values_set(&s->run->values, s->node->outputs[i], &value);
    }
    return SP_OK;
}

/* ---- version 8: a batch ---- */

/* Row `row` of an input of the node. */
static sp_status row_create(const scan *s, int64_t row, int64_t rows, uint32_t input,
                            sp_run_value *out)
{
    sp_run_value whole;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[1 + input], &whole));
    if (whole.shape.rank == 0 || whole.shape.dims[0] != rows) {
        return sp__fail(SP_MISMATCH, "input %" PRIu32 " has shape %s; expected a batch of %" PRId64,
                        1 + input, sp__shape_print(&whole.shape).text, rows);
    }
    SP_TRY(element_create(s->run, &whole, 0, row, out));
    out->is_known = false;
    return SP_OK;
}

/* Sequence length of a row from the list of lengths, or -1 without a list. */
static sp_status row_length(const scan *s, int64_t row, int64_t rows, int64_t *out)
{
    *out = -1;
    if (s->node->inputs[0] == SP_NO_VALUE) return SP_OK;
    sp_run_value lengths;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[0], &lengths));
    if (lengths.dtype != SP_I64 || lengths.shape.rank != 1 || lengths.shape.dims[0] != rows) {
        return sp__fail(SP_MISMATCH,
                        "the lengths are %s of shape %s; expected [%" PRId64 "] of i64",
                        sp_dtype_name(lengths.dtype), sp__shape_print(&lengths.shape).text, rows);
    }
    memcpy(out, (const int64_t *)lengths.data + row, sizeof *out);
    if (*out >= 0) return SP_OK;
    return sp__fail(SP_MISMATCH, "the sequence length is %" PRId64 "; it must not be negative",
                    *out);
}

static sp_status row_run(scan *s, int64_t row, int64_t rows, stack *results)
{
    int64_t length;
    SP_TRY(row_length(s, row, rows, &length));
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(row_create(s, row, rows, i, &s->states[i]));
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        SP_TRY(row_create(s, row, rows, s->state_count + i, &s->inputs[i]));
    }
    SP_TRY(scan_run(s, length));
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        sp_run_value value;
        SP_TRY(output_finish(s, i, &value));
        const sp_status status = stack_put(s->run, &results[i], row, &value);
        sp__run_value_release(&s->run->values, &value);
        SP_TRY(status);
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        sp__run_value_release(&s->run->values, &s->inputs[i]);
    }
    return SP_OK;
}

static sp_status batch_run_rows(scan *s, stack *results)
{
    sp_run_value first;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[1], &first));
    const int64_t rows = first.shape.rank > 0 ? first.shape.dims[0] : 0;
    if (rows == 0) return sp__fail(SP_MISMATCH, "input 1 has no batch dimension, or an empty one");
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        results[i] = (stack){.slot = &s->body->outputs[i], .count = rows};
    }
    for (int64_t row = 0; row < rows; row++) SP_TRY(row_run(s, row, rows, results));
    for (uint32_t i = 0; i < s->node->output_count; i++) {
        sp_run_value value;
        SP_TRY(stack_finish(s->run, &results[i], &value));
        sp__run_values_set(&s->run->values, s->node->outputs[i], &value);
    }
    return SP_OK;
}

static sp_status batch_run(scan *s)
{
    stack *results = sp_calloc(s->body->output_count, sizeof(*results));
    if (results == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a scan");
    const sp_status status = batch_run_rows(s, results);
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        sp__run_value_release(&s->run->values, &results[i].whole);
    }
    sp_free(results);
    return status;
}

/* ---- the node ---- */

static void scan_deinit(const scan *s)
{
    for (uint32_t i = 0; s->states != NULL && i < s->state_count; i++) {
        sp__run_value_release(&s->run->values, &s->states[i]);
    }
    for (uint32_t i = 0; s->inputs != NULL && i < s->input_count; i++) {
        sp__run_value_release(&s->run->values, &s->inputs[i]);
    }
    for (uint32_t i = 0; s->outputs != NULL && i < s->output_count; i++) {
        sp__run_value_release(&s->run->values, &s->outputs[i].whole);
    }
    sp_free(s->states);
    sp_free(s->inputs);
    sp_free(s->outputs);
}

sp_status sp__partial_scan(sp_partial_run *run, const sp_graph_node *node)
{
    const sp_graph_body *body = node->body;
    const uint32_t states = body->input_count - body->scan_input_count;
    scan s = {.run = run,
              .node = node,
              .body = body,
              .state_count = states,
              .input_count = body->scan_input_count,
              .output_count = body->scan_output_count,
              .states = sp_calloc(states, sizeof(*s.states)),
              .inputs = sp_calloc(body->scan_input_count, sizeof(*s.inputs)),
              .outputs = sp_calloc(body->scan_output_count, sizeof(*s.outputs))};
    sp_status status;
    if (s.states == NULL || s.inputs == NULL || s.outputs == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory for a scan");
    } else {
        status = node->version < 9 ? batch_run(&s) : scan_run_unbatched(&s);
    }
    sp__run_values_clear(&run->values, body);
    scan_deinit(&s);
    return status;
}
