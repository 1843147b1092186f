/* SPDX-License-Identifier: Apache-2.0 */
/* Loop: the body again and again, each time from what the time before has carried on. The outputs
 * that grow do so in memory that doubles, since nobody knows how often it will be. */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "exec/partial_run_build.h"

/* An output with one element for each time through the body. */
typedef struct growth {
    sp_run_value memory;  /* bytes, as many as there is room for */
    sp_run_value element; /* type and shape of one */
    int64_t count;
    void *data;
} growth;

typedef struct loop {
    sp_partial_run *run;
    const sp_graph_node *node;
    const sp_graph_body *body;
    uint32_t carried_count, growth_count;
    sp_run_value *carried; /* what the next time begins with */
    growth *growths;
    int64_t trips; /* at most */
    bool goes_on;
} loop;

/* ---- outputs that grow ---- */

static sp_status make_room(sp_partial_run *run, growth *g, uint64_t bytes)
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

static sp_status grow(sp_partial_run *run, growth *g, const sp_run_value *element, const char *name)
{
    if (g->count == 0) {
        g->element = *element;
        g->element.memory = NULL;
    }
    if (element->dtype != g->element.dtype ||
        !sp__shape_equal(&element->shape, &g->element.shape)) {
        return sp__fail(SP_MISMATCH,
                        "output '%s' of the body is %s of shape %s, before it was %s of %s", name,
                        sp_dtype_name(element->dtype), sp__shape_print(&element->shape).text,
                        sp_dtype_name(g->element.dtype), sp__shape_print(&g->element.shape).text);
    }
    /* Neither factor is near 2^32 times the other: each step has made its element. */
    SP_TRY(make_room(run, g, ((uint64_t)g->count + 1) * element->bytes));
    if (element->bytes > 0) {
        memcpy((char *)g->data + (uint64_t)g->count * element->bytes, element->data,
               (size_t)element->bytes);
    }
    g->count++;
    return SP_OK;
}

/* What has grown, as a value of its own. */
static sp_status finish_growth(sp_partial_run *run, growth *g, const sp_graph_slot *slot,
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

/* ---- once through the body ---- */

static sp_status read_condition(const sp_partial_run *run, uint32_t index, bool *out)
{
    sp_run_value value;
    SP_TRY(sp__partial_run_value(run, index, &value));
    if (value.dtype != SP_BOOL || value.bytes != 1) {
        return sp__fail(SP_MISMATCH, "the condition '%s' is %s of shape %s, wanted one bool",
                        run->graph->values[index].name, sp_dtype_name(value.dtype),
                        sp__shape_print(&value.shape).text);
    }
    *out = *(const unsigned char *)value.data != 0;
    return SP_OK;
}

static sp_status enter(loop *l, int64_t trip)
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

static sp_status leave(loop *l)
{
    const sp_graph_slot *slots = l->body->outputs;
    SP_TRY(read_condition(l->run, slots[0].value, &l->goes_on));
    for (uint32_t i = 0; i < l->carried_count; i++) {
        SP_TRY(sp__partial_body_output(l->run, slots[1 + i].value, &l->carried[i]));
    }
    for (uint32_t i = 0; i < l->growth_count; i++) {
        const uint32_t value = slots[1 + l->carried_count + i].value;
        sp_run_value element;
        SP_TRY(sp__partial_run_value(l->run, value, &element));
        SP_TRY(grow(l->run, &l->growths[i], &element, l->run->graph->values[value].name));
    }
    return SP_OK;
}

static sp_status go_through(loop *l, int64_t trip)
{
    sp_status status = enter(l, trip);
    if (status == SP_OK) status = sp__partial_run_body(l->run, l->body, NULL);
    if (status == SP_OK) status = leave(l);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "iteration %" PRId64 ": ", trip);
}

/* ---- the loop ---- */

/* The inputs of the node; those that the file leaves out are unbounded, and true. */
static sp_status begin(loop *l)
{
    const uint32_t own = l->node->input_count - l->body->capture_count;
    const uint32_t *inputs = l->node->inputs;
    l->trips = INT64_MAX;
    l->goes_on = true;
    if (own > 0 && inputs[0] != SP_NO_VALUE) {
        sp_run_value value;
        SP_TRY(sp__partial_run_value(l->run, inputs[0], &value));
        if (value.dtype != SP_I64 || value.bytes != sizeof l->trips) {
            return sp__fail(SP_MISMATCH, "the trip count is %s of shape %s, wanted one i64",
                            sp_dtype_name(value.dtype), sp__shape_print(&value.shape).text);
        }
        memcpy(&l->trips, value.data, sizeof l->trips);
    }
    if (own > 1 && inputs[1] != SP_NO_VALUE) {
        SP_TRY(read_condition(l->run, inputs[1], &l->goes_on));
    }
    for (uint32_t i = 0; i < l->carried_count; i++) {
        SP_TRY(sp__partial_body_output(l->run, inputs[2 + i], &l->carried[i]));
    }
    return SP_OK;
}

static sp_status end(loop *l)
{
    for (uint32_t i = 0; i < l->node->output_count; i++) {
        const uint32_t output = l->node->outputs[i];
        sp_run_value value;
        if (i < l->carried_count) {
            value = l->carried[i];
            l->carried[i] = (sp_run_value){0};
        } else {
            SP_TRY(finish_growth(l->run, &l->growths[i - l->carried_count],
                                 &l->body->outputs[1 + i], &value));
        }
        sp__run_values_set(&l->run->values, output, &value);
    }
    return SP_OK;
}

static sp_status run_loop(loop *l)
{
    SP_TRY(begin(l));
    for (int64_t trip = 0; trip < l->trips && l->goes_on; trip++) SP_TRY(go_through(l, trip));
    return end(l);
}

static void loop_free(loop *l)
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
                                 ? run_loop(&l)
                                 : sp__fail(SP_OUT_OF_MEMORY, "no memory for a loop");
    sp__run_values_clear(&run->values, body);
    loop_free(&l);
    return status;
}
