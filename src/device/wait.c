/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits. A waiter first makes sure that the awaited stream moves (help or flush), then sleeps
 * on its own parker with a node in the timeline; it registers, then looks again.
 *
 * Waits of host functions, and those behind host accesses, enter the wait-for graph first. */
#include "device/wait.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "device/device.h"
#include "device/host_executor.h"
#include "device/thread_record.h"
#include "device/wait_graph.h"

/* Looks this often, about a microsecond, before it pays for a sleep and a wake-up. */
#define SPIN_TURNS 32

void sp__point_flush(sp_point point)
{
    if (sp__point_has_passed(point)) return;
    sp_queue *owner = point.timeline->owner;
    if (owner != NULL) owner->device->vtable->flush(owner);
}

bool sp__point_poll(sp_point point)
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
    /* A waiter that has slept knows by its node alone that the point has passed. */
    if (point.timeline != NULL) sp_tsan_acquire(&point.timeline->done);
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

/* ---- the calls ---- */

/* In a host function, or in a callback: that is on the executor too, but no point waits for it. */
static sp_status sleep_in_host_function(sp_point point, sp_thread_record *record,
                                        uint64_t deadline_ns)
{
    sp_graph_wait wait = {.inside = record->inside,
                          .points = &point,
                          .count = 1,
                          .has_deadline = deadline_ns != SP_NO_DEADLINE};
    const bool is_in_graph = record->inside != NULL;
    if (is_in_graph) SP_TRY(sp__wait_graph_enter(&wait));
    sp_status status = record->is_executor ? sp__host_executor_block() : SP_OK;
    if (status == SP_OK) {
        const bool is_done = sleep_for(point, record, deadline_ns);
        if (record->is_executor) sp__host_executor_unblock();
        if (!is_done) status = sp__fail(SP_TIMEOUT, "the point was not reached in time");
    }
    if (is_in_graph) sp__wait_graph_leave(&wait);
    return status;
}

static SP_NOINLINE sp_status wait_slow(sp_point point, uint64_t deadline_ns)
{
    if (deadline_ns != SP_NO_DEADLINE && sp_clock_now() >= deadline_ns) {
        if (sp__point_poll(point)) return SP_OK;
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

sp_status sp__point_wait_bare(sp_point point, uint64_t deadline_ns)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    const bool former = record->runs_own_functions;
    record->runs_own_functions = true;
    const sp_status status = sp__point_wait_passed(point, deadline_ns);
    record->runs_own_functions = former;
    return status;
}

sp_status sp__point_wait(sp_point point, uint64_t deadline_ns)
{
    SP_TRY(sp__point_wait_passed(point, deadline_ns));
    return sp__fault_report(sp__point_fault(point));
}

static sp_status wait_each(const sp_point *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) SP_TRY(sp__point_wait_passed(points[i], SP_NO_DEADLINE));
    return SP_OK;
}

sp_status sp__point_wait_for_access(const sp_point *points, uint32_t count)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* Nothing depends on a thread without an open access, but through its host functions, whose
     * waits enter the graph one by one. */
    if (sp_load_relaxed(&record->open_accesses) == 0) return wait_each(points, count);
    sp_graph_wait wait = {
        .holder = record->holder, .inside = record->inside, .points = points, .count = count};
    SP_TRY(sp__wait_graph_enter(&wait));
    const sp_status status = wait_each(points, count);
    sp__wait_graph_leave(&wait);
    return status;
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
        if (SP_PLANTED(any_keeps_nodes) && !is_fired(&waiters[i])) continue;
        if (sp__timeline_cancel(points[i].timeline, &waiters[i].base)) continue;
        is_any = true;
        while (!is_fired(&waiters[i])) sp_parker_park(&record->parker, SP_NO_DEADLINE);
    }
    return is_any;
}

/* For any of points that have not passed; in callbacks as in sleep_in_host_function. */
static sp_status sleep_for_first(const sp_point *points, uint32_t count, sp_thread_record *record,
                                 uint64_t deadline_ns)
{
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
    if (is_any) return SP_OK;
    return sp__fail(SP_TIMEOUT, "none of %u points was reached in time", count);
}

static sp_status wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                          sp_thread_record *record, uint64_t holder, uint32_t *which)
{
    uint32_t passed = first_passed(points, count);
    if (passed == count) {
        const bool is_in_graph = record->inside != NULL || holder != 0;
        sp_graph_wait wait = {.holder = holder,
                              .inside = record->inside,
                              .points = points,
                              .count = count,
                              .is_any = true,
                              .has_deadline = deadline_ns != SP_NO_DEADLINE};
        if (is_in_graph) SP_TRY(sp__wait_graph_enter(&wait));
        const sp_status status = sleep_for_first(points, count, record, deadline_ns);
        if (is_in_graph) sp__wait_graph_leave(&wait);
        SP_TRY(status);
        passed = first_passed(points, count);
    }
    *which = passed;
    sp__point_observed(points[passed]);
    return SP_OK;
}

sp_status sp__point_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                             uint32_t *which)
{
    sp_lock_check_none("a wait for any of several points");
    if (count == 0) return sp__fail(SP_INVALID, "a wait for any of no points would never end");
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    SP_TRY(wait_any(points, count, deadline_ns, record, 0, which));
    return sp__fault_report(sp__point_fault(points[*which]));
}

sp_status sp__point_wait_any_passed(const sp_point *points, uint32_t count)
{
    sp_lock_check_none("a wait for any of several points");
    SP_ASSERT(count > 0);
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* As in sp__point_wait_for_access: nothing depends on other threads. */
    const uint64_t holder = sp_load_relaxed(&record->open_accesses) > 0 ? record->holder : 0;
    uint32_t which;
    return wait_any(points, count, SP_NO_DEADLINE, record, holder, &which);
}
