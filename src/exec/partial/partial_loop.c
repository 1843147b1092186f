/* SPDX-License-Identifier: Apache-2.0 */
/* Loop: iterations of the body, each with the values carried from the last one. Scan outputs grow
 * in memory that doubles, since the number of iterations is not known. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "exec/partial/partial_run_build.h"

/* A scan output: one element per iteration. */
typedef struct growth {
    sp_run_value memory;  /* bytes: the capacity */
    sp_run_value element; /* type and shape of one element */
    int64_t count;
    void *data;
} growth;

typedef struct loop {
    sp_partial_run *run;
    const sp_graph_node *node;
    const sp_graph_body *body;
    uint32_t carried_count, growth_count;
    sp_run_value *carried; /* inputs of the next iteration */
    growth *growths;
    int64_t trips; /* maximum */
    bool condition;
} loop;

/* ---- scan outputs ---- */

static sp_status growth_reserve(sp_partial_run *run, growth *g, uint64_t bytes)
{
    if (g->memory.data != NULL && bytes <= g->memory.bytes) return SP_OK;
    const uint64_t doubled = 2 * g->memory.bytes;
    const sp_shape shape = {.rank = 1, .dims = {(int64_t)(bytes > doubled ? bytes : doubled)}};
    sp_run_value larger;
    void *data;
    SP_TRY(sp__run_value_create(&run->values, SP_U8, &shape, &larger, &data));
    if (g->count > 0) memcpy(data, g->data, (size_t)g->count * g->element.bytes);
    sp__run_value_release(&run->values, &g->memory);
    g->memory = larger;
    g->data = data;
    return SP_OK;
}

static sp_status growth_append(sp_partial_run *run, growth *g, const sp_run_value *element,
                               const char *name)
{
    if (g->count == 0) {
        g->element = *element;
        g->element.memory = NULL;
    }
    if (element->dtype != g->element.dtype ||
        !sp__shape_equal(&element->shape, &g->element.shape)) {
        return sp__fail(
            SP_MISMATCH,
            "output '%s' of the body is %s of shape %s, in earlier iterations %s of shape %s", name,
            sp_dtype_name(element->dtype), sp__shape_print(&element->shape).text,
            sp_dtype_name(g->element.dtype), sp__shape_print(&g->element.shape).text);
    }
    /* No overflow: every iteration has created its element in memory. */
    SP_TRY(growth_reserve(run, g, ((uint64_t)g->count + 1) * element->bytes));
    if (element->bytes > 0) {
        memcpy((char *)g->data + (uint64_t)g->count * element->bytes, element->data,
               (size_t)element->bytes);
    }
    g->count++;
    return SP_OK;
}

/* The scan output as a value; takes over the memory. */
static sp_status growth_finish(sp_partial_run *run, growth *g, const sp_graph_slot *slot,
                               sp_run_value *out)
{
    if (g->count == 0) return sp__partial_body_empty_output(run, slot, 0, 0, out);
    sp_shape shape;
    uint64_t bytes;
    SP_TRY(sp__partial_body_widen(&g->element.shape, 0, g->count, &shape));
    SP_TRY(sp__shape_bytes(&shape, g->element.dtype, &bytes));
    *out = g->memory;
    out->dtype = g->element.dtype;
    out->shape = shape;
    out->bytes = bytes;
    g->memory = (sp_run_value){0};
    return SP_OK;
}

/* ---- one iteration ---- */

static sp_status read_condition(const sp_partial_run *run, uint32_t index, bool *out)
{
    sp_run_value value;
    SP_TRY(sp__partial_run_value(run, index, &value));
    if (value.dtype != SP_BOOL || value.bytes != 1) {
        return sp__fail(SP_MISMATCH, "the condition '%s' is %s of shape %s; expected one bool",
                        run->graph->values[index].name, sp_dtype_name(value.dtype),
                        sp__shape_print(&value.shape).text);
    }
    *out = *(const unsigned char *)value.data != 0;
    return SP_OK;
}

static sp_status iteration_begin(loop *l, int64_t trip)
{
    const sp_graph_slot *slots = l->body->inputs;
    const unsigned char is_true = 1;
    SP_TRY(sp__partial_body_begin(l->run, l->body));
    SP_TRY(sp__partial_body_set_scalar(l->run, &slots[0], SP_I64, &trip));
    SP_TRY(sp__partial_body_set_scalar(l->run, &slots[1], SP_BOOL, &is_true));
    for (uint32_t i = 0; i < l->carried_count; i++) {
        SP_TRY(sp__partial_body_set_input(l->run, &slots[2 + i], &l->carried[i]));
    }
    return SP_OK;
}

static sp_status iteration_end(loop *l)
{
    const sp_graph_slot *slots = l->body->outputs;
    SP_TRY(read_condition(l->run, slots[0].value, &l->condition));
    for (uint32_t i = 0; i < l->carried_count; i++) {
        SP_TRY(sp__partial_body_output(l->run, slots[1 + i].value, &l->carried[i]));
    }
    for (uint32_t i = 0; i < l->growth_count; i++) {
        const uint32_t value = slots[1 + l->carried_count + i].value;
        sp_run_value element;
        SP_TRY(sp__partial_run_value(l->run, value, &element));
        SP_TRY(growth_append(l->run, &l->growths[i], &element, l->run->graph->values[value].name));
    }
    return SP_OK;
}

static sp_status iteration_run(loop *l, int64_t trip)
{
    sp_status status = iteration_begin(l, trip);
    if (status == SP_OK) status = sp__partial_run_body(l->run, l->body, NULL);
    if (status == SP_OK) status = iteration_end(l);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "iteration %" PRId64 ": ", trip);
}

/* ---- the loop ---- */

/* Reads the inputs of the node. An omitted trip count is unbounded, an omitted condition true. */
static sp_status loop_begin(loop *l)
{
    const uint32_t own = l->node->input_count - l->body->capture_count;
    const uint32_t *inputs = l->node->inputs;
    l->trips = INT64_MAX;
    l->condition = true;
    if (own > 0 && inputs[0] != SP_NO_VALUE) {
        sp_run_value value;
        SP_TRY(sp__partial_run_value(l->run, inputs[0], &value));
        if (value.dtype != SP_I64 || value.bytes != sizeof l->trips) {
            return sp__fail(SP_MISMATCH, "the trip count is %s of shape %s; expected one i64",
                            sp_dtype_name(value.dtype), sp__shape_print(&value.shape).text);
        }
        memcpy(&l->trips, value.data, sizeof l->trips);
    }
    if (own > 1 && inputs[1] != SP_NO_VALUE) {
        SP_TRY(read_condition(l->run, inputs[1], &l->condition));
    }
    for (uint32_t i = 0; i < l->carried_count; i++) {
        SP_TRY(sp__partial_body_output(l->run, inputs[2 + i], &l->carried[i]));
    }
    return SP_OK;
}

static sp_status loop_end(loop *l)
{
    for (uint32_t i = 0; i < l->node->output_count; i++) {
        const uint32_t output = l->node->outputs[i];
        sp_run_value value;
        if (i < l->carried_count) {
            value = l->carried[i];
            l->carried[i] = (sp_run_value){0};
        } else {
            SP_TRY(growth_finish(l->run, &l->growths[i - l->carried_count],
                                 &l->body->outputs[1 + i], &value));
        }
        sp__run_values_set(&l->run->values, output, &value);
    }
    return SP_OK;
}

static sp_status loop_run(loop *l)
{
    SP_TRY(loop_begin(l));
    for (int64_t trip = 0; trip < l->trips && l->condition; trip++) SP_TRY(iteration_run(l, trip));
    return loop_end(l);
}

static void loop_deinit(loop *l)
{
    for (uint32_t i = 0; l->carried != NULL && i < l->carried_count; i++) {
        sp__run_value_release(&l->run->values, &l->carried[i]);
    }
    for (uint32_t i = 0; l->growths != NULL && i < l->growth_count; i++) {
        sp__run_value_release(&l->run->values, &l->growths[i].memory);
    }
    sp_free(l->carried);
    sp_free(l->growths);
}

sp_status sp__partial_loop(sp_partial_run *run, const sp_graph_node *node)
{
    const sp_graph_body *body = node->body;
    loop l = {.run = run,
              .node = node,
              .body = body,
              .carried_count = body->input_count - 2,
              .growth_count = body->output_count - (body->input_count - 2) - 1};
    l.carried = sp_calloc(l.carried_count, sizeof(*l.carried));
    l.growths = sp_calloc(l.growth_count, sizeof(*l.growths));
    const sp_status status = l.carried != NULL && l.growths != NULL
                                 ? loop_run(&l)
                                 : sp__fail(SP_OUT_OF_MEMORY, "no memory for a loop");
    sp__run_values_clear(&run->values, body);
    loop_deinit(&l);
    return status;
}
