/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: the body once for each element along an axis of its inputs, with states that go from one to
 * the next. Before version 9 there is a batch around it, each row of which is a scan of its own. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "exec/partial_run_build.h"

/* A tensor that is put together from `count` equal elements along an axis. */
typedef struct stack {
    sp_run_value whole; /* made with the first element */
    char *data;
    const sp_graph_slot *slot; /* what an element is */
    int64_t axis, count;
    sp_shape element;
} stack;

/* One scan: states and inputs before, states and stacks after. */
typedef struct scan {
    sp_partial_run *run;
    const sp_graph_node *node;
    const sp_graph_body *body;
    uint32_t state_count, input_count, output_count;
    sp_run_value *states, *inputs;
    stack *outputs;
    int64_t length; /* steps */
    int64_t extent; /* of the inputs along their axis: at least as much */
} scan;

/* ---- elements ---- */

/* Bytes of the blocks that element `index` along an axis is made of, and how many there are. */
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

/* Element `index` of `from` along the axis: the same bytes if they stand together, else a copy. */
static sp_status take_element(sp_partial_run *run, const sp_run_value *from, uint32_t axis,
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
    memset(data, 0, (size_t)s->whole.bytes); /* what no step reaches */
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
        return sp__fail(SP_MISMATCH,
                        "output '%s' of the body is %s of shape %s, before it was %s of %s",
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

/* The tensor, also if nothing was put into it. */
static sp_status stack_finish(sp_partial_run *run, stack *s, sp_run_value *out)
{
    if (s->data == NULL) {
        /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): who makes a stack says of what */
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

static sp_status enter(scan *s, int64_t step)
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
        SP_TRY(take_element(s->run, &s->inputs[i], axis,
                            scan_axis->is_reversed ? s->length - 1 - step : step, &element));
        SP_TRY(sp__partial_body_set_input(s->run, &body->inputs[s->state_count + i], &element));
    }
    return SP_OK;
}

static sp_status leave(scan *s, int64_t step)
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

static sp_status go_through(scan *s, int64_t step)
{
    sp_status status = enter(s, step);
    if (status == SP_OK) status = sp__partial_run_body(s->run, s->body, NULL);
    if (status == SP_OK) status = leave(s, step);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "step %" PRId64 ": ", step);
}

/* Along its axis, all inputs have the same extent. */
static sp_status find_extent(scan *s)
{
    for (uint32_t i = 0; i < s->input_count; i++) {
        const sp_shape *shape = &s->inputs[i].shape;
        uint32_t axis;
        SP_TRY(sp__shape_axis(shape, s->body->input_axes[i].axis, &axis));
        if (i == 0) s->extent = shape->dims[axis];
        if (shape->dims[axis] == s->extent) continue;
        return sp__fail(SP_MISMATCH,
                        "input %" PRIu32 " to be walked along has shape %s, %" PRId64
                        " elements along its axis; input 0 has %" PRId64,
                        i, sp__shape_print(shape).text, shape->dims[axis], s->extent);
    }
    return SP_OK;
}

/* `length` below 0 is all of it. The states of the end stand where those of the beginning stood. */
static sp_status run_scan(scan *s, int64_t length)
{
    SP_TRY(find_extent(s));
    if (length > s->extent) {
        return sp__fail(SP_MISMATCH, "a sequence of %" PRId64 " steps, the inputs have %" PRId64,
                        length, s->extent);
    }
    s->length = length >= 0 ? length : s->extent;
    SP_TRY(
        sp__partial_body_check_trips(s->run, (uint64_t)s->length)); /* all of them will be made */
    for (uint32_t i = 0; i < s->output_count; i++) {
        s->outputs[i] = (stack){.slot = &s->body->outputs[s->state_count + i],
                                .axis = s->body->output_axes[i].axis,
                                .count = s->extent};
    }
    for (int64_t step = 0; step < s->length; step++) SP_TRY(go_through(s, step));
    return SP_OK;
}

/* ---- from version 9 on ---- */

static sp_status run_plain(scan *s)
{
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(sp__partial_body_output(s->run, s->node->inputs[i], &s->states[i]));
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        SP_TRY(sp__partial_body_output(s->run, s->node->inputs[s->state_count + i], &s->inputs[i]));
    }
    SP_TRY(run_scan(s, -1));
    for (uint32_t i = 0; i < s->node->output_count; i++) {
        sp_run_value value;
        if (i < s->state_count) {
            value = s->states[i];
            s->states[i] = (sp_run_value){0};
        } else {
            SP_TRY(stack_finish(s->run, &s->outputs[i - s->state_count], &value));
        }
        sp__run_values_set(&s->run->values, s->node->outputs[i], &value);
    }
    return SP_OK;
}

/* ---- version 8: a batch ---- */

/* Rows `row` of what the node is given. */
static sp_status take_row(const scan *s, int64_t row, int64_t rows, uint32_t input,
                          sp_run_value *out)
{
    sp_run_value whole;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[1 + input], &whole));
    if (whole.shape.rank == 0 || whole.shape.dims[0] != rows) {
        return sp__fail(SP_MISMATCH, "input %" PRIu32 " has shape %s, wanted a batch of %" PRId64,
                        1 + input, sp__shape_print(&whole.shape).text, rows);
    }
    SP_TRY(take_element(s->run, &whole, 0, row, out));
    out->is_known = false;
    return SP_OK;
}

/* Steps of a row: of the list of lengths, or all. */
static sp_status length_of(const scan *s, int64_t row, int64_t rows, int64_t *out)
{
    *out = -1;
    if (s->node->inputs[0] == SP_NO_VALUE) return SP_OK;
    sp_run_value lengths;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[0], &lengths));
    if (lengths.dtype != SP_I64 || lengths.shape.rank != 1 || lengths.shape.dims[0] != rows) {
        return sp__fail(SP_MISMATCH, "the lengths are %s of shape %s, wanted [%" PRId64 "] of i64",
                        sp_dtype_name(lengths.dtype), sp__shape_print(&lengths.shape).text, rows);
    }
    memcpy(out, (const int64_t *)lengths.data + row, sizeof *out);
    if (*out >= 0) return SP_OK;
    return sp__fail(SP_MISMATCH, "a sequence of %" PRId64 " steps", *out);
}

static sp_status run_row(scan *s, int64_t row, int64_t rows, stack *results)
{
    int64_t length;
    SP_TRY(length_of(s, row, rows, &length));
    for (uint32_t i = 0; i < s->state_count; i++) {
        SP_TRY(take_row(s, row, rows, i, &s->states[i]));
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        SP_TRY(take_row(s, row, rows, s->state_count + i, &s->inputs[i]));
    }
    SP_TRY(run_scan(s, length));
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        sp_run_value value;
        if (i < s->state_count) {
            value = s->states[i];
            s->states[i] = (sp_run_value){0};
        } else {
            SP_TRY(stack_finish(s->run, &s->outputs[i - s->state_count], &value));
        }
        const sp_status status = stack_put(s->run, &results[i], row, &value);
        sp__run_value_release(&s->run->values, &value);
        SP_TRY(status);
    }
    for (uint32_t i = 0; i < s->input_count; i++) {
        sp__run_value_release(&s->run->values, &s->inputs[i]);
    }
    return SP_OK;
}

static sp_status run_rows(scan *s, stack *results)
{
    sp_run_value first;
    SP_TRY(sp__partial_run_value(s->run, s->node->inputs[1], &first));
    const int64_t rows = first.shape.rank > 0 ? first.shape.dims[0] : 0;
    if (rows == 0) return sp__fail(SP_MISMATCH, "input 1 has no batch in front, or an empty one");
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        results[i] = (stack){.slot = &s->body->outputs[i], .count = rows};
    }
    for (int64_t row = 0; row < rows; row++) SP_TRY(run_row(s, row, rows, results));
    for (uint32_t i = 0; i < s->node->output_count; i++) {
        sp_run_value value;
        SP_TRY(stack_finish(s->run, &results[i], &value));
        sp__run_values_set(&s->run->values, s->node->outputs[i], &value);
    }
    return SP_OK;
}

static sp_status run_batch(scan *s)
{
    stack *results = sp_calloc(s->body->output_count, sizeof(*results));
    if (results == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a scan");
    const sp_status status = run_rows(s, results);
    for (uint32_t i = 0; i < s->body->output_count; i++) {
        sp__run_value_release(&s->run->values, &results[i].whole);
    }
    sp_free(results);
    return status;
}

/* ---- the node ---- */

static void scan_free(const scan *s)
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
        status = node->version < 9 ? run_batch(&s) : run_plain(&s);
    }
    sp__run_values_clear(&run->values, body);
    scan_free(&s);
    return status;
}
