/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/partial/partial_waits.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/tsan.h"
#include "device/thread_record.h"
#include "exec/model_object.h"
#include "exec/run_tenure.h"
#include "runtime/submit_queue.h"

enum { WAITING, GRANTED, ENDED };

/* ---- ends of a wait ---- */

/* The last access to the run by the party that ends its wait. */
static void wait_answer(sp_rt_future *run, uint32_t answer)
{
    sp_parker *parker = run->partial.parker; /* type-stable: outlives the run */
    sp_tsan_release(&run->partial.answer);
    if (SP_PLANTED(relaxed_answer)) {
        sp_store_relaxed(&run->partial.answer, answer);
    } else {
        sp_store_release(&run->partial.answer, answer);
    }
    sp_parker_unpark(parker);
}

/* The run was granted the slot or context. */
static void wait_resume(sp_wait_entry *entry, sp_resume_list *ready)
{
    (void)ready;
    wait_answer(SP_CONTAINER_OF(entry, sp_rt_future, request.entry), GRANTED);
}

static void wait_end(sp_rt_future *run)
{
    if (!sp__run_request_claim(&run->request)) return;
    sp_executable *executable = run->partial.executable;
    if (executable != NULL) {
        sp__exec_context_dequeue(executable, &run->request.entry);
    } else {
        sp__run_slots_dequeue(run->slots, &run->request);
    }
    wait_answer(run, ENDED);
}

void sp__partial_waits_end(sp_rt_future *run)
{
    wait_end(run);
    if (!SP_PLANTED(quiet_waits_end)) sp__plan_cache_wake(&run->model->plans);
}

/* ---- the thread ---- */

sp_status sp__partial_waits_begin(sp_rt_future *run)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    run->partial.parker = &record->parker;
    run->request.entry.resume = wait_resume;
    record->computed_futures++;
    sp_store_relaxed(&run->partial.holder, record->holder);
    return SP_OK;
}

void sp__partial_waits_finish(sp_rt_future *run)
{
    sp_store_relaxed(&run->partial.holder, 0);
    sp__thread_record()->computed_futures--;
}

/* Before the entry is pushed. */
static void wait_prepare(sp_rt_future *run, sp_executable *executable)
{
    run->partial.executable = executable;
    sp_store_relaxed(&run->partial.answer, WAITING);
}

/* With the entry pushed: true if it was granted, false if the waits have ended. */
static bool wait_sleep(sp_rt_future *run)
{
    if (!SP_PLANTED(waits_unseen) && sp_fetch_add_acq_rel(&run->request.is_awaited, 0) != 0) {
        wait_end(run);
    }
    sp_delay_point();
    uint32_t answer;
    while ((answer = sp_load_acquire(&run->partial.answer)) == WAITING) {
        sp_parker_park(run->partial.parker, SP_NO_DEADLINE);
    }
    sp_tsan_acquire(&run->partial.answer);
    return answer == GRANTED;
}

static bool is_awaited(const sp_rt_future *run)
{
    return sp_load_acquire(sp__partial_waits_flag(run)) != 0;
}

sp_status sp__partial_waits_check(const sp_rt_future *run)
{
    if (sp__future_is_cancelled(run)) return sp__fail_cancelled();
    if (sp_load_relaxed(run->partial.is_stopping) == 0) return SP_OK;
    return sp__fail(SP_CLOSED, "the run was ended by the shutdown (sp_shutdown) or exit");
}

/* ---- one plan ---- */

static sp_status slot_wait(sp_rt_future *run, bool *has_slot)
{
    sp_run_tenure *tenure = &sp__thread_record()->tenure;
    sp__run_slots_note_return(run->slots, tenure);
    wait_prepare(run, NULL);
    run->request.queued_ns = run->request.granted_ns = 0;
    SP_TRY(sp__run_slots_submit(run->slots, &run->request));
    *has_slot = wait_sleep(run);
    sp__run_counters_wait(&run->model->counters, &run->request);
    if (*has_slot) sp__run_tenure_begin(tenure, sp_clock_now());
    return SP_OK;
}

sp_status sp__partial_waits_take_slot(sp_rt_future *run, bool *has_slot)
{
    sp_run_terms *terms = &run->request.terms;
    *has_slot = sp__run_slots_try_acquire(run->slots, terms);
    if (!*has_slot) SP_TRY(slot_wait(run, has_slot));
    sp__run_request_uncount(&run->request);
    if (!*has_slot) return SP_OK;
    const sp_status status = sp__run_terms_check(terms);
    if (status != SP_OK) {
        sp__wait_entry_resume(sp__run_slots_release(run->slots, terms));
        *has_slot = false;
    }
    return status;
}

/* *out is NULL if the waits have ended. No other run returns a context to a private plan. */
static sp_status context_acquire(sp_rt_future *run, const sp_plan_entry *entry,
                                 sp_exec_context **out)
{
    sp_executable *executable = entry->executable;
    if (entry->is_private) return sp__exec_context_acquire(executable, SP_NO_HOME, false, out);
    sp_resume_list ready = {0};
    wait_prepare(run, executable);
    SP_TRY(sp__exec_context_acquire_or_queue(executable, &run->request.entry, out, &ready));
    sp__resume_list_run(&ready);
    if (*out == NULL && wait_sleep(run)) *out = run->request.entry.granted;
    if (*out != NULL) (*out)->home = SP_NO_HOME;
    return SP_OK;
}

/* On a submit queue, which nothing of the user blocks. */
static sp_status context_run(sp_exec_context *context, const void *const *inputs,
                             void *const *outputs)
{
    const sp_executable *executable = context->executable;
    sp_rt_device *device = sp__executable_device(executable);
    sp_queue *queues[SP_MAX_TARGETS] = {NULL};
    SP_TRY(sp__executable_open_queues(executable));
    const uint32_t index = sp__submit_queue_acquire(device);
    sp__executable_queues(executable, index, queues);
    sp__exec_context_begin(context, inputs, outputs);
    const sp_status status = sp__exec_context_run_bound(context, queues);
    sp__submit_queue_release(device, index);
    if (status == SP_OK) sp__exec_context_end(context, outputs);
    return status;
}

/* With a slot. *is_done: the plan was run, or has failed; else the waits have ended. */
static sp_status compute_in_slot(sp_rt_future *run, const sp_plan_entry *entry,
                                 const void *const *inputs, void **outputs, bool *is_done)
{
    sp_exec_context *context;
    *is_done = true;
    SP_TRY(context_acquire(run, entry, &context));
    *is_done = context != NULL;
    if (context == NULL) return SP_OK;
    context->cancel = &run->is_cancelled;
    sp__run_counters_enter(&run->model->counters, run->request.terms.lane, true);
    const sp_status status = context_run(context, inputs, outputs);
    sp__run_counters_leave(&run->model->counters, run->request.terms.lane);
    sp__wait_entry_resume(sp__exec_context_release(context));
    return status;
}

sp_status sp__partial_waits_compute(sp_rt_future *run, const sp_plan_entry *entry,
                                    const void *const *inputs, void **outputs)
{
    sp_run_terms *terms = &run->request.terms;
    bool has_slot = false;
    bool is_done = false;
    sp_status status = SP_OK;
    if (!is_awaited(run)) SP_TRY(sp__partial_waits_take_slot(run, &has_slot));
    sp__run_request_uncount(&run->request);
    sp__partial_terms_begin(terms);
    if (has_slot) {
        status = compute_in_slot(run, entry, inputs, outputs, &is_done);
        sp__wait_entry_resume(sp__run_slots_release(run->slots, terms));
    }
    if (is_done) return status;
    SP_TRY(sp__partial_waits_check(run)); /* a cancel and a shutdown end the waits first */
    return sp__model_compute(run->model, entry->executable, inputs, outputs, NULL, terms);
}
