/* SPDX-License-Identifier: Apache-2.0 */
/* Host waits. The waiting thread first helps or flushes the awaited stream, then sleeps on its own
 * parker with a node in the timeline; it registers the node, then checks the point again.
 *
 * Waits of host functions, and waits for host accesses, enter the wait-for graph first. */
#include "device/wait.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/heap.h"
#include "base/lock_check.h"
#include "base/thread.h"
#include "base/tsan.h"
#include "device/device.h"
#include "device/host_executor.h"
#include "device/thread_record.h"
#include "device/wait_graph.h"

/* Polls before a sleep: about a microsecond, less than the cost of a sleep and a wake-up. */
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

/* Not set while threads wait; relaxed, since it publishes nothing. */
static SP_ATOMIC(sp_point_observer) observer; /* process-wide: waits cross devices */

void sp__point_set_observer(sp_point_observer fn)
{
    sp_store_relaxed(&observer, fn);
}

void sp__point_observed(sp_point point)
{
    /* For a waiter that slept: it has read only its node, not `done`. */
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

static void host_waiter_fire(sp_waiter *base)
{
    host_waiter *waiter = SP_CONTAINER_OF(base, host_waiter, base);
    sp_parker *parker = waiter->parker; /* type-stable: outlives the node and the thread */
    sp_store_release(&waiter->is_fired, 1);
    sp_parker_unpark(parker);
}

static bool host_waiter_is_fired(const host_waiter *waiter)
{
    return sp_load_acquire(&waiter->is_fired) != 0;
}

/* Sleeps until the point has passed; false past the deadline. */
static bool point_sleep(sp_point point, sp_thread_record *record, uint64_t deadline_ns)
{
    host_waiter waiter = {.base = {.value = point.value, .fire = host_waiter_fire},
                          .parker = &record->parker};
    if (!sp__timeline_register(point.timeline, &waiter.base)) return true;
    sp_delay_point();
    while (!host_waiter_is_fired(&waiter)) {
        if (sp_parker_park(&record->parker, deadline_ns)) continue;
        if (SP_PLANTED(timeout_keeps_node)) return false;
        if (sp__timeline_cancel(point.timeline, &waiter.base)) return false;
        deadline_ns = SP_NO_DEADLINE; /* being fired: wait for the end of that */
    }
    return true;
}

static bool point_spin(sp_point point)
{
    for (int i = 0; i < SP_SPIN_TURNS(SPIN_TURNS); i++) {
        if (sp__point_has_passed(point)) return true;
        sp_spin_hint();
    }
    return sp__point_has_passed(point);
}

/* ---- the calls ---- */

/* In a host function, or in a callback, which is on the executor too but which no point depends on.
 */
static sp_status point_sleep_in_host_function(sp_point point, sp_thread_record *record,
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
        const bool is_done = point_sleep(point, record, deadline_ns);
        if (record->is_executor) sp__host_executor_unblock();
        if (!is_done) status = sp__fail(SP_TIMEOUT, "the point was not reached in time");
    }
    if (is_in_graph) sp__wait_graph_leave(&wait);
    return status;
}

void sp__point_wait_in_host_function(sp_point point)
{
    sp_lock_check_none("a wait for a point");
    sp__point_flush(point);
    if (!sp__point_has_passed(point)) {
        sp_thread_record *record = sp__thread_record();
        sp_error_scope scope;
        sp__error_set_aside(&scope);
        const bool is_blocked = record->is_executor && sp__host_executor_block() == SP_OK;
        sp__error_put_back(&scope);
        (void)point_sleep(point, record, SP_NO_DEADLINE);
        if (is_blocked) sp__host_executor_unblock();
    }
    sp__point_observed(point);
}

static SP_NOINLINE sp_status point_wait_slow(sp_point point, uint64_t deadline_ns)
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
        return point_sleep_in_host_function(point, record, deadline_ns);
    }
    if (deadline_ns != SP_NO_DEADLINE) {
        sp__point_flush(point); /* no help: a command may run past the deadline */
    } else if (owner != NULL) {
        owner->device->vtable->help(owner, point.value);
    }
    if (point_spin(point) || point_sleep(point, record, deadline_ns)) return SP_OK;
    return sp__fail(SP_TIMEOUT, "the point was not reached in time");
}

sp_status sp__point_wait_passed(sp_point point, uint64_t deadline_ns)
{
    sp_lock_check_none("a wait for a point");
    if (!sp__point_has_passed(point)) SP_TRY(point_wait_slow(point, deadline_ns));
    sp__point_observed(point);
    return SP_OK;
}

/* What waits around the check began may block the point, and no other thread can end it. */
static sp_status point_wait_in_check(sp_point point, sp_thread_record *record, uint64_t deadline_ns)
{
    if (sp__point_has_passed(point)) return sp__point_wait_passed(point, deadline_ns);
    sp_graph_wait wait = {.holder = record->holder,
                          .points = &point,
                          .count = 1,
                          .has_deadline = deadline_ns != SP_NO_DEADLINE};
    SP_TRY(sp__wait_graph_enter(&wait));
    const sp_status status = sp__point_wait_passed(point, deadline_ns);
    sp__wait_graph_leave(&wait);
    return status;
}

sp_status sp__point_wait_bare(sp_point point, uint64_t deadline_ns)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    if (SP_UNLIKELY(record->check_depth > 0)) {
        return point_wait_in_check(point, record, deadline_ns);
    }
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

/* ---- waits with a check ---- */

bool sp__wait_has_check(const sp_thread_record *record)
{
    return record->check != NULL && !sp__thread_is_inside_callback(record);
}

uint64_t sp__wait_check_time(const sp_thread_record *record)
{
    return SP_UNLIKELY(sp__wait_has_check(record)) ? sp_clock_deadline(SP_CHECK_INTERVAL_NS)
                                                   : SP_NO_DEADLINE;
}

/* Asks the program whether the wait goes on. What the check does may wait too: for that the access
 * is one that the thread has open, and there is no check. One that is set meanwhile is for then. */
sp_status sp__wait_check_ask(sp_thread_record *record)
{
    const sp_wait_check check = record->check;
    void *const ctx = record->check_ctx;
    record->check = NULL;
    sp_fetch_add_relaxed(&record->open_accesses, 1);
    record->check_depth++;
    const sp_status status = check(ctx);
    record->check_depth--;
    sp_fetch_sub_relaxed(&record->open_accesses, 1);
    record->check = check;
    record->check_ctx = ctx;
    if (SP_UNLIKELY(sp_fork_is_child())) return sp__fail(SP_FORKED, "a forked child waits no more");
    if (status == SP_OK) return SP_OK;
    return sp__fail(status, "the wait was ended by the thread's check");
}

/* Helps and sleeps until the point has passed; false past `until_ns`. */
static bool point_wait_slice(sp_point point, sp_thread_record *record, uint64_t until_ns)
{
    sp_queue *owner = point.timeline->owner;
    record->help_until_ns = until_ns;
    if (owner != NULL) owner->device->vtable->help(owner, point.value);
    record->help_until_ns = 0;
    return point_spin(point) || point_sleep(point, record, until_ns);
}

static sp_status point_wait_checked(sp_point point, sp_thread_record *record)
{
    if (SP_LIKELY(!sp__wait_has_check(record))) return sp__point_wait_passed(point, SP_NO_DEADLINE);
    sp_lock_check_none("a wait for a point");
    while (!sp__point_has_passed(point)) {
        if (point_wait_slice(point, record, sp_clock_deadline(SP_CHECK_INTERVAL_NS))) break;
        SP_TRY(sp__wait_check_ask(record));
    }
    sp__point_observed(point);
    return SP_OK;
}

static sp_status points_wait_each(const sp_point *points, uint32_t count, sp_thread_record *record)
{
    for (uint32_t i = 0; i < count; i++) SP_TRY(point_wait_checked(points[i], record));
    return SP_OK;
}

sp_status sp__point_wait_for_access(const sp_point *points, uint32_t count)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* Points depend on a thread only through its open accesses and its host functions; waits of the
     * latter enter the graph one by one. */
    if (sp_load_relaxed(&record->open_accesses) == 0) {
        return points_wait_each(points, count, record);
    }
    sp_graph_wait wait = {
        .holder = record->holder, .inside = record->inside, .points = points, .count = count};
    SP_TRY(sp__wait_graph_enter(&wait));
    const sp_status status = points_wait_each(points, count, record);
    sp__wait_graph_leave(&wait);
    return status;
}

bool sp__thread_has_check(void)
{
    const sp_thread_record *record = sp__thread_record();
    return record != NULL && (record->check_depth > 0 || sp__wait_has_check(record));
}

sp_status sp__point_wait_if_checked(sp_point point)
{
    if (sp__point_has_passed(point)) return SP_OK;
    const sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    if (record->check_depth > 0) return sp__point_wait_for_access(&point, 1);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = sp__point_wait_for_access(&point, 1);
    return sp__error_settle(&scope, status == SP_DEADLOCK ? SP_OK : status);
}

/* Inside a check as in sp__point_wait_bare. */
static sp_status point_wait_of_several(sp_point point, uint64_t deadline_ns)
{
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    return record->check_depth > 0 ? point_wait_in_check(point, record, deadline_ns)
                                   : sp__point_wait_passed(point, deadline_ns);
}

sp_status sp__point_wait_all(const sp_point *points, uint32_t count, uint64_t deadline_ns)
{
    for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
    for (uint32_t i = 0; i < count; i++) SP_TRY(point_wait_of_several(points[i], deadline_ns));
    for (uint32_t i = 0; i < count; i++) SP_TRY(sp__fault_report(sp__point_fault(points[i])));
    return SP_OK;
}

static uint32_t points_first_passed(const sp_point *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (sp__point_has_passed(points[i])) return i;
    }
    return count;
}

/* Registers a node with each point until one has passed, sleeps, and removes the nodes. */
static bool points_sleep_any(const sp_point *points, host_waiter *waiters, uint32_t count,
                             sp_thread_record *record, uint64_t deadline_ns)
{
    uint32_t registered = 0;
    bool is_any = false;
    while (registered < count && !is_any) {
        host_waiter *waiter = &waiters[registered];
        *waiter =
            (host_waiter){.base = {.value = points[registered].value, .fire = host_waiter_fire},
                          .parker = &record->parker};
        is_any = !sp__timeline_register(points[registered].timeline, &waiter->base);
        if (!is_any) registered++;
    }
    while (!is_any && sp_parker_park(&record->parker, deadline_ns)) {
        for (uint32_t i = 0; i < registered; i++)
            is_any = is_any || host_waiter_is_fired(&waiters[i]);
    }
    for (uint32_t i = 0; i < registered; i++) {
        if (SP_PLANTED(any_keeps_nodes) && !host_waiter_is_fired(&waiters[i])) continue;
        if (sp__timeline_cancel(points[i].timeline, &waiters[i].base)) continue;
        is_any = true;
        while (!host_waiter_is_fired(&waiters[i])) sp_parker_park(&record->parker, SP_NO_DEADLINE);
    }
    return is_any;
}

/* Waits for any of the points; in callbacks like point_sleep_in_host_function. */
static sp_status points_sleep_first(const sp_point *points, uint32_t count,
                                    sp_thread_record *record, uint64_t deadline_ns)
{
    host_waiter *waiters = sp_malloc(count * sizeof *waiters);
    if (waiters == NULL)
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to wait for %u points", count);
    for (uint32_t i = 0; i < count; i++) sp__point_flush(points[i]);
    const sp_status status = record->is_executor ? sp__host_executor_block() : SP_OK;
    const bool is_any =
        status == SP_OK && points_sleep_any(points, waiters, count, record, deadline_ns);
    if (status == SP_OK && record->is_executor) sp__host_executor_unblock();
    sp_free(waiters);
    SP_TRY(status);
    if (is_any) return SP_OK;
    return sp__fail(SP_TIMEOUT, "none of %u points was reached in time", count);
}

/* The same in slices, between which the thread's check is asked. *is_ended: it has ended the wait.
 */
static sp_status points_sleep_first_checked(const sp_point *points, uint32_t count,
                                            sp_thread_record *record, bool *is_ended)
{
    for (;;) {
        sp_error_scope scope;
        sp__error_set_aside(&scope);
        const uint64_t until_ns = sp_clock_deadline(SP_CHECK_INTERVAL_NS);
        const sp_status status = points_sleep_first(points, count, record, until_ns);
        if (status != SP_TIMEOUT) return sp__error_settle(&scope, status);
        sp__error_put_back(&scope);
        const sp_status answer = sp__wait_check_ask(record);
        *is_ended = answer != SP_OK;
        if (*is_ended || points_first_passed(points, count) < count) return answer;
    }
}

/* `is_ended` NULL: the thread's check is not asked. */
static sp_status points_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                                 sp_thread_record *record, uint64_t holder, bool *is_ended)
{
    if (points_first_passed(points, count) < count) return SP_OK;
    const bool is_in_graph = record->inside != NULL || holder != 0;
    sp_graph_wait wait = {.holder = holder,
                          .inside = record->inside,
                          .points = points,
                          .count = count,
                          .is_any = true,
                          .has_deadline = deadline_ns != SP_NO_DEADLINE};
    if (is_in_graph) SP_TRY(sp__wait_graph_enter(&wait));
    const sp_status status = is_ended != NULL && sp__wait_has_check(record)
                                 ? points_sleep_first_checked(points, count, record, is_ended)
                                 : points_sleep_first(points, count, record, deadline_ns);
    if (is_in_graph) sp__wait_graph_leave(&wait);
    return status;
}

static uint32_t points_observe_first(const sp_point *points, uint32_t count)
{
    const uint32_t passed = points_first_passed(points, count);
    sp__point_observed(points[passed]);
    return passed;
}

sp_status sp__point_wait_any(const sp_point *points, uint32_t count, uint64_t deadline_ns,
                             uint32_t *which)
{
    sp_lock_check_none("a wait for any of several points");
    if (count == 0) return sp__fail(SP_INVALID, "a wait for any of 0 points would never end");
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* Inside a check as in sp__point_wait_bare. */
    const uint64_t holder = record->check_depth > 0 ? record->holder : 0;
    SP_TRY(points_wait_any(points, count, deadline_ns, record, holder, NULL));
    *which = points_observe_first(points, count);
    return sp__fault_report(sp__point_fault(points[*which]));
}

sp_status sp__point_wait_any_passed(const sp_point *points, uint32_t count, bool *is_ended)
{
    *is_ended = false;
    sp_lock_check_none("a wait for any of several points");
    SP_ASSERT(count > 0);
    sp_thread_record *record = sp__thread_record();
    if (record == NULL) return SP_OUT_OF_MEMORY;
    /* As in sp__point_wait_for_access, and for the future that the thread computes: otherwise no
     * point depends on the thread. */
    const bool is_awaited =
        sp_load_relaxed(&record->open_accesses) > 0 || record->computed_futures > 0;
    const uint64_t holder = is_awaited ? record->holder : 0;
    SP_TRY(points_wait_any(points, count, SP_NO_DEADLINE, record, holder, is_ended));
    (void)points_observe_first(points, count);
    return SP_OK;
}
