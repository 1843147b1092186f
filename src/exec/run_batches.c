/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a run slot and are computed by the owner of one, in its batch. */
#include "base/clock.h"
#include "exec/run_slots_build.h"

static bool request_take_locked(sp_run_slots *slots, sp_run_request *request, uint64_t *counted)
    SP_REQUIRES(&slots->lock)
{
    if (SP_PLANTED(take_and_leave)) return true;
    if (!sp__run_line_unlist_locked(slots, request, counted)) return false;
    if (sp__run_request_has_thread(request)) sp_store_relaxed(&request->state, SP_RUN_TAKEN);
    return true;
}

/* Others spin for the lock meanwhile, and each request is on the stack of another thread: so the
 * next one is on its way while one is taken, and the word is written once. */
static uint32_t take_locked(sp_run_slots *slots, sp_run_group *group, uint32_t most,
                            sp_run_accept_fn accept, void *ctx, sp_run_request **out)
    SP_REQUIRES(&slots->lock)
{
    uint32_t count = 0;
    uint64_t counted = 0;
    for (sp_run_request *next, *request = group->first; request != NULL && count < most;
         request = next) {
        next = request->group_next;
        if (next != NULL) sp__run_request_prefetch(next);
        if (accept != NULL && !accept(request, ctx)) continue;
        if (request_take_locked(slots, request, &counted)) out[count++] = request;
    }
    if (!SP_PLANTED(taken_counts)) sp_fetch_sub_relaxed(&slots->free.word, counted);
    return count;
}

uint32_t sp__run_slots_take(sp_run_slots *slots, sp_run_group *group, uint32_t most,
                            sp_run_accept_fn accept, void *ctx, sp_run_request **out)
{
    sp_mutex_lock(&slots->lock);
    const uint32_t count = take_locked(slots, group, most, accept, ctx, out);
    sp_parker *watcher = sp__run_line_find_watcher_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (watcher != NULL) sp_parker_unpark(watcher);
    const uint64_t now = sp_clock_now();
    for (uint32_t i = 0; i < count; i++) out[i]->granted_ns = now;
    return count;
}

/* ---- callers of the last batch ---- */

/* A yield goes to any thread, also to one that computes alone; a few of them reach all that are
 * ready. */
#define PATIENCE 8u

void sp__run_group_finished(sp_run_group *group, uint32_t count)
{
    sp_store_relaxed(&group->finished, count);
    sp_store_relaxed(&group->patience, PATIENCE);
}

bool sp__run_group_expects(sp_run_group *group)
{
    const uint32_t finished = sp_load_relaxed(&group->finished);
    if (finished == 0 || sp_load_relaxed(&group->count) >= finished) return false;
    const uint32_t patience = sp_load_relaxed(&group->patience);
    if (patience == 0) sp_store_relaxed(&group->finished, 0);
    else sp_store_relaxed(&group->patience, patience - 1);
    return patience != 0;
}

/* ---- done ---- */

void sp__run_threads_wake(sp_run_request *first, uint32_t count)
{
    while (count > 0) {
        sp_run_request *request = first;
        if (SP_PLANTED(wakes_too_late)) sp__run_thread_set(request, SP_RUN_DONE);
        request->wakes = first->group_next;
        request->wake_count = (count - 1) / 2;
        for (uint32_t i = 0; i <= request->wake_count; i++) first = first->group_next;
        count -= 1 + request->wake_count;
        if (!SP_PLANTED(wakes_too_late)) sp__run_thread_set(request, SP_RUN_DONE);
    }
}

void sp__run_requests_finish(sp_run_request *const *requests, uint32_t count, sp_resume_list *ready)
{
    sp_run_request *threads = NULL;
    uint32_t thread_count = 0;
    for (uint32_t i = count; i-- > 0;) {
        if (requests[i]->finish != NULL) {
            requests[i]->finish(requests[i], ready);
            continue;
        }
        requests[i]->group_next = threads;
        threads = requests[i];
        thread_count++;
    }
    sp__run_threads_wake(threads, thread_count);
}

/* ---- back to the queues ---- */

/* The thread is woken, since its terms may have lapsed while it could not leave. */
static void thread_give_back(sp_run_slots *slots, sp_run_request *request, sp_resume_list *ready)
{
    sp_mutex_lock(&slots->lock);
    /* Sequentially consistent: see sp__run_slots_sweep. */
    if (!SP_PLANTED(given_uncounted)) sp_fetch_add_seq_cst(&slots->free.word, SP_RUN_ONE_THREAD);
    sp__run_line_push_locked(slots, request, true);
    sp_store_relaxed(&request->state, SP_RUN_QUEUED);
    sp_parker *parker = request->parker;
    sp_parker *watcher = sp__run_line_find_watcher_locked(slots);
    sp_mutex_unlock(&slots->lock);
    sp_parker_unpark(parker);
    if (watcher != NULL && watcher != parker) sp_parker_unpark(watcher);
    sp__run_slots_sweep(slots, false, ready);
}

/* False: it may not wait, and is the caller's. */
static bool request_requeue_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    sp__run_line_push_locked(slots, request, false);
    if (sp_fetch_add_acq_rel(&request->is_awaited, 0) == 0 || SP_PLANTED(awaited_unseen)) {
        return true;
    }
    return !sp__run_line_take_locked(slots, request); /* else cancelled */
}

void sp__run_slots_give_back(sp_run_slots *slots, sp_run_request *request, sp_resume_list *ready)
{
    request->group = NULL;
    if (sp__run_request_has_thread(request)) {
        thread_give_back(slots, request, ready);
        return;
    }
    sp_mutex_lock(&slots->lock);
    const bool has_slot = sp__run_word_acquire_locked(
        slots, sp__run_line_has_room_locked(slots, &request->terms), SP_RUN_ONE_SUBMITTED);
    if (has_slot) sp__run_line_count_locked(slots, &request->terms);
    const bool is_queued = !has_slot && request_requeue_locked(slots, request);
    sp_mutex_unlock(&slots->lock);
    if (is_queued) sp__run_slots_sweep(slots, true, ready);
    if (!has_slot && !is_queued) request->run_inline(request, ready);
    if (has_slot && !SP_PLANTED(given_slot_lost)) sp__resume_list_add(ready, &request->entry);
}
