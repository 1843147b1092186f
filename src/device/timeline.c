/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: the heap of waiters and the log of failures, both guarded by one lock, which an
 * advance takes only if a waiter is due. */
#include "device/timeline.h"

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/tsan.h"
#include "device/device.h"

void sp__timeline_init(sp_timeline *timeline, sp_queue *owner)
{
    *timeline = (sp_timeline){.owner = owner, .lost_after = UINT64_MAX};
    sp_store_relaxed(&timeline->wanted, UINT64_MAX);
    sp_mutex_init(&timeline->lock, SP_LOCK_TIMELINE);
}

void sp__timeline_deinit(sp_timeline *timeline)
{
    sp_mutex_lock(&timeline->lock);
    SP_ASSERT(timeline->waiters.first == NULL);
    void *failures = sp__failure_log_clear(&timeline->failures);
    sp_mutex_unlock(&timeline->lock);
    sp_free(failures);
    sp_mutex_deinit(&timeline->lock);
}

static void update_wanted_locked(sp_timeline *timeline) SP_REQUIRES(&timeline->lock)
{
    const sp_waiter *first = timeline->waiters.first;
    /* Sequentially consistent: pairs with advance and register. */
    sp_store_seq_cst(&timeline->wanted, first != NULL ? first->value : UINT64_MAX);
}

/* Detaches every waiter up to `value` and fires them in order of their values. */
static SP_NOINLINE void waiters_fire_up_to(sp_timeline *timeline, uint64_t value)
{
    sp_mutex_lock(&timeline->lock);
    sp_waiter *due = sp__waiter_heap_pop(&timeline->waiters, value);
    update_wanted_locked(timeline);
    sp_mutex_unlock(&timeline->lock);
    while (due != NULL) {
        sp_waiter *next = due->next;
        sp_delay_point();
        sp_lock_check_none("a waiter's function");
        due->fire(due); /* the node may be freed when this returns */
        due = SP_PLANTED(touch_after_done) ? due->next : next;
        if (SP_PLANTED(signal_for_broadcast)) break;
    }
}

void sp__timeline_publish(sp_timeline *timeline, uint64_t value)
{
    SP_ASSERT(value > sp_load_relaxed(&timeline->done));
    if (!SP_PLANTED(untold_done)) sp_tsan_release(&timeline->done);
    sp_delay_point();
    if (SP_PLANTED(relaxed_done)) {
        sp_store_relaxed(&timeline->done, value);
    } else if (SP_PLANTED(acq_rel_for_seq_cst)) {
        sp_store_release(&timeline->done, value);
    } else {
        sp_store_seq_cst(&timeline->done, value);
    }
}

void sp__timeline_fire(sp_timeline *timeline, uint64_t value)
{
    const uint64_t wanted = SP_PLANTED(acq_rel_for_seq_cst) ? sp_load_acquire(&timeline->wanted)
                                                            : sp_load_seq_cst(&timeline->wanted);
    if (SP_UNLIKELY(wanted <= value)) waiters_fire_up_to(timeline, value);
}

void sp__timeline_advance(sp_timeline *timeline, uint64_t value)
{
    sp__timeline_publish(timeline, value);
    sp__timeline_fire(timeline, value);
}

bool sp__timeline_register(sp_timeline *timeline, sp_waiter *waiter)
{
    if (SP_PLANTED(check_before_register) && sp_load_seq_cst(&timeline->done) >= waiter->value) {
        return false;
    }
    sp_mutex_lock(&timeline->lock);
    sp__waiter_heap_add(&timeline->waiters, waiter);
    update_wanted_locked(timeline);
    /* Second check: an advance that did not see `wanted` is seen here. */
    bool is_registered = true;
    if (!SP_PLANTED(check_before_register) && sp_load_seq_cst(&timeline->done) >= waiter->value) {
        sp_tsan_acquire(&timeline->done);
        sp__waiter_heap_remove(&timeline->waiters, waiter);
        update_wanted_locked(timeline);
        is_registered = false;
    }
    sp_mutex_unlock(&timeline->lock);
    if (is_registered && timeline->owner != NULL) {
        const sp_device_vtable *vtable = timeline->owner->device->vtable;
        if (vtable->watch != NULL) vtable->watch(timeline->owner);
    }
    return is_registered;
}

bool sp__timeline_cancel(sp_timeline *timeline, sp_waiter *waiter)
{
    sp_mutex_lock(&timeline->lock);
    const bool is_found = sp__waiter_heap_remove(&timeline->waiters, waiter);
    if (is_found) update_wanted_locked(timeline);
    sp_mutex_unlock(&timeline->lock);
    return is_found;
}

/* ---- failures ---- */

void sp__timeline_fail(sp_timeline *timeline, uint64_t value, uint64_t thread, sp_fault fault)
{
    void *retired;
    sp_mutex_lock(&timeline->lock);
    sp__failure_log_add(&timeline->failures, value, thread, fault, &retired);
    sp_mutex_unlock(&timeline->lock);
    sp_free(retired);
    /* Published by the later write of `done` for this value. */
    if (!SP_PLANTED(uncounted_failure)) {
        sp_fetch_add_relaxed(&timeline->failure_total, (uint64_t)1);
    }
}

void sp__timeline_lose(sp_timeline *timeline, uint64_t value, sp_fault fault)
{
    const uint64_t done = sp_load_relaxed(&timeline->done);
    sp_mutex_lock(&timeline->lock);
    if (timeline->lost_after == UINT64_MAX) {
        timeline->lost_after = done;
        timeline->loss = fault;
    }
    const uint64_t known = sp__failure_log_count(&timeline->failures, done, value);
    sp_mutex_unlock(&timeline->lock);
    /* Published by the later writes of `done` for these values. */
    sp_fetch_add_relaxed(&timeline->failure_total, value - done - known);
}

static SP_NOINLINE sp_fault fault_find(sp_timeline *timeline, uint64_t value)
{
    sp_fault fault = SP_NO_FAULT;
    sp_mutex_lock(&timeline->lock);
    /* Point 0 is before all submissions. */
    const bool is_forgotten = value > 0 && value <= timeline->failures.forgotten;
    fault = sp__failure_log_find(&timeline->failures, value);
    if (fault == SP_NO_FAULT && value > timeline->lost_after) fault = timeline->loss;
    sp_mutex_unlock(&timeline->lock);
    if (fault != SP_NO_FAULT || !is_forgotten) return fault;
    /* A superfluous error is preferred to a lost one. The fault's reporter sets the last error. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__fail(SP_FAILED,
             "the result of point %llu is no longer known: more than %d later commands "
             "failed on its stream; wait for points sooner",
             (unsigned long long)value, SP_TIMELINE_FAILURES);
    fault = sp__fault_create(SP_FAILED);
    sp__error_put_back(&scope);
    return fault;
}

sp_fault sp__point_fault(sp_point point)
{
    if (point.timeline == NULL || sp_load_relaxed(&point.timeline->failure_total) == 0) {
        return SP_NO_FAULT;
    }
    return fault_find(point.timeline, point.value);
}

sp_fault sp__timeline_take_failures(sp_timeline *timeline, uint64_t value, uint64_t thread)
{
    if (sp_load_relaxed(&timeline->failure_total) == 0) return SP_NO_FAULT;
    sp_fault first = SP_NO_FAULT;
    sp_mutex_lock(&timeline->lock);
    for (;;) {
        const sp_fault fault = sp__failure_log_take(&timeline->failures, value, thread);
        if (fault == SP_NO_FAULT) break;
        if (first == SP_NO_FAULT) first = fault;
    }
    sp_mutex_unlock(&timeline->lock);
    return first;
}

bool sp__timeline_take_failures_between(sp_timeline *timeline, uint64_t after, uint64_t value,
                                        uint64_t thread, bool *is_first)
{
    *is_first = true;
    if (sp_load_relaxed(&timeline->failure_total) == 0) return false;
    sp_mutex_lock(&timeline->lock);
    const bool is_any =
        sp__failure_log_take_between(&timeline->failures, after, value, thread, is_first);
    sp_mutex_unlock(&timeline->lock);
    return is_any;
}

sp_fault sp__timeline_loss(sp_timeline *timeline, uint64_t value)
{
    if (sp_load_relaxed(&timeline->failure_total) == 0) return SP_NO_FAULT;
    sp_mutex_lock(&timeline->lock);
    const sp_fault loss = value > timeline->lost_after ? timeline->loss : SP_NO_FAULT;
    sp_mutex_unlock(&timeline->lock);
    return loss;
}

void sp__timeline_forget_failures(sp_timeline *timeline)
{
    sp_mutex_lock(&timeline->lock);
    void *failures = sp__failure_log_clear(&timeline->failures);
    sp_mutex_unlock(&timeline->lock);
    sp_free(failures);
}

uint32_t sp__timeline_unreported(sp_timeline *timeline, sp_fault *first)
{
    *first = SP_NO_FAULT;
    if (sp_load_relaxed(&timeline->failure_total) == 0) return 0;
    sp_mutex_lock(&timeline->lock);
    const uint32_t count = sp__failure_log_unreported(&timeline->failures, first);
    sp_mutex_unlock(&timeline->lock);
    return count;
}
