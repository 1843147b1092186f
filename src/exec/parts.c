/* SPDX-License-Identifier: Apache-2.0 */
/* From plan to plan. No plan is in use while another one is looked for, so a run that waits for a
 * place in the cache holds its stream and nothing else (docs/decisions/0020). */
#include "exec/parts.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/parts_build.h"
#include "plan/part_needs.h"

sp_status sp__parts_check(const sp_parts *parts)
{
    sp_rt_device *device;
    return sp__rt_device_find_working(sp__rt_device_handle(parts->model->device), &device);
}

sp_status sp__parts_look(const sp_parts *parts, uint32_t index, sp_part_value *out)
{
    sp_part_value room;
    const sp_part_value *value = sp__part_look(&parts->values, index, &room);
    if (value == NULL) {
        return sp__fail(SP_INTERNAL, "value '%s' is not there", parts->graph->values[index].name);
    }
    *out = *value;
    return SP_OK;
}

/* ---- what the next plan is asked for ---- */

typedef struct part_request {
    uint32_t *given, *wanted;
    sp_plan_input *inputs;
    uint32_t given_count, wanted_count;
} part_request;

static void request_free(const part_request *request)
{
    sp_free(request->given);
    sp_free(request->wanted);
    sp_free(request->inputs);
}

static sp_status request_alloc(part_request *request, const sp_graph_body *body)
{
    const size_t most = (size_t)body->capture_count + (body->end_value - body->first_value);
    request->given = sp_calloc(most, sizeof(*request->given));
    request->wanted = sp_calloc(body->output_count, sizeof(*request->wanted));
    if (request->given != NULL && request->wanted != NULL) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for a part of a run");
}

/* The outputs that are not there yet. */
static void find_wanted(const sp_parts *parts, const sp_graph_body *body, part_request *request)
{
    for (uint32_t i = 0; i < body->output_count; i++) {
        sp_part_value room;
        const uint32_t value = body->outputs[i].value;
        if (sp__part_look(&parts->values, value, &room) != NULL) continue;
        request->wanted[request->wanted_count++] = value;
    }
}

/* What the nodes that are left read, of what is there. */
static sp_status find_given(const sp_parts *parts, const sp_graph_body *body, part_request *request)
{
    const sp_part_values *values = &parts->values;
    sp_part_needs needs;
    SP_TRY(sp__part_needs_init(&needs, body));
    for (uint32_t v = body->first_value; v < body->end_value; v++) {
        if (!sp__part_has(values, v)) continue;
        const sp_part_value *value = &values->list[v];
        sp__part_needs_know(&needs, v, value->dtype, &value->shape,
                            value->is_known ? value->data : NULL);
    }
    for (uint32_t i = 0; i < request->wanted_count; i++) {
        sp__part_needs_want(&needs, request->wanted[i]);
    }
    sp__part_needs_find(&needs, parts->graph);
    for (uint32_t i = 0; i < body->capture_count; i++) {
        if (!sp__part_has(values, body->captures[i])) continue;
        request->given[request->given_count++] = body->captures[i];
    }
    for (uint32_t v = body->first_value; v < body->end_value; v++) {
        const uint32_t own = v - body->first_value;
        if (needs.wanted[own] && needs.is_stop[own]) request->given[request->given_count++] = v;
    }
    sp__part_needs_deinit(&needs);
    return SP_OK;
}

static sp_status describe_given(const sp_parts *parts, part_request *request)
{
    request->inputs = sp_calloc(request->given_count, sizeof(*request->inputs));
    if (request->inputs == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a part of a run");
    for (uint32_t i = 0; i < request->given_count; i++) {
        const sp_part_value *value = &parts->values.list[request->given[i]];
        request->inputs[i] = (sp_plan_input){.dtype = value->dtype,
                                             .shape = value->shape,
                                             .data = value->is_known ? value->data : NULL};
    }
    return SP_OK;
}

/* The plan of what is left; NULL if nothing is. */
static sp_status find_next(const sp_parts *parts, const sp_graph_body *body, part_request *request,
                           sp_plan_entry **out)
{
    *out = NULL;
    SP_TRY(request_alloc(request, body));
    find_wanted(parts, body, request);
    if (request->wanted_count == 0) return SP_OK;
    SP_TRY(find_given(parts, body, request));
    SP_TRY(describe_given(parts, request));
    const sp_plan_part part = {.body = body,
                               .given = request->given,
                               .wanted = request->wanted,
                               .given_count = request->given_count,
                               .wanted_count = request->wanted_count};
    const sp_plan_request plan = {
        .part = &part, .inputs = request->inputs, .input_count = request->given_count};
    return sp__plan_cache_acquire(&parts->model->plans, &plan, parts->stream != NULL, out);
}

static sp_status entry_next(const sp_parts *parts, const sp_graph_body *body, sp_plan_entry **out)
{
    part_request request = {0};
    const sp_status status = find_next(parts, body, &request, out);
    request_free(&request);
    return status;
}

/* ---- one plan ---- */

/* `made` has room for the outputs. */
static sp_status compute(sp_parts *parts, sp_executable *executable, sp_part_value *made)
{
    const sp_graph_plan *plan = executable->plan;
    const void *inputs[SP_PLAN_PART_PORTS + SP_MODEL_MAX_PORTS];
    void *outputs[SP_PLAN_PART_PORTS];
    for (uint32_t i = 0; i < plan->input_count; i++) {
        inputs[i] = parts->values.list[plan->inputs[i].value].data;
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const sp_plan_tensor *output = &plan->outputs[i];
        SP_TRY(sp__part_make(&parts->values, output->dtype, &output->shape, &made[i], &outputs[i]));
        made[i].is_known = output->is_known;
    }
    if (plan->step_count == 0) return SP_OK;
    SP_TRY(sp__part_check_arena(&parts->values, plan->arena_bytes));
    parts->plan_count++;
    return sp__model_compute(parts->model, executable, inputs, outputs, parts->stream);
}

/* Its arrays are large, and what is called next may be a body in a body: not of its stack. */
static SP_NOINLINE sp_status run_plan(sp_parts *parts, sp_executable *executable)
{
    const sp_graph_plan *plan = executable->plan;
    sp_part_value made[SP_PLAN_PART_PORTS];
    memset(made, 0, plan->output_count * sizeof(*made));
    const sp_status status = compute(parts, executable, made);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (status == SP_OK) sp__part_set(&parts->values, plan->outputs[i].value, &made[i]);
        else sp__part_drop(&parts->values, &made[i]);
    }
    if (status != SP_OK) return status;
    for (uint32_t i = 0; i < plan->asked_count; i++) {
        parts->values.list[plan->asked[i]].is_known = true;
    }
    return SP_OK;
}

static sp_status compute_stop(sp_parts *parts, const sp_graph_node *node)
{
    if (node->body == NULL) return sp__parts_evaluate(parts, node);
    const bool is_scan = node->body->scan_input_count > 0;
    const sp_status status = is_scan ? sp__parts_scan(parts, node) : sp__parts_loop(parts, node);
    return status == SP_OK ? SP_OK : sp__graph_fail_node(status, node);
}

/* The plan's use ends before what comes after it is computed. */
static sp_status entry_run(sp_parts *parts, sp_plan_entry *entry)
{
    const sp_graph_plan *plan = entry->executable->plan;
    const uint32_t count = plan->stop_count;
    uint32_t *stops = sp_calloc(count, sizeof(*stops));
    sp_status status = stops != NULL ? run_plan(parts, entry->executable)
                                     : sp__fail(SP_OUT_OF_MEMORY, "no memory for a part of a run");
    for (uint32_t i = 0; stops != NULL && i < count; i++) stops[i] = plan->stops[i];
    sp__plan_cache_release(&parts->model->plans, entry);
    for (uint32_t i = 0; i < count && status == SP_OK; i++) {
        status = compute_stop(parts, &parts->graph->nodes[stops[i]]);
    }
    sp_free(stops);
    return status;
}

/* Each plan gets further than the one before it: what it stopped at is computed, or known. */
sp_status sp__parts_run_body(sp_parts *parts, const sp_graph_body *body, sp_plan_entry *first)
{
    sp_plan_entry *entry = first;
    sp_status status = SP_OK;
    if (entry == NULL) status = entry_next(parts, body, &entry);
    while (status == SP_OK && entry != NULL) {
        status = entry_run(parts, entry);
        if (status == SP_OK) status = sp__parts_check(parts);
        if (status == SP_OK) status = entry_next(parts, body, &entry);
    }
    return status;
}

/* ---- the whole run ---- */

static sp_status set_ports(sp_parts *parts, const sp_graph_plan *plan, const void *const *data)
{
    for (uint32_t i = 0; i < plan->input_count; i++) {
        const sp_plan_tensor *input = &plan->inputs[i];
        const sp_part_value value = {.dtype = input->dtype,
                                     .shape = input->shape,
                                     .bytes = input->bytes,
                                     .data = data[i],
                                     .is_known = input->is_known};
        sp__part_set(&parts->values, input->value, &value);
    }
    const bool has_overrides = plan->input_count > parts->graph->input_count;
    return has_overrides ? sp__part_values_find_stale(&parts->values) : SP_OK;
}

static sp_status copy_inputs(sp_parts *parts, const sp_graph_plan *plan)
{
    sp_graph_plan *made = &parts->made;
    SP_TRY(sp__bump_array(&made->bump, plan->input_count, sizeof(*made->inputs), &made->inputs));
    memcpy((void *)(uintptr_t)made->inputs, plan->inputs,
           plan->input_count * sizeof(*made->inputs));
    made->input_count = plan->input_count;
    return SP_OK;
}

static sp_status describe_outputs(sp_parts *parts)
{
    const sp_graph *graph = parts->graph;
    sp_plan_tensor *outputs;
    SP_TRY(sp__bump_array(&parts->made.bump, graph->output_count, sizeof(*outputs), &outputs));
    parts->made.outputs = outputs;
    parts->made.output_count = graph->output_count;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const sp_graph_port *port = &graph->outputs[i];
        sp_part_value value;
        SP_TRY(sp__parts_look(parts, port->value, &value));
        if (port->dtype != SP_DTYPE_NONE && port->dtype != value.dtype) {
            return sp__fail(SP_MISMATCH, "output '%s' is of type %s, the file declares %s",
                            port->name, sp_dtype_name(value.dtype), sp_dtype_name(port->dtype));
        }
        outputs[i] = (sp_plan_tensor){.name = port->name,
                                      .value = port->value,
                                      .dtype = value.dtype,
                                      .shape = value.shape,
                                      .bytes = value.bytes};
    }
    return SP_OK;
}

/* Until the first plan is run, its use is the caller's. */
static sp_status prepare(sp_parts *parts, const sp_graph_plan *plan, const void *const *data)
{
    SP_TRY(sp__part_values_init(&parts->values, parts->graph, parts->model->device,
                                parts->model->limits.bytes));
    sp__bump_init(&parts->made.bump, UINT64_MAX);
    SP_TRY(set_ports(parts, plan, data));
    return copy_inputs(parts, plan);
}

sp_status sp__parts_run(sp_rt_model *model, sp_plan_entry *entry, const void *const *data,
                        const sp_stream_ref *stream, sp_parts **out)
{
    sp_parts *parts = sp_calloc(1, sizeof(*parts));
    if (parts == NULL) {
        sp__plan_cache_release(&model->plans, entry);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run");
    }
    parts->model = model;
    parts->graph = parts->made.graph = model->graph;
    parts->stream = stream;
    sp_status status = prepare(parts, entry->executable->plan, data);
    if (status == SP_OK) status = sp__parts_run_body(parts, model->graph->main, entry);
    else sp__plan_cache_release(&model->plans, entry);
    if (status == SP_OK) status = describe_outputs(parts);
    if (status != SP_OK) {
        sp__parts_free(parts);
        return status;
    }
    sp_store_relaxed(&model->last_parts, parts->plan_count);
    *out = parts;
    return SP_OK;
}

void sp__parts_free(sp_parts *parts)
{
    sp__part_values_deinit(&parts->values);
    sp__bump_deinit(&parts->made.bump);
    sp_free(parts);
}

const sp_graph_plan *sp__parts_made(const sp_parts *parts)
{
    return &parts->made;
}

void sp__parts_copy(const sp_parts *parts, void *const *outputs)
{
    for (uint32_t i = 0; i < parts->made.output_count; i++) {
        sp_part_value room;
        const sp_part_value *value =
            sp__part_look(&parts->values, parts->graph->outputs[i].value, &room);
        /* An output may be an input as it was given, and the caller may want it there. */
        if (outputs[i] != NULL && value->bytes > 0) memmove(outputs[i], value->data, value->bytes);
    }
}
