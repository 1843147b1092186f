/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: the sorted list of waiters and the ring of failures, both behind one lock that a
 * signal takes only if a waiter is due. */
#include "device/timeline.h"

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/lock_check.h"
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
    SP_ASSERT(timeline->waiters == NULL);
    sp_failure *failures = timeline->failures;
    timeline->failures = NULL;
    sp_mutex_unlock(&timeline->lock);
    sp_free(failures);
    sp_mutex_deinit(&timeline->lock);
}

static void update_wanted_locked(sp_timeline *timeline) SP_REQUIRES(&timeline->lock)
{
    const uint64_t wanted = timeline->waiters != NULL ? timeline->waiters->value : UINT64_MAX;
    /* Sequentially consistent: the other half of the pair is in advance and register. */
    sp_store_seq_cst(&timeline->wanted, wanted);
}

/* Detaches every waiter up to `value` and fires them in order of their values. */
static SP_NOINLINE void fire_up_to(sp_timeline *timeline, uint64_t value)
{
    sp_mutex_lock(&timeline->lock);
    sp_waiter *due = timeline->waiters;
    sp_waiter **end = &timeline->waiters;
    while (*end != NULL && (*end)->value <= value) end = &(*end)->next;
    timeline->waiters = *end;
    if (end != &timeline->waiters) *end = NULL;
    const bool is_any_due = due != timeline->waiters;
    update_wanted_locked(timeline);
    sp_mutex_unlock(&timeline->lock);
    if (!is_any_due) return;
    while (due != NULL) {
        sp_waiter *next = due->next;
        sp_delay_point();
        sp_lock_check_none("a waiter's function");
        due->fire(due); /* the node may be gone when this returns */
        due = SP_PLANTED(touch_after_done) ? due->next : next;
        if (SP_PLANTED(signal_for_broadcast)) break;
    }
}

void sp__timeline_publish(sp_timeline *timeline, uint64_t value)
{
    SP_ASSERT(value > sp_load_relaxed(&timeline->done));
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
    if (SP_UNLIKELY(wanted <= value)) fire_up_to(timeline, value);
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
    sp_waiter **place = &timeline->waiters;
    while (*place != NULL && (*place)->value <= waiter->value) place = &(*place)->next;
    waiter->next = *place;
    *place = waiter;
    update_wanted_locked(timeline);
    /* The second look: an advance that did not see `wanted` is seen here. */
    bool is_registered = true;
    if (!SP_PLANTED(check_before_register) && sp_load_seq_cst(&timeline->done) >= waiter->value) {
        *place = waiter->next;
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
    sp_waiter **place = &timeline->waiters;
    while (*place != NULL && *place != waiter) place = &(*place)->next;
    const bool is_found = *place != NULL;
    if (is_found) {
        *place = waiter->next;
        update_wanted_locked(timeline);
    }
    sp_mutex_unlock(&timeline->lock);
    return is_found;
}

/* ---- failures ---- */

static sp_failure *failure_at_locked(sp_timeline *timeline, uint32_t index)
    SP_REQUIRES(&timeline->lock)
{
    return &timeline->failures[(timeline->failure_first + index) % timeline->failure_capacity];
}

static void forget_oldest_locked(sp_timeline *timeline) SP_REQUIRES(&timeline->lock)
{
    const sp_failure *oldest = failure_at_locked(timeline, 0);
    timeline->forgotten = oldest->value;
    if (!oldest->is_reported) timeline->unreported_count--;
    timeline->failure_first = (timeline->failure_first + 1) % timeline->failure_capacity;
    timeline->failure_count--;
}

/* Makes room for one more failure; without memory, or at the limit, the oldest is forgotten.
 * `retired` gets the memory to free once the lock is gone. */
static bool make_room_locked(sp_timeline *timeline, sp_failure **retired)
    SP_REQUIRES(&timeline->lock)
{
    SP_ASSERT(timeline->failure_count <= timeline->failure_capacity);
    if (timeline->failure_count < timeline->failure_capacity) return true;
    const uint32_t capacity = timeline->failure_capacity == 0 ? 16 : timeline->failure_capacity * 2;
    sp_failure *grown =
        capacity <= SP_TIMELINE_FAILURES ? sp_calloc(capacity, sizeof *grown) : NULL;
    if (grown == NULL) {
        if (timeline->failure_capacity == 0) return false;
        forget_oldest_locked(timeline);
        return true;
    }
    for (uint32_t i = 0; i < timeline->failure_count; i++) {
        grown[i] = *failure_at_locked(timeline, i);
    }
    *retired = timeline->failures;
    timeline->failures = grown;
    timeline->failure_capacity = capacity;
    timeline->failure_first = 0;
    return true;
}

void sp__timeline_fail(sp_timeline *timeline, uint64_t value, uint64_t thread, sp_fault fault)
{
    sp_failure *retired = NULL;
    sp_mutex_lock(&timeline->lock);
    if (make_room_locked(timeline, &retired)) {
        *failure_at_locked(timeline, timeline->failure_count) =
            (sp_failure){.value = value, .thread = thread, .fault = fault};
        timeline->failure_count++;
        timeline->unreported_count++;
    } else {
        timeline->forgotten = value;
    }
    sp_mutex_unlock(&timeline->lock);
    sp_free(retired);
    /* Published by the `done` of this value, which comes later. */
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
    uint64_t known = 0;
    for (uint32_t i = 0; i < timeline->failure_count; i++) {
        const uint64_t failed = failure_at_locked(timeline, i)->value;
        if (failed > done && failed <= value) known++;
    }
    sp_mutex_unlock(&timeline->lock);
    /* Published by the `done` of these values, which comes later. */
    sp_fetch_add_relaxed(&timeline->failure_total, value - done - known);
}

static SP_NOINLINE sp_fault look_for_fault(sp_timeline *timeline, uint64_t value)
{
    sp_fault fault = SP_NO_FAULT;
    sp_mutex_lock(&timeline->lock);
    const bool is_forgotten = value > 0 && value <= timeline->forgotten; /* nothing is point 0 */
    uint32_t low = 0;
    uint32_t high = timeline->failure_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (failure_at_locked(timeline, middle)->value < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < timeline->failure_count) {
        const sp_failure *found = failure_at_locked(timeline, low);
        if (found->value == value) fault = found->fault;
    }
    if (fault == SP_NO_FAULT && value > timeline->lost_after) fault = timeline->loss;
    sp_mutex_unlock(&timeline->lock);
    if (fault != SP_NO_FAULT || !is_forgotten) return fault;
    /* Better an error too many than a lost one. Whoever reports it makes it his last error. */
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp__fail(SP_FAILED,
             "the outcome of point %llu is no longer known: more than %d later commands "
             "failed on its stream; wait for points sooner",
             (unsigned long long)value, SP_TIMELINE_FAILURES);
    fault = sp__fault_new(SP_FAILED);
    sp__error_put_back(&scope);
    return fault;
}

sp_fault sp__point_fault(sp_point point)
{
    if (point.timeline == NULL || sp_load_relaxed(&point.timeline->failure_total) == 0) {
        return SP_NO_FAULT;
    }
    return look_for_fault(point.timeline, point.value);
}

sp_fault sp__timeline_take_failures(sp_timeline *timeline, uint64_t value, uint64_t thread,
                                    sp_fault sought, bool *is_among)
{
    bool is_found = false;
    if (is_among != NULL) *is_among = false;
    if (sp_load_relaxed(&timeline->failure_total) == 0) return SP_NO_FAULT;
    sp_fault fault = SP_NO_FAULT;
    sp_mutex_lock(&timeline->lock);
    for (uint32_t i = 0; i < timeline->failure_count && timeline->unreported_count > 0; i++) {
        sp_failure *failure = failure_at_locked(timeline, i);
        if (failure->value > value) break;
        if (failure->thread != thread || failure->is_reported) continue;
        failure->is_reported = true;
        timeline->unreported_count--;
        if (fault == SP_NO_FAULT) fault = failure->fault;
        if (failure->fault == sought) is_found = true;
    }
    sp_mutex_unlock(&timeline->lock);
    if (is_among != NULL) *is_among = is_found;
    return fault;
}
