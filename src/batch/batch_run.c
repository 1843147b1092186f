/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "batch/batch.h"
#include "batch/batch_builder.h"
#include "batch/submitted.h"
#include "device/thread_record.h"
#include "exec/run_estimate.h"
#include "runtime/submit_queue.h"

/* The call that a run is for: the arguments of sp__batch_run. */
typedef struct batch_caller {
    sp_rt_model *model;
    sp_plan_entry *entry;
    const sp_stream_ref *stream;
    sp_batch_line line;
    sp_run_request request;
} batch_caller;

/* Runs that may be merged seldom wait for a slot where many run at the same time. */
#define CROWD 4u

/* Runs of a model with a limit wait for each other beside free slots. */
static bool is_crowded(const sp_run_slots *slots, bool has_thread)
{
    const uint32_t most = has_thread ? slots->count : slots->width;
    return sp__run_slots_waiting(slots) > 0 ||
           sp__run_slots_use(slots, most < CROWD ? most : CROWD);
}

/* A plan for which runs often wait for each other gets larger ones. */
static void wait_count(sp_rt_model *model, sp_plan_entry *entry)
{
    if (sp_fetch_add_relaxed(&entry->waits, 1) + 1 != SP_WAITS_BEFORE_PLANS) return;
    if (!sp__batch_builder_request(model, entry)) sp_store_relaxed(&entry->waits, 0);
}

sp_status sp__batch_line_of(sp_rt_model *model, sp_plan_entry *entry, bool has_thread,
                            sp_batch_line *out)
{
    sp_batch_plans *plans = sp__batch_plans_of(entry);
    if (plans != NULL && plans->own_slots != NULL) {
        *out = (sp_batch_line){plans->own_slots, NULL, &plans->own_group};
        return SP_OK;
    }
    out->slots = sp__device_run_slots(model->device);
    out->flow = &model->flow;
    const bool is_merged = plans != NULL && (!has_thread || sp__batch_plans_pay_for_threads(plans));
    out->group = is_merged ? &entry->executable->group : NULL;
    if (out->slots == NULL) return SP_OUT_OF_MEMORY;
    /* The line of the count is not written to once it is high enough. */
    const bool counts = plans == NULL && !entry->is_private &&
                        sp_load_relaxed(&entry->waits) < SP_WAITS_BEFORE_PLANS;
    if (SP_UNLIKELY(counts) && is_crowded(out->slots, has_thread)) wait_count(model, entry);
    return SP_OK;
}

static sp_status batch_compute(const sp_batch *batch, sp_rt_device *device)
{
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    const uint32_t index = sp__submit_queue_acquire(device);
    sp__executable_queues(batch->bucket->executable, index, queues);
    sp_point last;
    sp_status status = sp__exec_context_submit_bound(batch->context, queues, &last);
    if (status == SP_OK) {
        sp__submitted_start_in_batch(batch, last);
        status = sp__exec_context_wait_bound(batch->context);
    }
    sp__submit_queue_release(device, index);
    return status;
}

static void batch_end(const batch_caller *caller, sp_batch *batch, sp_status status)
{
    sp_resume_list ready = {0};
    if (status == SP_OK) {
        sp__batch_scatter(batch);
        sp__run_group_finished(caller->line.group, batch->bucket->rows - 1);
        sp__batch_finish(batch, caller->line.slots, &ready);
    } else {
        sp__batch_break(batch, caller->line.slots, &ready);
    }
    sp__resume_list_run(&ready);
}

/* True if the caller has run as the lead of a batch, and has released its slot. */
static bool batch_lead(batch_caller *caller)
{
    sp_batch_plans *plans = sp__batch_plans_of(caller->entry);
    if (plans == NULL || !sp__stream_is_idle(caller->stream)) return false;
    sp_run_group *group = caller->line.group;
    sp_run_slots *slots = caller->line.slots;
    if (sp__run_group_expects(group)) (void)sp__run_yield(&slots->yields);
    sp_batch *batch = sp__batch_form(plans, slots, group, &caller->request);
    sp__batch_builder_refill(caller->model, caller->entry);
    if (batch == NULL) return false;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__batch_count(caller->model, batch);
    sp__batch_gather(batch);
    sp__run_counters_enter(&caller->model->counters, caller->request.terms.lane, true);
    const sp_status status = batch_compute(batch, caller->model->device);
    sp__run_counters_leave(&caller->model->counters, caller->request.terms.lane);
    batch_end(caller, batch, status);
    sp__error_put_back(&scope);
    return status == SP_OK;
}

/* With a slot. */
static sp_status caller_run(batch_caller *caller, void **outputs)
{
    const sp_run_group *group = caller->line.group;
    const bool has_led = group != NULL && sp__run_group_has_others(group) && batch_lead(caller);
    if (caller->request.row != NULL) {
        sp__batch_row_return(sp__batch_plans_of(caller->entry), &caller->request, has_led);
    }
    if (has_led) return SP_OK;
    const sp_status status =
        sp__model_compute_in_slot(caller->model, caller->entry->executable, caller->request.inputs,
                                  outputs, caller->stream, &caller->request.terms);
    sp__wait_entry_resume(sp__run_slots_release(caller->line.slots, &caller->request.terms));
    return status;
}

/* Until the caller has a slot, or is done as a row of another one's batch. */
static SP_NOINLINE sp_status caller_wait(batch_caller *caller, bool *is_done)
{
    if (sp__stream_is_idle(caller->stream)) caller->request.group = caller->line.group;
    const sp_batch_plans *plans = sp__batch_plans_of(caller->entry);
    sp_run_slots *slots = caller->line.slots;
    sp__batch_row_take(plans, slots, &caller->request);
    const sp_status status = sp__model_wait(caller->model, slots, &caller->request, is_done);
    sp__run_slots_unreserve(slots, &caller->request); /* of one that was cancelled before */
    if (status != SP_OK || *is_done) sp__batch_row_return(plans, &caller->request, *is_done);
    caller->line.group = caller->request.group; /* NULL: given back by a batch that failed */
    return status;
}

sp_status sp__batch_run(sp_rt_model *model, sp_plan_entry *entry, const void *const *inputs,
                        void **outputs, const sp_stream_ref *stream, const sp_run_terms *terms)
{
    if (stream == NULL) {
        return sp__model_compute_in_slot(model, entry->executable, inputs, outputs, NULL, terms);
    }
    batch_caller caller = {.model = model, .entry = entry, .stream = stream};
    SP_TRY(sp__batch_line_of(model, entry, true, &caller.line));
    caller.request.terms = *terms;
    caller.request.terms.flow = caller.line.flow;
    caller.request.inputs = inputs;
    caller.request.outputs = outputs;
    if (SP_UNLIKELY(!sp__run_slots_try_acquire(caller.line.slots, &caller.request.terms))) {
        bool is_done;
        SP_TRY(caller_wait(&caller, &is_done));
        if (is_done) return SP_OK;
    }
    const bool is_first = sp_load_relaxed(&entry->run_ns) == 0; /* of the plan, to be timed */
    if (SP_LIKELY(!terms->is_timed && !is_first)) return caller_run(&caller, outputs);
    const uint64_t begin_ns = sp_clock_now(), helped_ns = sp__thread_helped_ns();
    const sp_status status = caller_run(&caller, outputs);
    const uint64_t others_ns = sp__thread_helped_ns() - helped_ns;
    sp__run_estimate_add(&entry->run_ns, sp_clock_now() - begin_ns + others_ns);
    if (terms->is_timed) sp__run_counters_time(&model->counters, begin_ns);
    return status;
}
