/* SPDX-License-Identifier: Apache-2.0 */
/* Runs partial plans one after the other. No plan is in use while the next is acquired, so a run
 * that waits for an entry of the cache holds its stream and nothing else (docs/decisions/0020). */
#include "exec/partial/partial_run.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "exec/partial/partial_run_build.h"
#include "exec/partial/partial_waits.h"
#include "plan/subgraph_needs.h"

sp_status sp__partial_run_check(const sp_partial_run *run)
{
    sp_rt_device *device;
    const sp_atomic_u32 *cancel = run->terms.cancel;
    if (SP_UNLIKELY(cancel != NULL) && sp_load_relaxed(cancel) != 0) return sp__fail_cancelled();
    if (run->place.future != NULL) SP_TRY(sp__partial_waits_check(run->place.future));
    return sp__rt_device_find_working(sp__rt_device_handle(run->model->device), &device);
}

sp_status sp__partial_run_value(const sp_partial_run *run, uint32_t index, sp_run_value *out)
{
    sp_run_value room;
    const sp_run_value *value = sp__run_values_find(&run->values, index, &room);
    if (value == NULL) {
        return sp__fail(SP_INTERNAL, "value '%s' is not available", run->graph->values[index].name);
    }
    *out = *value;
    return SP_OK;
}

/* ---- the request for the next plan ---- */

typedef struct subgraph_request {
    uint32_t *given, *wanted;
    sp_plan_input *inputs;
    uint32_t given_count, wanted_count;
} subgraph_request;

static void request_deinit(const subgraph_request *request)
{
    sp_free(request->given);
    sp_free(request->wanted);
    sp_free(request->inputs);
}

static sp_status request_init(subgraph_request *request, const sp_graph_body *body)
{
    const size_t most = (size_t)body->capture_count + (body->end_value - body->first_value);
    request->given = sp_calloc(most, sizeof(*request->given));
    request->wanted = sp_calloc(body->output_count, sizeof(*request->wanted));
    if (request->given != NULL && request->wanted != NULL) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for a partial plan");
}

/* The outputs that are not available yet. */
static void find_wanted(const sp_partial_run *run, const sp_graph_body *body,
                        subgraph_request *request)
{
    for (uint32_t i = 0; i < body->output_count; i++) {
        sp_run_value room;
        const uint32_t value = body->outputs[i].value;
        if (sp__run_values_find(&run->values, value, &room) != NULL) continue;
        request->wanted[request->wanted_count++] = value;
    }
}

/* The available values that the remaining nodes read. */
static sp_status find_given(const sp_partial_run *run, const sp_graph_body *body,
                            subgraph_request *request)
{
    const sp_run_values *values = &run->values;
    sp_subgraph_needs needs;
    SP_TRY(sp__subgraph_needs_init(&needs, body));
    for (uint32_t v = body->first_value; v < body->end_value; v++) {
        if (!sp__run_values_has(values, v)) continue;
        const sp_run_value *value = &values->list[v];
        sp__subgraph_needs_know(&needs, v, value->dtype, &value->shape,
                                value->is_known ? value->data : NULL);
    }
    for (uint32_t i = 0; i < request->wanted_count; i++) {
        sp__subgraph_needs_want(&needs, request->wanted[i]);
    }
    sp__subgraph_needs_find(&needs, run->graph);
    for (uint32_t i = 0; i < body->capture_count; i++) {
        if (!sp__run_values_has(values, body->captures[i])) continue;
        request->given[request->given_count++] = body->captures[i];
    }
    for (uint32_t v = body->first_value; v < body->end_value; v++) {
        const uint32_t own = v - body->first_value;
        if (needs.wanted[own] && needs.is_stop[own]) request->given[request->given_count++] = v;
    }
    sp__subgraph_needs_deinit(&needs);
    return SP_OK;
}

static sp_status describe_given(const sp_partial_run *run, subgraph_request *request)
{
    request->inputs = sp_calloc(request->given_count, sizeof(*request->inputs));
    if (request->inputs == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a partial plan");
    for (uint32_t i = 0; i < request->given_count; i++) {
        const sp_run_value *value = &run->values.list[request->given[i]];
        request->inputs[i] = (sp_plan_input){.dtype = value->dtype,
                                             .shape = value->shape,
                                             .data = value->is_known ? value->data : NULL};
    }
    return SP_OK;
}

/* The plan of the remaining nodes; NULL if there are none. */
static sp_status request_acquire_next(const sp_partial_run *run, const sp_graph_body *body,
                                      subgraph_request *request, sp_plan_entry **out)
{
    *out = NULL;
    SP_TRY(request_init(request, body));
    find_wanted(run, body, request);
    if (request->wanted_count == 0) return SP_OK;
    SP_TRY(find_given(run, body, request));
    SP_TRY(describe_given(run, request));
    const sp_plan_subgraph subgraph = {.body = body,
                                       .given = request->given,
                                       .wanted = request->wanted,
                                       .given_count = request->given_count,
                                       .wanted_count = request->wanted_count};
    const sp_plan_request plan = {
        .subgraph = &subgraph, .inputs = request->inputs, .input_count = request->given_count};
    const sp_partial_place *place = &run->place;
    if (place->future != NULL) {
        return sp__plan_cache_acquire_until(&run->model->plans, &plan,
                                            sp__partial_waits_flag(place->future), out);
    }
    return sp__plan_cache_acquire(&run->model->plans, &plan, place->stream != NULL, out);
}

static sp_status entry_acquire_next(const sp_partial_run *run, const sp_graph_body *body,
                                    sp_plan_entry **out)
{
    subgraph_request request = {0};
    const sp_status status = request_acquire_next(run, body, &request, out);
    request_deinit(&request);
    return status;
}

/* ---- one plan ---- */

/* Addresses and values of one plan, in one block. */
typedef struct plan_ports {
    sp_run_value *made; /* by output */
    const void **inputs;
    void **outputs;
} plan_ports;

static sp_status plan_ports_alloc(plan_ports *ports, const sp_graph_plan *plan)
{
    const size_t inputs = plan->input_count;
    const size_t outputs = plan->output_count;
    ports->made = sp_calloc(1, outputs * (sizeof *ports->made + sizeof *ports->outputs) +
                                   inputs * sizeof *ports->inputs);
    if (ports->made == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a partial plan");
    ports->inputs = (void *)(ports->made + outputs);
    ports->outputs = (void *)(ports->inputs + inputs);
    return SP_OK;
}

static sp_status plan_compute(sp_partial_run *run, const sp_plan_entry *entry,
                              const plan_ports *ports)
{
    const sp_graph_plan *plan = entry->executable->plan;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        ports->inputs[i] = run->values.list[plan->inputs[i].value].data;
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        const sp_plan_tensor *output = &plan->outputs[i];
        sp_run_value *made = &ports->made[i];
        SP_TRY(sp__run_value_create(&run->values, output->dtype, &output->shape, made,
                                    &ports->outputs[i]));
        made->is_known = output->is_known;
    }
    if (plan->step_count == 0) return SP_OK;
    SP_TRY(sp__run_values_check_arena(&run->values, plan->arena_bytes));
    run->plan_count++;
    if (run->place.future != NULL) {
        return sp__partial_waits_compute(run->place.future, entry, ports->inputs, ports->outputs);
    }
    SP_TRY(sp__model_compute(run->model, entry->executable, ports->inputs, ports->outputs,
                             run->place.stream, &run->terms));
    sp__partial_terms_begin(&run->terms);
    return SP_OK;
}

static sp_status plan_run(sp_partial_run *run, const sp_plan_entry *entry)
{
    const sp_graph_plan *plan = entry->executable->plan;
    plan_ports ports = {0};
    SP_TRY(plan_ports_alloc(&ports, plan));
    const sp_status status = plan_compute(run, entry, &ports);
    for (uint32_t i = 0; i < plan->output_count; i++) {
        sp_run_value *made = &ports.made[i];
        if (status == SP_OK) sp__run_values_set(&run->values, plan->outputs[i].value, made);
        else sp__run_value_release(&run->values, made);
    }
    sp_free(ports.made);
    if (status != SP_OK) return status;
    for (uint32_t i = 0; i < plan->asked_count; i++) {
        run->values.list[plan->asked[i]].is_known = true;
    }
    return SP_OK;
}

static sp_status stop_compute(sp_partial_run *run, const sp_graph_node *node)
{
    if (node->body == NULL) return sp__partial_evaluate(run, node);
    const bool is_scan = node->body->scan_input_count > 0;
    const sp_status status = is_scan ? sp__partial_scan(run, node) : sp__partial_loop(run, node);
    return status == SP_OK ? SP_OK : sp__graph_fail_node(status, node);
}

/* Releases the plan before its stops are computed. */
static sp_status entry_run(sp_partial_run *run, sp_plan_entry *entry)
{
    const sp_graph_plan *plan = entry->executable->plan;
    const uint32_t count = plan->stop_count;
    uint32_t *stops = sp_calloc(count, sizeof(*stops));
    sp_status status = stops != NULL ? plan_run(run, entry)
                                     : sp__fail(SP_OUT_OF_MEMORY, "no memory for a partial plan");
    for (uint32_t i = 0; stops != NULL && i < count; i++) stops[i] = plan->stops[i];
    sp__plan_cache_release(&run->model->plans, entry);
    for (uint32_t i = 0; i < count && status == SP_OK; i++) {
        status = stop_compute(run, &run->graph->nodes[stops[i]]);
    }
    sp_free(stops);
    return status;
}

/* Each plan covers more nodes than the last: the stops of the last one are computed, or their
 * inputs are known. */
sp_status sp__partial_run_body(sp_partial_run *run, const sp_graph_body *body, sp_plan_entry *first)
{
    sp_plan_entry *entry = first;
    sp_status status = SP_OK;
    if (entry == NULL) status = entry_acquire_next(run, body, &entry);
    while (status == SP_OK && entry != NULL) {
        status = entry_run(run, entry);
        if (status == SP_OK) status = sp__partial_run_check(run);
        if (status == SP_OK) status = entry_acquire_next(run, body, &entry);
    }
    return status;
}

/* ---- the whole run ---- */

static sp_status run_set_inputs(sp_partial_run *run, const sp_graph_plan *plan,
                                const void *const *data)
{
    for (uint32_t i = 0; i < plan->input_count; i++) {
        const sp_plan_tensor *input = &plan->inputs[i];
        const sp_run_value value = {.dtype = input->dtype,
                                    .shape = input->shape,
                                    .bytes = input->bytes,
                                    .data = data[i],
                                    .is_known = input->is_known};
        sp__run_values_set(&run->values, input->value, &value);
    }
    const bool has_overrides = plan->input_count > run->graph->input_count;
    return has_overrides ? sp__run_values_find_stale(&run->values) : SP_OK;
}

static sp_status made_copy_inputs(sp_partial_run *run, const sp_graph_plan *plan)
{
    sp_graph_plan *made = &run->made;
    SP_TRY(sp__bump_array(&made->bump, plan->input_count, sizeof(*made->inputs), &made->inputs));
    if (plan->input_count > 0) {
        memcpy((void *)(uintptr_t)made->inputs, plan->inputs,
               plan->input_count * sizeof(*made->inputs));
    }
    made->input_count = plan->input_count;
    return SP_OK;
}

static sp_status made_describe_outputs(sp_partial_run *run)
{
    const sp_graph *graph = run->graph;
    sp_plan_tensor *outputs;
    SP_TRY(sp__bump_array(&run->made.bump, graph->output_count, sizeof(*outputs), &outputs));
    run->made.outputs = outputs;
    run->made.output_count = graph->output_count;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const sp_graph_port *port = &graph->outputs[i];
        sp_run_value value;
        SP_TRY(sp__partial_run_value(run, port->value, &value));
        if (port->dtype != SP_DTYPE_NONE && port->dtype != value.dtype) {
            return sp__fail(SP_MISMATCH, "output '%s' is of type %s; the file declares %s",
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

/* The caller releases the first plan on an error. */
static sp_status run_prepare(sp_partial_run *run, const sp_graph_plan *plan,
                             const void *const *data)
{
    SP_TRY(sp__run_values_init(&run->values, run->graph, run->model->device, &run->model->limits));
    sp__bump_init(&run->made.bump, UINT64_MAX);
    SP_TRY(run_set_inputs(run, plan, data));
    return made_copy_inputs(run, plan);
}

sp_status sp__partial_run_execute(sp_rt_model *model, sp_plan_entry *entry, const void *const *data,
                                  sp_partial_place place, const sp_run_terms *terms,
                                  sp_partial_run **out)
{
    sp_partial_run *run = sp_calloc(1, sizeof(*run));
    if (run == NULL) {
        sp__plan_cache_release(&model->plans, entry);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run");
    }
    run->model = model;
    run->graph = run->made.graph = model->graph;
    run->place = place;
    run->terms = *terms;
    sp_status status = run_prepare(run, entry->executable->plan, data);
    if (status == SP_OK) status = sp__partial_run_body(run, model->graph->main, entry);
    else sp__plan_cache_release(&model->plans, entry);
    if (status == SP_OK) status = made_describe_outputs(run);
    if (status != SP_OK) {
        sp__partial_run_destroy(run);
        return status;
    }
    sp_store_relaxed(&model->last_partial_plans, run->plan_count);
    *out = run;
    return SP_OK;
}

void sp__partial_run_destroy(sp_partial_run *run)
{
    sp__run_values_deinit(&run->values);
    sp__bump_deinit(&run->made.bump);
    sp_free(run);
}

const sp_graph_plan *sp__partial_run_made(const sp_partial_run *run)
{
    return &run->made;
}

static void outputs_copy(const sp_partial_run *run, void *const *outputs)
{
    for (uint32_t i = 0; i < run->made.output_count; i++) {
        sp_run_value room;
        const sp_run_value *value =
            sp__run_values_find(&run->values, run->graph->outputs[i].value, &room);
        if (outputs[i] != NULL && value->bytes > 0) memcpy(outputs[i], value->data, value->bytes);
    }
}

sp_status sp__partial_run_give_outputs(const sp_partial_run *run, sp_host_tensor *outputs,
                                       sp_run_ports *ports)
{
    SP_TRY(sp__run_ports_take_outputs(&run->made, outputs, ports));
    outputs_copy(run, ports->outputs);
    sp__run_ports_give_outputs(&run->made, outputs, ports);
    return SP_OK;
}
