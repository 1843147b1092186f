/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for a run slot: in a queue, called, claiming. */
#include <streampool/model.h>

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "device/thread_record.h"
#include "device/wait.h"
#include "exec/run_slots_build.h"
#include "exec/run_tenure.h"

/* How long a claiming thread stays awake before it sleeps. */
#define CLAIM_NS SP_SPIN_TURNS(50000u)

/* How often a thread whose request another run may take yields before it sleeps: while a batch is
 * computed on its processor, the yield lasts as long, and nobody has to wake it. */
#define BATCH_YIELDS 2u

void sp__run_thread_set(sp_run_request *request, uint32_t state)
{
    sp_parker *parker = request->parker;
    sp_tsan_release(&request->state);
    if (SP_PLANTED(relaxed_grant)) {
        sp_store_relaxed(&request->state, state);
    } else {
        sp_store_release(&request->state, state);
    }
    sp_parker_unpark(parker);
}

static void thread_grant(sp_wait_entry *entry, sp_resume_list *ready)
{
    (void)ready;
    sp__run_thread_set(sp__run_request_of(entry), SP_RUN_GRANTED);
}

sp_run_request *sp__run_thread_call_locked(sp_run_slots *slots)
{
    if (slots->called >= slots->count) return NULL;
    sp_run_request *request = sp__run_line_pop_locked(slots, true);
    if (request != NULL) slots->called++;
    return request;
}

/* ---- what a waiting thread does ---- */

static void claim_locked(sp_run_slots *slots, sp_run_request *request) SP_REQUIRES(&slots->lock)
{
    if (request->queued_ns == 0) request->queued_ns = sp_clock_now();
    sp_store_relaxed(&request->state, SP_RUN_CLAIMED);
    sp__wait_queue_push(&slots->claims, &request->entry);
}

/* The called thread's answer: true if it has a slot, else it gets one of the next. */
static bool claim(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    slots->called--;
    const bool is_free = sp__run_word_acquire_locked(slots, true, SP_RUN_ONE_CLAIMED);
    if (!is_free) claim_locked(slots, request);
    sp_mutex_unlock(&slots->lock);
    if (!is_free) sp__run_slots_sweep(slots, true, NULL);
    return is_free;
}

/* A queued thread is awake: is it the watcher? Then it is the one that finds a slot that was left
 * free. */
static bool watch(sp_run_slots *slots, sp_run_request *request)
{
    sp_run_request *called = NULL;
    sp_mutex_lock(&slots->lock);
    const bool is_watcher = slots->watcher == request && !SP_PLANTED(watch_once);
    request->watches = is_watcher;
    if (slots->watcher == request && sp__run_slots_free_locked(slots) > slots->called) {
        called = sp__run_thread_call_locked(slots);
        sp__run_slots_note_deserted(slots);
    }
    sp_parker *watcher = sp__run_line_find_watcher_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (watcher != NULL) sp_parker_unpark(watcher);
    if (called != NULL) sp__run_thread_set(called, SP_RUN_CALLED);
    return is_watcher;
}

/* ---- leaving without a slot ---- */

/* False: another thread has decided what becomes of the request, or is about to. */
static bool leave_locked(sp_run_slots *slots, sp_run_request *request, uint32_t state)
    SP_REQUIRES(&slots->lock)
{
    if (state == SP_RUN_QUEUED) return sp__run_line_take_locked(slots, request);
    if (state == SP_RUN_CALLED) {
        slots->called--;
    } else {
        if (!sp__wait_queue_take(&slots->claims, &request->entry)) return false;
        sp_fetch_sub_relaxed(&slots->free.word, SP_RUN_ONE_CLAIMED);
    }
    sp__run_line_uncount_locked(slots, &request->terms);
    return true;
}

/* What the request was promised goes to the next. */
static bool leave(sp_run_slots *slots, sp_run_request *request, uint32_t state)
{
    sp_run_request *called = NULL;
    sp_wait_entry *submitted = NULL;
    sp_mutex_lock(&slots->lock);
    const bool is_out = leave_locked(slots, request, state);
    if (is_out && state != SP_RUN_QUEUED && !SP_PLANTED(promise_lost)) {
        if (request->terms.is_counted) submitted = sp__run_line_start_locked(slots);
        if (sp__run_slots_free_locked(slots) > slots->called) {
            called = sp__run_thread_call_locked(slots);
        }
    }
    sp_parker *watcher = sp__run_line_find_watcher_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (watcher != NULL) sp_parker_unpark(watcher);
    if (called != NULL) sp__run_thread_set(called, SP_RUN_CALLED);
    sp__wait_entry_resume(submitted);
    return is_out;
}

/* ---- the wait ---- */

static uint64_t deadline_of(const sp_run_request *request, bool watches)
{
    const uint64_t own =
        request->terms.deadline_ns != 0 ? request->terms.deadline_ns : SP_NO_DEADLINE;
    if (!watches) return own;
    const uint64_t look = sp_clock_deadline((int64_t)2 * SP_RUN_QUANTUM_NS);
    return look < own ? look : own;
}

/* A yield goes to any thread that computes, for a slice of the system. A thread of high priority
 * spins instead: an owner on another processor returns its slot within a run. */
static void claim_pause(const sp_run_slots *slots, const sp_run_request *request)
{
    const bool is_high = request->terms.priority == SP_PRIORITY_HIGH;
    if (is_high && slots->yields.processors > 1) sp_spin_hint();
    else sp_thread_yield();
}

/* From a queue, or a claim, to a slot; or to the end of a batch that took the request; or out of
 * the queues: SP_TIMEOUT or SP_CANCELLED, when its terms have lapsed; SP_NOT_READY, at ask_ns. */
static sp_status thread_sleep(sp_run_slots *slots, sp_run_request *request, bool watches,
                              uint32_t yields, uint64_t ask_ns)
{
    uint64_t awake_until = sp_clock_now() + CLAIM_NS;
    uint32_t state;
    while ((state = sp_load_acquire(&request->state)) != SP_RUN_GRANTED && state != SP_RUN_DONE) {
        const bool has_lapsed = state != SP_RUN_TAKEN && !SP_PLANTED(cancel_unseen) &&
                                sp__run_terms_have_lapsed(&request->terms);
        if (has_lapsed && leave(slots, request, state)) {
            return sp__run_terms_check(&request->terms);
        }
        const bool must_ask = ask_ns != SP_NO_DEADLINE && sp_clock_now() >= ask_ns;
        if (must_ask && state != SP_RUN_TAKEN && leave(slots, request, state)) return SP_NOT_READY;
        if (state == SP_RUN_CALLED) {
            if (claim(slots, request)) return SP_OK;
            awake_until = sp_clock_now() + CLAIM_NS;
        } else if (state == SP_RUN_CLAIMED && !has_lapsed && sp_clock_now() < awake_until) {
            claim_pause(slots, request);
        } else if (yields > 0 && state != SP_RUN_CLAIMED && !has_lapsed) {
            yields = sp__run_yield(&slots->yields) ? yields - 1 : 0;
        } else {
            const bool is_timed = state != SP_RUN_TAKEN && !has_lapsed && !must_ask;
            const uint64_t own_ns = deadline_of(request, state == SP_RUN_QUEUED && watches);
            const uint64_t until_ns = own_ns < ask_ns ? own_ns : ask_ns;
            sp_parker_park(request->parker, is_timed ? until_ns : SP_NO_DEADLINE);
            if (sp_load_acquire(&request->state) == SP_RUN_QUEUED) watches = watch(slots, request);
        }
    }
    sp_tsan_acquire(&request->state);
    (void)sp_parker_take(request->parker); /* for a thread that did not sleep */
    if (state == SP_RUN_DONE && !SP_PLANTED(half_tree)) {
        sp__run_threads_wake(request->wakes, request->wake_count);
    }
    return SP_OK;
}

/* A thread of high priority is awake, so it needs no call; but for as many as there are slots, so
 * that those of high priority do not pay for a wake-up at each run. */
static bool may_claim_locked(const sp_run_slots *slots, const sp_run_terms *terms)
    SP_REQUIRES(&slots->lock)
{
    return terms->priority == SP_PRIORITY_HIGH && slots->high < slots->count &&
           sp__run_line_has_room_locked(slots, terms);
}

/* *has_slot, or the request is queued, perhaps as the watcher, or claims a slot. One that was
 * queued before is not refused, and keeps its place. Errors: SP_BUSY. */
static sp_status thread_begin(sp_run_slots *slots, sp_run_request *request, bool is_again,
                              bool *has_slot, bool *watches)
{
    const sp_run_terms *terms = &request->terms;
    sp_mutex_lock(&slots->lock);
    uint32_t queued;
    const bool may_wait = sp__run_line_may_wait_locked(slots, request, &queued) || is_again;
    const bool may_claim = may_wait && may_claim_locked(slots, terms);
    const uint64_t waiting = may_claim ? SP_RUN_ONE_CLAIMED : SP_RUN_ONE_THREAD;
    *has_slot = sp__run_word_acquire_locked(slots, sp__run_line_has_room_locked(slots, terms),
                                            may_wait ? waiting : 0);
    if (*has_slot || may_claim) sp__run_line_count_locked(slots, terms);
    if (!*has_slot && may_claim) claim_locked(slots, request);
    else if (!*has_slot && may_wait) sp__run_line_push_locked(slots, request, is_again);
    *watches = request->watches && !SP_PLANTED(no_watch);
    sp_mutex_unlock(&slots->lock);
    return *has_slot || may_wait ? SP_OK : sp__run_terms_refuse(terms, queued);
}

/* To the end of the wait, or until the thread's check is to be asked: SP_NOT_READY. */
static sp_status thread_wait(sp_run_slots *slots, sp_run_request *request,
                             const sp_thread_record *record, bool is_again, bool *has_slot)
{
    /* Before it is queued: who takes it may give it back, to be in no group. */
    const uint32_t yields = request->group != NULL && !is_again ? BATCH_YIELDS : 0;
    bool watches;
    SP_TRY(thread_begin(slots, request, is_again, has_slot, &watches));
    if (*has_slot) return SP_OK;
    sp__run_slots_sweep(slots, request->terms.priority == SP_PRIORITY_HIGH, NULL);
    sp_delay_point();
    return thread_sleep(slots, request, watches, yields, sp__wait_check_time(record));
}

/* While the check is asked the request is in no queue: it may take long, and may run models. */
static sp_status thread_ask(sp_run_request *request, sp_thread_record *record)
{
    sp_store_relaxed(&request->state, SP_RUN_QUEUED);
    SP_TRY(sp__wait_check_ask(record));
    return sp__run_terms_check(&request->terms);
}

SP_NOINLINE sp_status sp__run_slots_wait(sp_run_slots *slots, sp_run_request *request,
                                         bool *is_done)
{
    *is_done = false;
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    request->entry.resume = thread_grant;
    request->parker = &record->parker;
    sp__run_slots_note_return(slots, &record->tenure);
    bool has_slot = false;
    request->queued_ns = sp_clock_now(); /* not under the lock */
    sp_status status = thread_wait(slots, request, record, false, &has_slot);
    if (has_slot) request->queued_ns = 0; /* it has not waited */
    if (has_slot || status == SP_BUSY) return status;
    while (status == SP_NOT_READY) {
        status = thread_ask(request, record);
        if (status == SP_OK) status = thread_wait(slots, request, record, true, &has_slot);
    }
    const uint64_t now = sp_clock_now();
    *is_done = sp_load_relaxed(&request->state) == SP_RUN_DONE;
    if (!*is_done) request->granted_ns = now;
    sp__run_tenure_begin(&record->tenure, now);
    return status;
}
