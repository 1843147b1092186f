/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/partial_submitted.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/heap.h"
#include "batch/partial_threads.h"
#include "exec/future_outputs.h"
#include "exec/partial/partial_run.h"
#include "exec/partial/partial_waits.h"

/* ---- a run ---- */

static sp_status ports_compute(sp_rt_future *run, bool is_inline, sp_run_ports *ports)
{
    sp_rt_model *model = run->model;
    const sp_partial_place place = {.future = is_inline ? NULL : run};
    sp_plan_entry *entry;
    sp_partial_run *partial;
    if (is_inline) {
        SP_TRY(sp__run_ports_find_plan(&model->plans, ports, false, &entry));
    } else {
        SP_TRY(sp__run_ports_find_plan_until(&model->plans, ports, sp__partial_waits_flag(run),
                                             &entry));
    }
    SP_TRY(
        sp__partial_run_execute(model, entry, ports->data, place, &run->request.terms, &partial));
    const sp_status status = sp__partial_run_give_outputs(partial, run->results.tensors, ports);
    sp__partial_run_destroy(partial);
    return status;
}

/* As sp_model_run, with the tensors that the submit has copied. */
static sp_status run_compute(sp_rt_future *run, bool is_inline)
{
    const sp_graph *graph = run->model->graph;
    const sp_partial_job *job = &run->partial;
    sp_rt_device *device;
    sp_run_ports ports;
    SP_TRY(sp__run_terms_check(&run->request.terms)); /* it was queued */
    SP_TRY(sp__rt_device_find_working(sp__rt_device_handle(run->model->device), &device));
    SP_TRY(sp__run_ports_init(&ports, graph, job->input_count));
    sp_status status =
        sp__run_ports_take_inputs(graph, job->inputs, job->input_count, true, &ports);
    if (status == SP_OK) {
        status =
            sp__run_ports_name_outputs(graph, run->results.tensors, run->results.count, &ports);
    }
    if (status == SP_OK) status = ports_compute(run, is_inline, &ports);
    sp__run_ports_deinit(&ports);
    return status;
}

static void run_fail(sp_rt_future *run, sp_status status)
{
    const bool is_cancelled = status == SP_CANCELLED && sp__future_is_cancelled(run);
    run->fault = is_cancelled ? SP_FAULT_CANCELLED : sp__fault_create(status);
}

static void run_execute(sp_rt_future *run, bool is_inline)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = sp__partial_waits_begin(run);
    if (status == SP_OK) {
        status = run_compute(run, is_inline);
        sp__partial_waits_finish(run);
    }
    if (status != SP_OK) run_fail(run, status);
    sp__error_put_back(&scope);
}

static void run_end(sp_rt_future *run)
{
    sp_rt_model *model = run->model;
    sp__run_counters_end(&model->counters, sp__fault_status(run->fault));
    sp_free((void *)(uintptr_t)run->partial.inputs);
    sp__run_slots_retire(run->slots);
    sp__future_complete(run);
    sp__future_drop(run);
    sp__model_drop(model);
}

static const sp_partial_work run_work = {.execute = run_execute, .end = run_end};

/* ---- submit ---- */

static sp_status tensors_copy(sp_rt_future *run, const sp_graph *graph,
                              const sp_host_tensor *outputs, const sp_run_ports *ports)
{
    const uint32_t input_count = graph->input_count + ports->override_count;
    sp_host_tensor *inputs = sp_calloc(input_count, sizeof *inputs);
    if (inputs == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run");
    run->partial.inputs = inputs;
    run->partial.input_count = sp__run_ports_copy_inputs(graph, ports, inputs);
    const sp_status status = sp__future_outputs_init(&run->results, ports->tensor_count);
    if (status != SP_OK) {
        sp_free(inputs);
        return status;
    }
    sp__future_outputs_set(&run->results, outputs, true);
    for (uint32_t i = 0; i < ports->tensor_count; i++) {
        run->results.tensors[i].name = graph->outputs[ports->output_at[i]].name;
    }
    return SP_OK;
}

/* The request has no group, so no batch takes it. Not NULL: it has no thread, and is resumed as
 * that of a submitted run. */
static void never_taken(sp_run_request *request, sp_resume_list *ready)
{
    (void)request;
    (void)ready;
    SP_ASSERT(false);
}

/* The future with its run, which has not begun. */
static sp_status run_create(sp_rt_model *model, sp_run_slots *slots, const sp_host_tensor *outputs,
                            const sp_run_ports *ports, sp_rt_future **out)
{
    SP_TRY(sp__future_create(out));
    sp_rt_future *run = *out;
    const sp_status status = tensors_copy(run, model->graph, outputs, ports);
    if (status != SP_OK) {
        sp__future_discard(run);
        return status;
    }
    run->model = model;
    run->slots = slots;
    run->request = (sp_run_request){.finish = never_taken};
    run->partial.work = &run_work;
    run->end_queued = sp__partial_threads_await;
    return SP_OK;
}

/* The token may be cancelled, and end the run, at any time from the first step on. Errors: those of
 * the push, and the run is the caller's. */
static sp_status run_push(sp_rt_future *run)
{
    if (run->token != NULL && !sp__future_follow_token(run)) {
        run->fault = SP_FAULT_CANCELLED;
        run_end(run);
        return SP_OK;
    }
    sp__object_hold(&run->object); /* the run may end meanwhile */
    const sp_status status = sp__partial_threads_push(run);
    /* A cancel that came before the push has not found the run in the queue. */
    if (status == SP_OK && sp__future_is_cancelled(run)) sp__partial_threads_await(run);
    sp__future_drop(run);
    return status;
}

/* The caller's future of a run that has not been accepted is done, and released. */
static void run_refuse(sp_rt_future *run, sp_status status, sp_future *out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    run->fault = sp__fault_create(status);
    run_end(run);
    (void)sp__future_release(*out);
    sp__error_put_back(&scope);
    *out = (sp_future){0};
}

static sp_status run_accept(sp_rt_future *run, const sp_run_terms *terms, sp_future *out)
{
    sp_rt_model *model = run->model;
    sp__object_hold(&model->object);
    run->request.terms = *terms;
    run->request.terms.cancel = &run->is_cancelled;
    run->request.terms.token = NULL; /* the future follows it */
    if (terms->token != NULL) {
        sp__object_hold(&terms->token->object);
        run->token = terms->token;
    }
    (void)sp__run_counters_start(&model->counters, terms->lane);
    *out = sp__future_publish(run);
    const sp_status status = run_push(run);
    if (status != SP_OK) run_refuse(run, status, out);
    return status;
}

sp_status sp__partial_submit(sp_rt_model *model, const sp_run_terms *terms,
                             const sp_host_tensor *outputs, const sp_run_ports *ports,
                             sp_future *out)
{
    sp_rt_future *run;
    SP_TRY(sp__device_check(model->device->dev));
    sp_run_slots *slots = sp__device_run_slots(model->device);
    if (slots == NULL) return SP_OUT_OF_MEMORY;
    SP_TRY(sp__run_slots_admit(slots));
    const sp_status status = run_create(model, slots, outputs, ports, &run);
    if (status != SP_OK) {
        sp__run_slots_retire(slots);
        return status;
    }
    return run_accept(run, terms, out);
}
