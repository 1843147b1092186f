/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs: each goes from wait queue to wait queue without a thread of its own. The thread
 * that completes a run, which drains or polls the device or helps, releases the run's resources and
 * resumes the waiters that get them. So nothing here waits, and nothing depends on host functions
 * or callbacks, which may wait for runs. */
#include "batch/submitted.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/heap.h"
#include "batch/batch_builder.h"
#include "batch/batch_queue.h"
#include "batch/batch_run.h"
#include "batch/submitted_life.h"
#include "device/wait.h"
#include "exec/future_model.h"
#include "exec/reports.h"
#include "runtime/submit_queue.h"
#include "runtime/submit.h"

/* ---- end of a run ---- */

/* Drops the run's holds. */
static void holds_drop(sp_rt_future *run)
{
    if (run->place.queue == NULL) {
        sp__future_drop_with_model(run);
        return;
    }
    sp__batch_queue_drop(run->place.queue);
    sp__future_drop(run);
}

static void ports_free(sp_rt_future *run)
{
    if ((void *)run->data != (void *)run->inline_ports) sp_free((void *)run->data);
}

static void run_count(const sp_rt_future *run)
{
    sp_run_counters *counters = &run->model->counters;
    if (SP_UNLIKELY(run->begin_ns != 0)) sp__run_counters_time(counters, run->begin_ns);
    sp__run_counters_end(counters, sp__fault_status(run->fault));
}

/* What the run's kernels have left: reports of a failure, or outputs to be copied. */
static void run_take(sp_rt_future *run)
{
    const sp_status status = sp__reports_take(run->context);
    if (SP_UNLIKELY(status != SP_OK)) run->fault = sp__fault_create(status);
    else sp__exec_context_end(run->context, run->outputs);
}

void sp__submitted_end(sp_rt_future *run, sp_resume_list *ready)
{
    sp_rt_model *model = run->model;
    if (run->context != NULL) {
        /* A run that was on no queue has computed in the caller's memory. */
        if (run->fault == SP_NO_FAULT && run->has_queue) run_take(run);
        sp__resume_list_add(ready, sp__exec_context_release(run->context));
    }
    if (run->is_counted) sp__run_counters_leave(&model->counters, run->request.terms.lane);
    if (run->has_queue) sp__submit_queue_release(model->device, run->queue);
    run_count(run);
    ports_free(run);
    if (run->place.queue == NULL) sp__run_slots_retire(run->slots);
    if (run->has_slot)
        sp__resume_list_add(ready, sp__run_slots_release_submitted(run->slots, &run->request));
    if (run->place.queue != NULL) sp__batch_queue_end(run, ready);
    sp__plan_cache_release(&model->plans, run->plan_entry); /* may own the slots */
    sp__future_complete(run);
    holds_drop(run);
}

/* ---- start ---- */

static void run_passed(sp_waiter *waiter);

/* Submits all lists, on a submit queue. True if the run has ended. */
static bool run_launch(sp_rt_future *run)
{
    sp_rt_model *model = run->model;
    const sp_executable *executable = run->plan_entry->executable;
    sp__run_counters_enter(&model->counters, run->request.terms.lane, run->request.terms.is_timed);
    run->is_counted = true;
    if (SP_UNLIKELY(run->request.terms.is_timed)) run->begin_ns = sp_clock_now();
    run->queue = sp__submit_queue_acquire(model->device);
    run->has_queue = true;
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    sp__executable_queues(executable, run->queue, queues);
    const sp_stream_ref stream = {.queue = queues[SP_SEGMENT_MODEL]};
    run->context->cancel = &run->is_cancelled;
    sp__exec_context_begin(run->context, run->data, run->outputs);
    sp_point point = {0};
    const sp_status status = sp__exec_context_submit(run->context, &stream, queues, &point);
    if (status != SP_OK) run->fault = sp__fault_create(status);
    if (point.timeline == NULL) return true;
    run->waiter = (sp_waiter){.value = point.value, .fire = run_passed};
    sp__future_start(run, point);
    return !sp__timeline_register(point.timeline, &run->waiter);
}

static bool run_fail(sp_rt_future *run, sp_status status)
{
    run->fault = sp__fault_create(status);
    return true;
}

static void queue_leave(sp_rt_future *run, sp_resume_list *ready);

/* A cancel, or a wait in a callback, that came before the run was queued has not found it there.
 * The caller has a hold, since the run may have ended meanwhile. */
void sp__submitted_check_queued(sp_rt_future *run, sp_resume_list *ready)
{
    if (SP_PLANTED(cancel_missed)) return;
    if (sp_fetch_add_acq_rel(&run->request.is_awaited, 0) != 0) queue_leave(run, ready);
}

static SP_NOINLINE sp_status context_acquire_or_queue(sp_rt_future *run, sp_exec_context **out,
                                                      sp_resume_list *ready)
{
    sp__object_hold(&run->object);
    const sp_status status = sp__exec_context_acquire_or_queue(run->plan_entry->executable,
                                                               &run->request.entry, out, ready);
    if (status == SP_OK && *out == NULL) sp__submitted_check_queued(run, ready);
    sp__future_drop(run);
    return status;
}

/* *out is NULL if the run is queued now. Not for a private plan: no other run would resume it, and
 * the context that was created with the plan is idle. */
static sp_status context_acquire(sp_rt_future *run, sp_exec_context **out, sp_resume_list *ready)
{
    sp_executable *executable = run->plan_entry->executable;
    if (run->plan_entry->is_private)
        return sp__exec_context_acquire(executable, SP_NO_HOME, false, out);
    *out = sp__exec_context_acquire_idle(executable);
    return *out != NULL ? SP_OK : context_acquire_or_queue(run, out, ready);
}

/* With a slot, or a context too. True if the run has ended; else it belongs to another party. */
static bool run_start(sp_rt_future *run, sp_resume_list *ready)
{
    sp_status status = SP_OK;
    if (sp__future_is_cancelled(run)) {
        run->fault = SP_FAULT_CANCELLED;
        return true;
    }
    if (run->context == NULL) {
        sp_exec_context *context;
        status = context_acquire(run, &context, ready);
        if (status != SP_OK) return run_fail(run, status);
        if (context == NULL) return false;
        context->home = SP_NO_HOME;
        run->context = context;
    }
    if (run->context->staging == NULL) {
        status = sp__exec_context_cover_unrequested(run->context, true, run->outputs);
    }
    return status == SP_OK ? run_launch(run) : run_fail(run, status);
}

/* ---- batches ---- */

static void outcome_note(sp_rt_future *run)
{
    if (run->fault == SP_NO_FAULT) run->fault = sp__point_fault(run->point);
}

static sp_rt_future *run_of(sp_run_request *request)
{
    return SP_CONTAINER_OF(request, sp_rt_future, request);
}

/* Another run's batch, or its own, has computed the run. */
static void run_finish(sp_run_request *request, sp_resume_list *ready)
{
    if (!run_of(request)->has_slot) {
        sp__run_counters_wait(&run_of(request)->model->counters, request);
    }
    sp__submitted_end(run_of(request), ready);
}

void sp__submitted_start_in_batch(const sp_batch *batch, sp_point point)
{
    for (uint32_t row = 0; row < batch->bucket->rows; row++) {
        sp_run_request *request = batch->requests[row];
        if (request->finish == run_finish) sp__future_start_in_batch(run_of(request), point);
    }
}

static void run_alone(sp_rt_future *run, sp_resume_list *ready)
{
    if (!run_start(run, ready)) return;
    if (sp_load_relaxed(&run->is_started) != 0) outcome_note(run);
    sp__submitted_end(run, ready);
}

/* Nothing of the batch is on a queue any more. */
static void batch_end(sp_batch *batch, sp_resume_list *ready)
{
    sp_rt_future *lead = run_of(batch->requests[0]);
    sp__submit_queue_release(lead->model->device, batch->queue);
    sp_rt_batch_queue *queue = lead->place.queue;
    const bool is_done = batch->status == SP_OK && sp__point_fault(batch->point) == SP_NO_FAULT;
    if (is_done && sp__reports_take(batch->context) == SP_OK) {
        sp__batch_scatter(batch);
        if (queue != NULL) sp__batch_queue_count(queue, batch->bucket->rows);
        sp__batch_finish(batch, NULL, ready);
        return;
    }
    if (queue != NULL) sp__batch_queue_break(batch, ready);
    else sp__batch_break(batch, lead->slots, ready);
    run_alone(lead, ready);
}

static void batch_passed(sp_waiter *waiter)
{
    sp_resume_list ready = {0};
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    batch_end(SP_CONTAINER_OF(waiter, sp_batch, waiter), &ready);
    sp__resume_list_run(&ready);
    sp__error_put_back(&scope);
}

/* NULL: the run is to run alone. */
static sp_batch *batch_form(sp_rt_future *run, sp_resume_list *ready)
{
    if (run->place.queue != NULL) return sp__batch_queue_form(run, ready);
    sp_batch_plans *plans = sp__batch_plans_of(run->plan_entry);
    if (plans == NULL || run->request.group == NULL) return NULL;
    return sp__batch_form(plans, run->slots, run->request.group, &run->request);
}

/* With a slot: true if the run is in a batch, which has ended or belongs to its last point. */
static bool batch_launch(sp_rt_future *run, sp_resume_list *ready)
{
    sp_batch *batch = batch_form(run, ready);
    if (sp__batch_plans_of(run->plan_entry) != NULL) {
        sp__batch_builder_refill(run->model, run->plan_entry);
    }
    if (batch == NULL) return false;
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    batch->queue = sp__submit_queue_acquire(run->model->device);
    sp__executable_queues(batch->bucket->executable, batch->queue, queues);
    const sp_stream_ref stream = {.queue = queues[SP_SEGMENT_MODEL]};
    sp__batch_count(run->model, batch);
    sp__batch_gather(batch);
    batch->status = sp__exec_context_submit(batch->context, &stream, queues, &batch->point);
    const sp_point point = batch->point;
    if (point.timeline != NULL) sp__submitted_start_in_batch(batch, point);
    batch->waiter = (sp_waiter){.value = point.value, .fire = batch_passed};
    if (point.timeline == NULL || !sp__timeline_register(point.timeline, &batch->waiter)) {
        batch_end(batch, ready);
    }
    return true;
}

/* Its turn comes too late. */
static void run_lapse(sp_rt_future *run, sp_resume_list *ready)
{
    run->fault = sp__future_is_cancelled(run)
                     ? SP_FAULT_CANCELLED
                     : sp__fault_create(sp__run_terms_check(&run->request.terms));
    sp__submitted_end(run, ready);
}

/* The run was granted the slot or, later, the context. */
static void run_resume(sp_wait_entry *entry, sp_resume_list *ready)
{
    sp_rt_future *run = SP_CONTAINER_OF(entry, sp_rt_future, request.entry);
    const bool is_new = !run->has_slot;
    if (is_new) sp__run_counters_wait(&run->model->counters, &run->request);
    if (!is_new) run->context = entry->granted;
    run->has_slot = true;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (is_new && sp__run_terms_have_lapsed(&run->request.terms)) run_lapse(run, ready);
    else if (!is_new || !batch_launch(run, ready)) run_alone(run, ready);
    sp__error_put_back(&scope);
}

/* The run's last point has passed. */
static void run_passed(sp_waiter *waiter)
{
    sp_rt_future *run = SP_CONTAINER_OF(waiter, sp_rt_future, waiter);
    sp_resume_list ready = {0};
    outcome_note(run);
    sp__submitted_end(run, &ready);
    sp__resume_list_run(&ready);
}

/* ---- out of a queue ---- */

static sp_status run_inline(sp_rt_future *run)
{
    SP_TRY(sp__exec_context_acquire(run->plan_entry->executable, SP_NO_HOME, false, &run->context));
    SP_TRY(sp__exec_context_cover_unrequested(run->context, false, run->outputs));
    sp__run_counters_enter(&run->model->counters, run->request.terms.lane, false);
    run->is_counted = true;
    run->context->cancel = &run->is_cancelled;
    return sp__exec_context_run_inline(run->context, run->data, run->outputs);
}

/* Queued for a context. */
static sp_status refuse_context(void)
{
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more run at a time, and a host function "
                                      "or callback waits for this one");
}

/* The run is the caller's, and in no queue. */
static void run_end_now(sp_rt_future *run, sp_resume_list *ready)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (sp__future_is_cancelled(run)) {
        run->fault = SP_FAULT_CANCELLED;
    } else {
        const sp_status status = run->has_slot ? refuse_context() : run_inline(run);
        if (status != SP_OK) run->fault = sp__fault_create(status);
    }
    sp__submitted_end(run, ready);
    sp__error_put_back(&scope);
}

/* Given back without a slot. */
static void run_now(sp_run_request *request, sp_resume_list *ready)
{
    run_end_now(run_of(request), ready);
}

/* If the run is queued, it is removed and ends. */
static void queue_leave(sp_rt_future *run, sp_resume_list *ready)
{
    if (!sp__run_request_claim(&run->request)) return;
    if (run->place.is_in_group) {
        sp__batch_queue_remove(run, ready);
    } else if (run->has_slot) {
        sp__exec_context_dequeue(run->plan_entry->executable, &run->request.entry);
    } else {
        sp__run_slots_dequeue(run->slots, &run->request);
    }
    run_end_now(run, ready);
}

static void run_end_queued(sp_rt_future *run)
{
    sp_resume_list ready = {0};
    queue_leave(run, &ready);
    sp__resume_list_run(&ready);
}

void sp__submitted_prepare(sp_rt_future *run)
{
    run->request = (sp_run_request){
        .entry = {.resume = run_resume}, .finish = run_finish, .run_inline = run_now};
    run->end_queued = run_end_queued;
}
