/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits. A waiter first makes sure that the awaited stream moves (help or flush), then sleeps
 * on its own parker with a node in the timeline; it registers, then looks again.
 *
 * Waits inside host functions could close a circle: function F of point P waits for Q, and Q comes
 * after P, directly or through other streams' waits and other waiting functions. Such a wait is
 * refused with SP_DEADLOCK: under one lock the frame says what it waits for, then the graph of
 * waits is searched for it. */
#include "device/wait.h"

#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/thread.h"
#include "device/device.h"
#include "device/host_executor.h"
#include "device/thread_record.h"

/* Looks this often, about a microsecond, before it pays for a sleep and a wake-up. */
#define SPIN_TURNS 32

void sp__point_flush(sp_point point)
{
    if (sp__point_has_passed(point)) return;
    sp_queue *owner = point.timeline->owner;
    if (owner != NULL) owner->device->vtable->flush(owner);
}

bool sp__point_look(sp_point point)
{
    if (!sp__point_has_passed(point)) {
        sp__point_flush(point);
        if (!sp__point_has_passed(point)) return false;
    }
    sp__point_observed(point);
    return true;
}

/* Set before and after all waits; relaxed, since it publishes nothing. */
static SP_ATOMIC(sp_point_observer) observer; /* process-wide: waits cross devices */

void sp__point_set_observer(sp_point_observer fn)
{
    sp_store_relaxed(&observer, fn);
}

void sp__point_observed(sp_point point)
{
    const sp_point_observer fn = sp_load_relaxed(&observer);
    if (SP_UNLIKELY(fn != NULL)) fn(point);
}

/* ---- sleeping ---- */

typedef struct host_waiter {
    sp_waiter base;
    sp_parker *parker;
    /* 1 once fired: the last access to the node. Release pairs with the acquire in the waiter. */
    sp_atomic_u32 is_fired;
} host_waiter;

static void fire_host(sp_waiter *base)
{
    host_waiter *waiter = SP_CONTAINER_OF(base, host_waiter, base);
    sp_parker *parker = waiter->parker; /* type-stable: outlives the node and the thread */
    sp_store_release(&waiter->is_fired, 1);
    sp_parker_unpark(parker);
}

static bool is_fired(const host_waiter *waiter)
{
    return sp_load_acquire(&waiter->is_fired) != 0;
}

/* Sleeps until the point has passed; false past the deadline. */
static bool sleep_for(sp_point point, sp_thread_record *record, uint64_t deadline_ns)
{
    host_waiter waiter = {.base = {.value = point.value, .fire = fire_host},
                          .parker = &record->parker};
    if (!sp__timeline_register(point.timeline, &waiter.base)) return true;
    sp_delay_point();
    while (!is_fired(&waiter)) {
        if (sp_parker_park(&record->parker, deadline_ns)) continue;
        if (SP_PLANTED(timeout_keeps_node)) return false;
        if (sp__timeline_cancel(point.timeline, &waiter.base)) return false;
        deadline_ns = SP_NO_DEADLINE; /* being fired: it is ours again in a moment */
    }
    return true;
}

static bool spin_for(sp_point point)
{
    for (int i = 0; i < SP_SPIN_TURNS(SPIN_TURNS); i++) {
        if (sp__point_has_passed(point)) return true;
        sp_spin_hint();
    }
    return sp__point_has_passed(point);
}

/* ---- waits inside host functions ---- */

static struct {
    sp_mutex lock;
    sp_host_frame *waiting SP_GUARDED_BY(lock); /* frames whose function waits */
    uint64_t searches SP_GUARDED_BY(lock);
} circle = {.lock = SP_MUTEX_INIT(SP_LOCK_CIRCLE)}; /* process-wide: waits cross devices */

/* One search. What it knows of a queue stands in the queue, so that it needs no memory and has no
 * bound that could be met: each queue is once in the list at most, its value only rises, and each
 * wait is followed once. */
typedef struct search {
    uint64_t number;
    sp_queue *first; /* queues whose waits are still to be followed */
} search;

static void search_add(void *ctx, sp_point point)
{
    search *self = ctx;
    if (sp__point_has_passed(point)) return;
    sp_queue *queue = point.timeline->owner;
    if (queue == NULL) return; /* a host access: its thread ends it when it likes */
    if (queue->search.number != self->number) {
        queue->search.number = self->number;
        queue->search.value = 0;
        queue->search.expanded = 0;
        queue->search.next = queue;
    }
    if (queue->search.value >= point.value) return;
    queue->search.value = point.value;
    if (queue->search.next != queue) return;
    queue->search.next = self->first;
    self->first = queue;
}

/* Adds what the first queue of the list depends on, as far as that was not done before. */
static void search_expand_locked(search *self) SP_REQUIRES(&circle.lock)
{
    sp_queue *queue = self->first;
    self->first = queue->search.next;
    queue->search.next = queue;
    const uint64_t after = queue->search.expanded;
    const uint64_t value = queue->search.value;
    queue->search.expanded = value;
    queue->device->vtable->each_wait(queue, after, value, search_add, self);
    for (sp_host_frame *frame = circle.waiting; frame != NULL; frame = frame->next_waiting) {
        if (frame->point.timeline == &queue->timeline && frame->point.value > after &&
            frame->point.value <= value) {
            search_add(self, frame->waiting_for);
        }
    }
}

static bool depends_on_frames(const search *self, const sp_host_frame *frames)
{
    for (const sp_host_frame *frame = frames; frame != NULL; frame = frame->outer) {
        const sp_queue *queue = frame->point.timeline->owner;
        if (queue->search.number == self->number && queue->search.value >= frame->point.value) {
            return true;
        }
    }
    return false;
}

/* Enters the frame as waiting, unless the point depends on it or on a frame around it. */
static sp_status frame_enter_wait(sp_host_frame *frame, sp_point point)
{
    sp_mutex_lock(&circle.lock);
    search self = {.number = ++circle.searches};
    search_add(&self, point);
    while (self.first != NULL) search_expand_locked(&self);
    const bool is_circle = depends_on_frames(&self, frame);
    if (!is_circle) {
        frame->waiting_for = point;
        frame->next_waiting = circle.waiting;
        circle.waiting = frame;
    }
    sp_mutex_unlock(&circle.lock);
    if (!is_circle) return SP_OK;
    return sp__fail(SP_DEADLOCK, "a host function waits for a point that comes after itself: it "
                                 "would never return; wait outside, or let the stream wait");
}

static void frame_leave_wait(sp_host_frame *frame)
{
    sp_mutex_lock(&circle.lock);
    sp_host_frame **place = &circle.waiting;
    while (*place != frame) place = &(*place)->next_waiting;
    *place = frame->next_waiting;
    sp_mutex_unlock(&circle.lock);
}

/* ---- the calls ---- */

/* In a host function, or in a callback: that is on the executor too, but no point waits for it. */
static sp_status sleep_in_host_function(sp_point point, sp_thread_record *record,
                                        uint64_t deadline_ns)
{
    sp_host_frame *frame = record->frames;
    if (frame != NULL) SP_TRY(frame_enter_wait(frame, point));
    sp_status status = record->is_executor ? sp__host_executor_block() : SP_OK;
    if (status == SP_OK) {
        const bool is_done = sleep_for(point, record, deadline_ns);
        if (record->is_executor) sp__host_executor_unblock();
        if (!is_done) status = sp__fail(SP_TIMEOUT, "the point was not reached in time");
    }
    if (frame != NULL) frame_leave_wait(frame);
    return status;
}

static SP_NOINLINE sp_status wait_slow(sp_point point, uint64_t deadline_ns)
{
    if (deadline_ns != SP_NO_DEADLINE && sp_clock_now() >= deadline_ns) {
        if (sp__point_look(point)) return SP_OK;
        return sp__fail(SP_TIMEOUT, "the point was not reached in time");
    }
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    sp_queue *owner = point.timeline->owner;
    if (sp__thread_is_inside_callback(record)) {
        sp__point_flush(point);
        return sleep_in_host_function(point, record, deadline_ns);
    }
    if (deadline_ns != SP_NO_DEADLINE) {
        sp__point_flush(point); /* no help: a command may take longer than the caller has */
    } else if (owner != NULL) {
        owner->device->vtable->help(owner, point.value);
    }
    if (spin_for(point) || sleep_for(point, record, deadline_ns)) return SP_OK;
    return sp__fail(SP_TIMEOUT, "the point was not reached in time");
}

sp_status sp__point_wait_passed(sp_point point, uint64_t deadline_ns)
{
    sp_lock_check_none("a wait for a point");
    if (!sp__point_has_passed(point)) SP_TRY(wait_slow(point, deadline_ns));
    sp__point_observed(point);
    return SP_OK;
}

sp_status sp__point_wait(sp_point point, uint64_t deadline_ns)
{
    SP_TRY(sp__point_wait_passed(point, deadline_ns));
    return sp__fault_report(sp__point_fault(point));
}

sp_status sp__point_wait_all(const sp_point *points, uint32_t count, uint64_t deadline_ns)
{
    for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
    for (uint32_t i = 0; i < count; i++) SP_TRY(sp__point_wait_passed(points[i], deadline_ns));
    for (uint32_t i = 0; i < count; i++) SP_TRY(sp__fault_report(sp__point_fault(points[i])));
    return SP_OK;
}

static uint32_t first_passed(const sp_point *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sp__point_has_passed(points[i])) return i;
    }
    return count;
}

/* Registers a node with each point until one has passed, sleeps, and takes the nodes back. */
static bool sleep_for_any(const sp_point *points, host_waiter *waiters, uint32_t count,
                          sp_thread_record *record, uint64_t deadline_ns)
{
    uint32_t registered = 0;
    bool is_any = false;
    while (registered < count && !is_any) {
        host_waiter *waiter = &waiters[registered];
        *waiter = (host_waiter){.base = {.value = points[registered].value, .fire = fire_host},
                                .parker = &record->parker};
        is_any = !sp__timeline_register(points[registered].timeline, &waiter->base);
        if (!is_any) registered++;
    }
    while (!is_any && sp_parker_park(&record->parker, deadline_ns)) {
        for (uint32_t i = 0; i < registered; i++) is_any = is_any || is_fired(&waiters[i]);
    }
    for (uint32_t i = 0; i < registered; i++) {
        if (sp__timeline_cancel(points[i].timeline, &waiters[i].base)) continue;
        is_any = true;
        while (!is_fired(&waiters[i])) sp_parker_park(&record->parker, SP_NO_DEADLINE);
    }
    return is_any;
}

sp_status sp__point_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                             uint32_t *which)
{
    sp_lock_check_none("a wait for any of several points");
    if (count == 0) return sp__fail(SP_INVALID, "a wait for any of no points would never end");
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    if (record->frames != NULL) {
        return sp__fail(SP_DEADLOCK, "a host function may not wait for any of several points");
    }
    uint32_t passed = first_passed(points, count);
    if (passed == count) {
        host_waiter *waiters = sp_malloc(count * sizeof *waiters);
        if (waiters == NULL)
            return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u points", count);
        for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
        const sp_status status = record->is_executor ? sp__host_executor_block() : SP_OK;
        const bool is_any =
            status == SP_OK && sleep_for_any(points, waiters, count, record, deadline_ns);
        if (status == SP_OK && record->is_executor) sp__host_executor_unblock();
        sp_free(waiters);
        SP_TRY(status);
        if (!is_any) return sp__fail(SP_TIMEOUT, "none of %u points was reached in time", count);
        passed = first_passed(points, count);
    }
    *which = passed;
    sp__point_observed(points[passed]);
    return sp__fault_report(sp__point_fault(points[passed]));
}
