/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: the places in a queue, which submitters wait for. */
#include "batch/batch_queue.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/tsan.h"
#include "device/thread_record.h"
#include "device/wait.h"

/* A thread in `room`. */
typedef struct place_waiter {
    sp_thread_waiter thread;
    uint64_t arrived_ns; /* at the queue: one that has left to ask its check keeps its turn */
} place_waiter;

static bool place_precedes(const sp_wait_entry *entry, const sp_wait_entry *other)
{
    return SP_CONTAINER_OF(entry, const place_waiter, thread.entry)->arrived_ns <=
           SP_CONTAINER_OF(other, const place_waiter, thread.entry)->arrived_ns;
}

/* Not before threads that wait. */
static bool place_reserve_locked(sp_rt_batch_queue *queue, const sp_wait_entry *again)
    SP_REQUIRES(&queue->lock)
{
    const sp_wait_entry *first = queue->room.first;
    const bool is_turn = first == NULL || (again != NULL && place_precedes(again, first));
    const bool has_room = is_turn && queue->waiting + queue->reserved < queue->options.max_waiting;
    if (has_room) queue->reserved++;
    return has_room;
}

/* False: the waiter has a place, or is about to. */
static bool place_leave(sp_rt_batch_queue *queue, sp_thread_waiter *waiter)
{
    sp_resume_list ready = {0};
    if (!sp__wait_entry_claim(&waiter->entry)) return false;
    sp_mutex_lock(&queue->lock);
    sp__wait_queue_remove(&queue->room, &waiter->entry);
    sp_mutex_unlock(&queue->lock);
    /* Others may have queued behind it though there is room. */
    if (!SP_PLANTED(room_blocked)) sp__batch_queue_settle(queue, &ready);
    sp__resume_list_run(&ready);
    return true;
}

/* Until the waiter has a place, or has left: since its terms have lapsed, or at ask_ns,
 * SP_NOT_READY. */
static sp_status place_sleep(sp_rt_batch_queue *queue, sp_thread_waiter *waiter,
                             const sp_run_terms *terms, uint64_t ask_ns)
{
    const uint64_t own_ns = terms->deadline_ns != 0 ? terms->deadline_ns : SP_NO_DEADLINE;
    const uint64_t until_ns = own_ns < ask_ns ? own_ns : ask_ns;
    while (sp_load_acquire(&waiter->is_resumed) == 0) {
        const bool has_lapsed = sp__run_terms_have_lapsed(terms);
        const bool must_leave =
            has_lapsed || (ask_ns != SP_NO_DEADLINE && sp_clock_now() >= ask_ns);
        if (must_leave && place_leave(queue, waiter)) {
            return has_lapsed ? sp__run_terms_check(terms) : SP_NOT_READY;
        }
        (void)sp_parker_park(waiter->parker, must_leave ? SP_NO_DEADLINE : until_ns);
    }
    sp_tsan_acquire(&waiter->is_resumed);
    return SP_OK;
}

/* Until there is a place, or the thread's check is to be asked: SP_NOT_READY. */
static sp_status place_wait_slice(sp_rt_batch_queue *queue, const sp_run_terms *terms,
                                  uint64_t arrived_ns, bool is_again)
{
    place_waiter waiter = {.arrived_ns = arrived_ns};
    sp_wait_entry *entry = &waiter.thread.entry;
    SP_TRY(sp__thread_waiter_init(&waiter.thread));
    const uint64_t ask_ns = sp__wait_check_time(sp__thread_record());
    sp_mutex_lock(&queue->lock);
    const bool has_place = place_reserve_locked(queue, is_again ? entry : NULL);
    if (!has_place && is_again) sp__wait_queue_return(&queue->room, entry, place_precedes);
    else if (!has_place) sp__wait_queue_push(&queue->room, entry);
    sp_mutex_unlock(&queue->lock);
    if (has_place) return SP_OK;
    sp_cancel_listener listener = {.parker = waiter.thread.parker};
    const bool listens = terms->token != NULL && sp__cancel_token_add(terms->token, &listener);
    const sp_status status = place_sleep(queue, &waiter.thread, terms, ask_ns);
    if (listens) (void)sp__cancel_token_remove(terms->token, &listener);
    return status;
}

/* While the check is asked the request is not among those that wait for a place: it may take long,
 * and may submit to the queue. */
static sp_status place_wait(sp_rt_batch_queue *queue, const sp_run_terms *terms)
{
    const uint64_t arrived_ns = sp_clock_now();
    sp_status status = place_wait_slice(queue, terms, arrived_ns, false);
    while (status == SP_NOT_READY) {
        SP_TRY(sp__wait_check_ask(sp__thread_record()));
        SP_TRY(sp__run_terms_check(terms));
        status = place_wait_slice(queue, terms, arrived_ns, true);
    }
    return status;
}

sp_status sp__batch_queue_reserve(sp_rt_batch_queue *queue, bool may_wait,
                                  const sp_run_terms *terms)
{
    sp_mutex_lock(&queue->lock);
    const bool has_place = place_reserve_locked(queue, NULL);
    const bool is_refused = !has_place && (queue->options.refuse_when_full || !may_wait);
    const uint32_t most = queue->options.max_waiting;
    if (is_refused) queue->refused++;
    sp_mutex_unlock(&queue->lock);
    if (SP_LIKELY(has_place)) return SP_OK;
    if (!is_refused) return place_wait(queue, terms);
    return sp__fail(SP_BUSY, "%u requests wait in the batch queue; wait for some first", most);
}

void sp__batch_queue_unreserve(sp_rt_batch_queue *queue)
{
    sp_resume_list ready = {0};
    sp_mutex_lock(&queue->lock);
    queue->reserved--;
    sp_mutex_unlock(&queue->lock);
    sp__batch_queue_settle(queue, &ready);
    sp__resume_list_run(&ready);
}
