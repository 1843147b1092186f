/* SPDX-License-Identifier: Apache-2.0 */
/* Run slots: one word, three queues, and the rule when a sleeping thread is called. */
#include "exec/run_slots.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "device/thread_record.h"
#include "exec/run_tenure.h"

#define ONE_FREE ((uint64_t)1)
#define ONE_CLAIMED ((uint64_t)1 << 16)
#define ONE_SUBMITTED ((uint64_t)1 << 32)
#define ONE_THREAD ((uint64_t)1 << 48)
#define FIELD_MASK 0xffffu
/* Of the word: who may not wait beside a free slot, and all that wait. */
#define ANY_CLAIM (FIELD_MASK * ONE_CLAIMED)
#define ANY_CLAIM_OR_SUBMITTED (ANY_CLAIM + FIELD_MASK * ONE_SUBMITTED)
#define ANY_WAITER (ANY_CLAIM_OR_SUBMITTED + FIELD_MASK * ONE_THREAD)

/* How long a claiming thread stays awake, and yields, before it sleeps. */
#define CLAIM_NS SP_SPIN_TURNS(50000u)

static uint32_t free_of(uint64_t word)
{
    return (uint32_t)word & FIELD_MASK;
}

static uint32_t submitted_of(uint64_t word)
{
    return (uint32_t)(word / ONE_SUBMITTED) & FIELD_MASK;
}

static uint32_t threads_of(uint64_t word)
{
    return (uint32_t)(word / ONE_THREAD);
}

void sp__run_slots_init(sp_run_slots *slots, uint32_t count)
{
    SP_ASSERT(count > 0 && count <= FIELD_MASK);
    sp_store_relaxed(&slots->word, count * ONE_FREE);
    slots->count = count;
    sp_store_relaxed(&slots->submitted_count, 0);
    sp_mutex_init(&slots->lock, SP_LOCK_RUN_SLOTS);
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_init(&slots->threads);
    sp__wait_queue_init(&slots->claims);
    sp__wait_queue_init(&slots->submitted);
    slots->called = 0;
    sp_mutex_unlock(&slots->lock);
}

void sp__run_slots_deinit(sp_run_slots *slots)
{
    sp_mutex_deinit(&slots->lock);
}

uint32_t sp__run_slots_waiting(const sp_run_slots *slots)
{
    const uint64_t word = sp_load_relaxed(&slots->word);
    return threads_of(word) + submitted_of(word);
}

/* ---- the word ---- */

static bool free_acquire(sp_run_slots *slots, uint64_t *word)
{
    *word = sp_load_relaxed(&slots->word);
    while (free_of(*word) != 0) {
        if (SP_PLANTED(take_taken)) sp_store_relaxed(&slots->word, *word - ONE_FREE);
        if (SP_PLANTED(take_taken) || sp_cas_acquire(&slots->word, word, *word - ONE_FREE)) {
            return true;
        }
    }
    return false;
}

/* Takes a free slot, or else adds `refused`. */
static bool word_acquire_locked(sp_run_slots *slots, uint64_t refused) SP_REQUIRES(&slots->lock)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    for (;;) {
        const bool is_free = !SP_PLANTED(line_up_blindly) && free_of(word) != 0;
        const uint64_t next = is_free ? word - ONE_FREE : word + refused;
        if (sp_cas_acquire(&slots->word, &word, next)) return is_free;
    }
}

/* ---- queues ---- */

static void group_add_locked(sp_run_request *request)
{
    sp_run_group *group = request->group;
    if (group == NULL) return;
    if (group->end == NULL) group->end = &group->first;
    request->group_next = NULL;
    request->group_link = group->end;
    *group->end = request;
    group->end = &request->group_next;
    sp_store_relaxed(&group->count, sp_load_relaxed(&group->count) + 1);
}

static void group_remove_locked(sp_run_request *request)
{
    sp_run_group *group = request->group;
    if (group == NULL) return;
    *request->group_link = request->group_next;
    *(request->group_next != NULL ? &request->group_next->group_link : &group->end) =
        request->group_link;
    sp_store_relaxed(&group->count, sp_load_relaxed(&group->count) - 1);
}

static sp_run_request *request_of(sp_wait_entry *entry)
{
    return SP_CONTAINER_OF(entry, sp_run_request, entry);
}

static void request_push_locked(sp_wait_queue *queue, sp_run_request *request)
{
    sp__wait_queue_push(queue, &request->entry);
    group_add_locked(request);
}

/* NULL: the queue is empty. */
static sp_run_request *request_pop_locked(sp_wait_queue *queue)
{
    sp_wait_entry *entry = sp__wait_queue_pop(queue);
    if (entry == NULL) return NULL;
    group_remove_locked(request_of(entry));
    return request_of(entry);
}

/* ---- waiting threads ---- */

enum {
    QUEUED,
    CALLED,  /* left the queue, and is being woken */
    CLAIMED, /* awake, and gets one of the next slots */
    GRANTED,
    TAKEN, /* is in another run's batch */
    DONE
};

/* The last access to the request by another thread, unless the request is in a queue. */
static void thread_set(sp_run_request *request, uint32_t state)
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
    thread_set(request_of(entry), GRANTED);
}

/* The thread is to be woken by thread_set, without the lock. NULL: no thread waits, or enough are
 * called. */
static sp_run_request *thread_call_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    if (slots->called >= slots->count) return NULL;
    sp_run_request *request = request_pop_locked(&slots->threads);
    if (request == NULL) return NULL;
    slots->called++;
    sp_fetch_sub_relaxed(&slots->word, ONE_THREAD);
    return request;
}

/* The called thread's answer: true if it has a slot, else it gets one of the next. */
static bool claim(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    slots->called--;
    const bool is_free = word_acquire_locked(slots, ONE_CLAIMED);
    if (!is_free) {
        sp_store_relaxed(&request->state, CLAIMED);
        sp__wait_queue_push(&slots->claims, &request->entry);
    }
    sp_mutex_unlock(&slots->lock);
    return is_free;
}

/* The thread that was queued last. */
static sp_run_request *thread_newest_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    if (slots->threads.first == NULL) return NULL;
    return request_of(SP_CONTAINER_OF(slots->threads.end, sp_wait_entry, next));
}

/* A queued thread is awake: is it the newest? Then it is the one that finds a slot that was left
 * free. */
static bool watch(sp_run_slots *slots, sp_run_request *request)
{
    sp_run_request *called = NULL;
    sp_mutex_lock(&slots->lock);
    const bool is_newest = thread_newest_locked(slots) == request;
    const uint64_t word = sp_load_relaxed(&slots->word);
    request->watches = is_newest && !SP_PLANTED(watch_once);
    if (is_newest && free_of(word) > slots->called) called = thread_call_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (called != NULL) thread_set(called, CALLED);
    return is_newest && !SP_PLANTED(watch_once);
}

/* Wakes `count` threads whose requests are done, linked by group_next: each gets half of those that
 * are left to wake. */
static void threads_wake(sp_run_request *first, uint32_t count)
{
    while (count > 0) {
        sp_run_request *request = first;
        if (SP_PLANTED(wakes_too_late)) thread_set(request, DONE);
        request->wakes = first->group_next;
        request->wake_count = (count - 1) / 2;
        for (uint32_t i = 0; i <= request->wake_count; i++) first = first->group_next;
        count -= 1 + request->wake_count;
        if (!SP_PLANTED(wakes_too_late)) thread_set(request, DONE);
    }
}

/* From the queue of threads to a slot: true; or to the end of a batch that took the request. */
static bool thread_sleep(sp_run_slots *slots, sp_run_request *request)
{
    bool watches = !SP_PLANTED(no_watch);
    uint64_t awake_until = 0;
    uint32_t state;
    while ((state = sp_load_acquire(&request->state)) != GRANTED && state != DONE) {
        if (state == CALLED) {
            if (claim(slots, request)) return true;
            awake_until = sp_clock_now() + CLAIM_NS;
        } else if (state == CLAIMED && sp_clock_now() < awake_until) {
            sp_thread_yield();
        } else {
            const bool is_timed = state == QUEUED && watches;
            sp_parker_park(request->parker, is_timed
                                                ? sp_clock_deadline((int64_t)2 * SP_RUN_QUANTUM_NS)
                                                : SP_NO_DEADLINE);
            if (sp_load_acquire(&request->state) == QUEUED) watches = watch(slots, request);
        }
    }
    sp_tsan_acquire(&request->state);
    if (state == DONE && !SP_PLANTED(half_tree)) {
        threads_wake(request->wakes, request->wake_count);
    }
    return state == GRANTED;
}

SP_NOINLINE sp_status sp__run_slots_wait(sp_run_slots *slots, sp_run_request *request,
                                         bool *is_done)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    *is_done = false;
    request->entry.resume = thread_grant;
    request->parker = &record->parker;
    request->watches = true;
    sp__run_tenure_return(&record->tenure);
    sp_mutex_lock(&slots->lock);
    const bool is_free = word_acquire_locked(slots, ONE_THREAD);
    if (!is_free) request_push_locked(&slots->threads, request);
    sp_mutex_unlock(&slots->lock);
    if (is_free) return SP_OK;
    sp_delay_point();
    *is_done = !thread_sleep(slots, request);
    sp__run_tenure_begin(&record->tenure, sp_clock_now());
    return SP_OK;
}

/* A free slot, while others wait: by a thread that has returned, or by a newcomer. */
static SP_NOINLINE void note_return(void)
{
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) sp__run_tenure_return(&record->tenure);
}

bool sp__run_slots_try_acquire(sp_run_slots *slots)
{
    uint64_t word;
    if (SP_UNLIKELY(!free_acquire(slots, &word))) return false;
    if (SP_UNLIKELY(threads_of(word) != 0)) note_return();
    return true;
}

sp_status sp__run_slots_acquire(sp_run_slots *slots)
{
    if (SP_LIKELY(sp__run_slots_try_acquire(slots))) return SP_OK;
    sp_run_request request = {0};
    bool is_done; /* false: no group */
    return sp__run_slots_wait(slots, &request, &is_done);
}

/* ---- release ---- */

/* Lets the called thread wake up. It takes a while, which does not count as an absence. */
static void stay(void)
{
    sp_thread_yield();
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->tenure.released = sp_clock_now();
}

/* The slot goes to a claim, a submitted run, or is free; and a thread is called, unless the slot's
 * owner takes it again. Returns the entry that has the slot now. */
static sp_wait_entry *pass_on(sp_run_slots *slots, sp_release_action action)
{
    sp_run_request *called = NULL;
    sp_mutex_lock(&slots->lock);
    sp_wait_entry *entry = SP_PLANTED(forget_claim) ? NULL : sp__wait_queue_pop(&slots->claims);
    if (entry != NULL) {
        sp_fetch_sub_relaxed(&slots->word, ONE_CLAIMED);
    } else {
        if (action != SP_RELEASE_LEAVE) called = thread_call_locked(slots);
        sp_run_request *submitted = request_pop_locked(&slots->submitted);
        if (submitted != NULL) entry = &submitted->entry;
        if (entry == NULL) sp_fetch_add_release(&slots->word, ONE_FREE);
        else if (!SP_PLANTED(stays_counted)) sp_fetch_sub_relaxed(&slots->word, ONE_SUBMITTED);
    }
    sp_mutex_unlock(&slots->lock);
    if (called != NULL && !SP_PLANTED(lost_call)) thread_set(called, CALLED);
    if (called != NULL && action == SP_RELEASE_CALL_AND_STAY) stay();
    return entry;
}

/* True if nothing waits that the mask names, and the slot is free now. */
static bool free_release(sp_run_slots *slots, uint64_t mask)
{
    uint64_t word = sp_load_relaxed(&slots->word);
    while ((word & mask) == 0) {
        /* Release: the context that the run has released is there for the next taker. */
        if (sp_cas_release(&slots->word, &word, word + ONE_FREE)) return true;
    }
    return false;
}

static SP_NOINLINE sp_wait_entry *contended_release(sp_run_slots *slots)
{
    sp_thread_record *record = sp__thread_record();
    const sp_release_action action =
        record != NULL ? sp__run_tenure_release(&record->tenure) : SP_RELEASE_CALL;
    const uint64_t mask = SP_PLANTED(submitted_left) ? ANY_CLAIM : ANY_CLAIM_OR_SUBMITTED;
    if (action == SP_RELEASE_LEAVE && free_release(slots, mask)) return NULL;
    return pass_on(slots, action);
}

sp_wait_entry *sp__run_slots_release(sp_run_slots *slots)
{
    return SP_LIKELY(free_release(slots, ANY_WAITER)) ? NULL : contended_release(slots);
}

/* ---- submitted runs ---- */

sp_status sp__run_slots_admit(sp_run_slots *slots)
{
    if (sp_fetch_add_relaxed(&slots->submitted_count, 1) < SP_RUN_SLOTS_SUBMITTED) return SP_OK;
    sp__run_slots_retire(slots);
    return sp__fail(SP_BUSY, "%d submitted runs of the device are not done; wait for some first",
                    SP_RUN_SLOTS_SUBMITTED);
}

void sp__run_slots_retire(sp_run_slots *slots)
{
    sp_fetch_sub_relaxed(&slots->submitted_count, 1);
}

bool sp__run_slots_acquire_or_queue(sp_run_slots *slots, sp_run_request *request)
{
    uint64_t word;
    if (SP_LIKELY(free_acquire(slots, &word))) return true;
    sp_mutex_lock(&slots->lock);
    const bool is_free = word_acquire_locked(slots, ONE_SUBMITTED);
    if (!is_free) request_push_locked(&slots->submitted, request);
    sp_mutex_unlock(&slots->lock);
    return is_free;
}

sp_wait_entry *sp__run_slots_release_submitted(sp_run_slots *slots)
{
    return SP_LIKELY(free_release(slots, ANY_WAITER)) ? NULL : pass_on(slots, SP_RELEASE_CALL);
}

bool sp__run_request_claim(sp_run_request *request)
{
    (void)sp_exchange_acq_rel(&request->is_awaited, 1);
    return sp__wait_entry_claim(&request->entry);
}

void sp__run_slots_dequeue(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    sp__wait_queue_remove(&slots->submitted, &request->entry);
    group_remove_locked(request);
    sp_fetch_sub_relaxed(&slots->word, ONE_SUBMITTED);
    sp_mutex_unlock(&slots->lock);
}

/* ---- batches ---- */

static bool request_take_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    const bool is_thread = request->finish == NULL;
    sp_wait_queue *queue = is_thread ? &slots->threads : &slots->submitted;
    if (SP_PLANTED(take_and_leave)) return true;
    if (!sp__wait_queue_take(queue, &request->entry)) return false;
    group_remove_locked(request);
    if (!SP_PLANTED(taken_counts)) {
        sp_fetch_sub_relaxed(&slots->word, is_thread ? ONE_THREAD : ONE_SUBMITTED);
    }
    if (is_thread) sp_store_relaxed(&request->state, TAKEN);
    return true;
}

/* The thread that is the newest from now on is to be woken if it has no time-out. */
static sp_parker *watcher_find_locked(sp_run_slots *slots) SP_REQUIRES(&slots->lock)
{
    sp_run_request *newest = thread_newest_locked(slots);
    if (newest == NULL || newest->watches || SP_PLANTED(watcher_taken)) return NULL;
    newest->watches = true;
    return newest->parker;
}

uint32_t sp__run_slots_take(sp_run_slots *slots, sp_run_group *group, uint32_t most,
                            sp_run_accept_fn accept, void *ctx, sp_run_request **out)
{
    uint32_t count = 0;
    sp_mutex_lock(&slots->lock);
    for (sp_run_request *next, *request = group->first; request != NULL && count < most;
         request = next) {
        next = request->group_next;
        if (accept != NULL && !accept(request, ctx)) continue;
        if (request_take_locked(slots, request)) out[count++] = request;
    }
    sp_parker *watcher = watcher_find_locked(slots);
    sp_mutex_unlock(&slots->lock);
    if (watcher != NULL) sp_parker_unpark(watcher);
    return count;
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
    threads_wake(threads, thread_count);
}

static void thread_give_back(sp_run_slots *slots, sp_run_request *request)
{
    sp_mutex_lock(&slots->lock);
    slots->called++; /* out of turn, and perhaps beside as many others as there are slots */
    sp_mutex_unlock(&slots->lock);
    thread_set(request, CALLED);
}

/* False: it may not wait, and is the caller's. */
static bool request_requeue_locked(sp_run_slots *slots, sp_run_request *request)
    SP_REQUIRES(&slots->lock)
{
    sp__wait_queue_push(&slots->submitted, &request->entry);
    if (sp_fetch_add_acq_rel(&request->is_awaited, 0) == 0 || SP_PLANTED(awaited_unseen)) {
        return true;
    }
    if (!sp__wait_queue_take(&slots->submitted, &request->entry)) return true; /* cancelled */
    sp_fetch_sub_relaxed(&slots->word, ONE_SUBMITTED);
    return false;
}

void sp__run_slots_give_back(sp_run_slots *slots, sp_run_request *request, sp_resume_list *ready)
{
    request->group = NULL;
    if (request->finish == NULL) {
        thread_give_back(slots, request);
        return;
    }
    sp_mutex_lock(&slots->lock);
    const bool has_slot = word_acquire_locked(slots, ONE_SUBMITTED);
    const bool is_queued = !has_slot && request_requeue_locked(slots, request);
    sp_mutex_unlock(&slots->lock);
    if (!has_slot && !is_queued) request->run_inline(request, ready);
    if (has_slot && !SP_PLANTED(given_slot_lost)) sp__resume_list_add(ready, &request->entry);
}
