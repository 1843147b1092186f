/* SPDX-License-Identifier: Apache-2.0 */
/* Timelines: an advance publishes what came before it, and fires every waiter that it passes, once;
 * one that is taken back is not fired. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "device/wait.h"
#include "sched/subject.h"

typedef struct world {
    sp_timeline timeline;
    sp_timeline other;
    uint32_t data;       /* plain: the value that the timeline has reached */
    uint32_t other_data; /* the same of the other */
} world;

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    sp__timeline_init(&w->timeline, NULL);
    sp__timeline_init(&w->other, NULL);
}

static void end(world *w)
{
    sp__timeline_deinit(&w->timeline);
    sp__timeline_deinit(&w->other);
    sp__subject_end();
}

static void advance_once(void *arg)
{
    world *w = arg;
    w->data = 1;
    sp__timeline_advance(&w->timeline, 1);
}

static void advance_twice(void *arg)
{
    world *w = arg;
    advance_once(w);
    w->other_data = 1;
    sp__timeline_advance(&w->timeline, 2);
}

static void wait_for_1(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp__point_wait((sp_point){&w->timeline, 1}, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->data == 1);
}

static void wait_for_2(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp__point_wait((sp_point){&w->timeline, 2}, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->data == 1 && w->other_data == 1);
}

static void subject_timeline_wait(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_once, wait_for_1}, 2, &w);
    end(&w);
}

static void subject_timeline_waiters(void *arg)
{
    const sp_thread_fn last = *(const uint32_t *)arg == 1 ? wait_for_1 : wait_for_2;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_twice, wait_for_1, last}, 3, &w);
    end(&w);
}

/* ---- nodes of one's own ---- */

typedef struct node {
    sp_waiter waiter;
    sp_atomic_u32 *fired;
} node;

/* The node belongs to the callee: freed at once. */
static void fire_and_free(sp_waiter *waiter)
{
    node *self = (node *)waiter;
    sp_atomic_u32 *fired = self->fired;
    sp_free(self);
    sp_fetch_add_release(fired, 1);
}

/* The node may still be cancelled, so it is freed when that has failed. */
static void fire_and_leave(sp_waiter *waiter)
{
    sp_fetch_add_release(((node *)waiter)->fired, 1);
}

static void register_and_cancel(world *w, uint64_t value)
{
    sp_atomic_u32 fired = {0};
    node *mine = sp_malloc(sizeof *mine);
    SP_SCHED_ASSERT(mine != NULL);
    *mine = (node){.waiter = {.value = value, .fire = fire_and_leave}, .fired = &fired};
    if (!sp__timeline_register(&w->timeline, &mine->waiter)) {
        SP_SCHED_ASSERT(w->data == 1);
        sp_free(mine);
        return;
    }
    if (sp__timeline_cancel(&w->timeline, &mine->waiter)) {
        SP_SCHED_ASSERT(sp_load_relaxed(&fired) == 0);
        sp_free(mine);
        return;
    }
    while (sp_load_acquire(&fired) == 0) sp_spin_hint();
    sp_free(mine);
    SP_SCHED_ASSERT(w->data == 1);
}

static void cancel_1(void *arg)
{
    register_and_cancel(arg, 1);
}

static void cancel_2(void *arg)
{
    register_and_cancel(arg, 2);
}

/* Stays registered until it is fired. */
static void wait_by_node(void *arg)
{
    world *w = arg;
    sp_atomic_u32 fired = {0};
    node *mine = sp_malloc(sizeof *mine);
    SP_SCHED_ASSERT(mine != NULL);
    *mine = (node){.waiter = {.value = 1, .fire = fire_and_free}, .fired = &fired};
    if (sp__timeline_register(&w->timeline, &mine->waiter)) {
        while (sp_load_acquire(&fired) == 0) sp_spin_hint();
        SP_SCHED_ASSERT(sp_load_relaxed(&fired) == 1);
    } else {
        sp_free(mine);
    }
    SP_SCHED_ASSERT(w->data == 1);
}

static void subject_timeline_cancel(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_twice, cancel_1}, 2, &w);
    end(&w);
}

static void subject_timeline_cancel_3(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_twice, cancel_2, wait_by_node}, 3, &w);
    end(&w);
}

/* ---- time-outs ---- */

static void wait_in_time(void *arg)
{
    world *w = arg;
    const sp_point point = {&w->timeline, 1};
    const sp_status status = sp__point_wait(point, sp_clock_now() + 1000000);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_TIMEOUT);
    if (status == SP_OK) SP_SCHED_ASSERT(w->data == 1);
    /* The record of the thread is as it was: another wait works. */
    SP_SCHED_ASSERT(sp__point_wait(point, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->data == 1);
}

static void subject_timeline_timeout(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_once, wait_in_time}, 2, &w);
    end(&w);
}

/* ---- any of two ---- */

static void advance_other(void *arg)
{
    world *w = arg;
    w->other_data = 1;
    sp__timeline_advance(&w->other, 1);
}

static void wait_for_any(world *w, uint64_t deadline_ns)
{
    const sp_point points[2] = {{&w->timeline, 1}, {&w->other, 1}};
    uint32_t which;
    const sp_status status = sp__point_wait_any(points, 2, deadline_ns, &which);
    if (deadline_ns != SP_NO_DEADLINE && status == SP_TIMEOUT) return;
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(which == 0 ? w->data == 1 : w->other_data == 1);
}

static void wait_any(void *arg)
{
    wait_for_any(arg, SP_NO_DEADLINE);
}

static void wait_any_in_time(void *arg)
{
    wait_for_any(arg, sp_clock_now() + 1000000);
}

static void subject_timeline_any(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_once, advance_other, wait_any}, 3, &w);
    end(&w);
}

static void subject_timeline_any_timeout(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){advance_once, wait_any_in_time}, 2, &w);
    end(&w);
}

/* ---- a failed point keeps its fault ---- */

static void fail_once(void *arg)
{
    world *w = arg;
    sp__timeline_fail(&w->timeline, 1, 7, (sp_fault)SP_FAILED << 24 | 1);
    sp__timeline_advance(&w->timeline, 1);
}

static void wait_for_fault(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp__point_wait((sp_point){&w->timeline, 1}, SP_NO_DEADLINE) == SP_FAILED);
}

static void subject_timeline_fault(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){fail_once, wait_for_fault}, 2, &w);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_timeline[] = {
    {.name = "timeline_wait",
     .test = subject_timeline_wait,
     .thread_count = 2,
     .planted = "relaxed_done check_before_register acq_rel_for_seq_cst",
     .options = SP_SPINNERS},
    {.name = "timeline_waiters_same",
     .test = subject_timeline_waiters,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 3,
     .planted = "signal_for_broadcast",
     .options = SP_SPINNERS},
    {.name = "timeline_waiters_two",
     .test = subject_timeline_waiters,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "relaxed_done check_before_register",
     .options = SP_SPINNERS},
    {.name = "timeline_cancel",
     .test = subject_timeline_cancel,
     .thread_count = 2,
     .planted = "touch_after_done"},
    {.name = "timeline_cancel_3",
     .test = subject_timeline_cancel_3,
     .thread_count = 3,
     .planted = "touch_after_done"},
    {.name = "timeline_timeout",
     .test = subject_timeline_timeout,
     .thread_count = 2,
     .planted = "timeout_keeps_node",
     .options = SP_SLEEPERS},
    {.name = "timeline_any",
     .test = subject_timeline_any,
     .thread_count = 3,
     .planted = "check_before_register any_keeps_nodes",
     .options = SP_SPINNERS},
    {.name = "timeline_any_timeout",
     .test = subject_timeline_any_timeout,
     .thread_count = 2,
     .planted = "relaxed_done",
     .options = SP_SLEEPERS},
    {.name = "timeline_fault",
     .test = subject_timeline_fault,
     .thread_count = 2,
     .planted = "uncounted_failure",
     .options = SP_SPINNERS},
    {0},
};
