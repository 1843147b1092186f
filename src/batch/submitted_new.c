/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs, from the call to their first queue. */
#include "batch/submitted.h"

#include "base/error.h"
#include "base/heap.h"
#include "batch/batch_queue.h"
#include "batch/submitted_life.h"
#include "exec/future_outputs.h"

/* ---- creation ---- */

static sp_status ports_copy(sp_rt_future *run, const sp_graph_plan *plan, const sp_run_ports *ports)
{
    const uint32_t count = plan->input_count + plan->output_count;
    void **block = run->inline_ports;
    if (count > SP_FUTURE_PORTS) block = sp_calloc(count, sizeof *block);
    if (block == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a run");
    run->data = (const void **)block;
    run->outputs = block + plan->input_count;
    for (uint32_t i = 0; i < plan->input_count; i++) run->data[i] = ports->data[i];
    for (uint32_t i = 0; i < plan->output_count; i++) run->outputs[i] = ports->outputs[i];
    return SP_OK;
}

static void token_take(sp_rt_future *run, sp_rt_cancel_token *token)
{
    if (SP_LIKELY(token == NULL)) return;
    sp__object_hold(&token->object);
    run->token = token;
}

static sp_status run_create(const sp_executable *executable, sp_run_slots *slots,
                            const sp_run_ports *ports, sp_rt_future **out)
{
    SP_TRY(sp__future_create(out));
    (*out)->slots = slots;
    sp__submitted_prepare(*out);
    sp_status status = sp__future_outputs_init(&(*out)->results, ports->tensor_count);
    if (status == SP_OK) status = ports_copy(*out, executable->plan, ports);
    if (status != SP_OK) sp__future_discard(*out);
    return status;
}

sp_status sp__submitted_create(sp_rt_device *device, const sp_executable *executable,
                               const sp_batch_line *line, const sp_run_ports *ports,
                               sp_rt_future **out)
{
    SP_TRY(sp__device_check(device->dev));
    SP_TRY(sp__executable_open_queues(executable));
    SP_TRY(sp__run_slots_admit(line->slots));
    const sp_status status = run_create(executable, line->slots, ports, out);
    if (status != SP_OK) sp__run_slots_retire(line->slots);
    return status;
}

sp_status sp__submitted_create_in(const sp_rt_batch_queue *queue, sp_plan_entry *plan_entry,
                                  sp_run_slots *slots, const sp_run_ports *ports,
                                  sp_rt_future **out)
{
    SP_TRY(sp__device_check(queue->model->device->dev));
    SP_TRY(sp__executable_open_queues(plan_entry->executable));
    return run_create(plan_entry->executable, slots, ports, out);
}

/* ---- acceptance ---- */

/* The token may be cancelled, and end the run, at any time from the first step on. Errors: SP_BUSY,
 * and the run is the caller's. */
static SP_NOINLINE sp_status submit_with_token(sp_rt_future *run)
{
    sp_resume_list ready = {0};
    sp_status status = SP_OK;
    if (!sp__future_follow_token(run)) {
        run->fault = SP_FAULT_CANCELLED;
        sp__submitted_end(run, &ready);
    } else {
        sp__object_hold(&run->object);
        status = sp__run_slots_submit(run->slots, &run->request);
        if (status == SP_OK) sp__submitted_check_queued(run, &ready);
        sp__future_drop(run);
    }
    sp__resume_list_run(&ready);
    return status;
}

/* The caller's future of a run that has not been accepted is done, and released. */
static sp_status run_refuse(sp_rt_future *run, sp_status status, sp_future *out)
{
    sp_resume_list ready = {0};
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    run->fault = sp__fault_create(status);
    sp__submitted_end(run, &ready);
    sp__resume_list_run(&ready);
    (void)sp__future_release(*out);
    sp__error_put_back(&scope);
    *out = (sp_future){0};
    return status;
}

static sp_future run_publish(sp_rt_future *run, sp_rt_model *model, sp_plan_entry *plan_entry,
                             const sp_run_terms *terms)
{
    run->model = model;
    run->plan_entry = plan_entry;
    run->request.terms = *terms;
    run->request.terms.is_submitted = run->request.terms.is_counted = true;
    run->request.terms.cancel = &run->is_cancelled;
    run->request.terms.is_timed = sp__run_counters_start(&model->counters, terms->lane);
    run->request.inputs = run->data;
    run->request.outputs = run->outputs;
    token_take(run, terms->token);
    return sp__future_publish(run);
}

/* As submit_with_token: a cancelled run ends when it has been queued. */
static SP_NOINLINE void add_with_token(sp_rt_future *run, sp_resume_list *ready)
{
    sp__object_hold(&run->object);
    if (!sp__future_follow_token(run)) sp__future_cancel(run);
    sp__batch_queue_add(run->place.queue, run, ready);
    sp__submitted_check_queued(run, ready);
    sp__future_drop(run);
}

sp_future sp__submitted_accept_in(sp_rt_future *run, sp_rt_batch_queue *queue,
                                  sp_plan_entry *plan_entry, const sp_run_terms *terms)
{
    sp_resume_list ready = {0};
    sp__object_hold(&queue->object);
    run->place.queue = queue;
    const sp_future handle = run_publish(run, queue->model, plan_entry, terms);
    if (SP_UNLIKELY(run->token != NULL)) add_with_token(run, &ready);
    else sp__batch_queue_add(queue, run, &ready);
    sp__resume_list_run(&ready);
    return handle;
}

sp_status sp__submitted_accept(sp_rt_future *run, sp_rt_model *model, sp_plan_entry *plan_entry,
                               const sp_batch_line *line, const sp_run_terms *terms, sp_future *out)
{
    sp_run_terms in_line = *terms;
    in_line.flow = line->flow;
    sp__object_hold(&model->object);
    run->request.group = line->group;
    *out = run_publish(run, model, plan_entry, &in_line);
    const sp_status status = SP_UNLIKELY(run->token != NULL)
                                 ? submit_with_token(run)
                                 : sp__run_slots_submit(run->slots, &run->request);
    return status == SP_OK ? SP_OK : run_refuse(run, status, out);
}
