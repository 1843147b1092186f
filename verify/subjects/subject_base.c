/* SPDX-License-Identifier: Apache-2.0 */
/* Run-once, and parking of threads. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/wait.h"
#include "sched/subject.h"

typedef struct world {
    sp_once once;
    uint32_t runs; /* plain: written by the thread that runs the function */
    uint32_t failures_left;
    sp_parker parker;
    uint32_t data; /* plain: published by an unpark */
    sp_atomic_u32 told[2];
} world;

static sp_status make(void *arg)
{
    world *w = arg;
    w->runs++;
    if (w->failures_left == 0) return SP_OK;
    w->failures_left--;
    return SP_BUSY;
}

static void run_once(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_once_run(&w->once, make, w) == SP_OK);
    SP_SCHED_ASSERT(w->runs == 1);
}

static void subject_once(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){run_once, run_once, run_once}, threads, &w);
    SP_SCHED_ASSERT(w.runs == 1);
}

static void run_until_done(void *arg)
{
    world *w = arg;
    for (;;) {
        const sp_status status = sp_once_run(&w->once, make, w);
        if (status == SP_OK) break;
        SP_SCHED_ASSERT(status == SP_BUSY);
    }
    SP_SCHED_ASSERT(w->runs == 2);
}

static void subject_once_fails(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    memset(&w, 0, sizeof w);
    w.failures_left = 1;
    sp__subject_run((const sp_thread_fn[]){run_until_done, run_until_done, run_until_done}, threads,
                    &w);
}

/* ---- parker ---- */

static void park(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_parker_park(&w->parker, SP_NO_DEADLINE));
    SP_SCHED_ASSERT(w->data == 1);
}

static void unpark(void *arg)
{
    world *w = arg;
    w->data = 1;
    sp_parker_unpark(&w->parker);
}

static void subject_parker(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){park, unpark}, 2, &w);
}

static void tell(world *w, uint32_t index)
{
    sp_store_release(&w->told[index], 1);
    sp_parker_unpark(&w->parker);
}

static void tell_0(void *arg)
{
    tell(arg, 0);
}

static void tell_1(void *arg)
{
    tell(arg, 1);
}

static void park_until_told(void *arg)
{
    world *w = arg;
    while (sp_load_acquire(&w->told[0]) == 0 || sp_load_acquire(&w->told[1]) == 0) {
        sp_parker_park(&w->parker, SP_NO_DEADLINE);
    }
}

static void subject_parker_two(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){park_until_told, tell_0, tell_1}, 3, &w);
}

static void park_in_time(void *arg)
{
    world *w = arg;
    if (!sp_parker_park(&w->parker, sp_clock_now() + 1000)) {
        SP_SCHED_ASSERT(sp_parker_park(&w->parker, SP_NO_DEADLINE));
    }
    SP_SCHED_ASSERT(w->data == 1);
    SP_SCHED_ASSERT(!sp_parker_park(&w->parker, 0));
}

static void subject_parker_timeout(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    sp__subject_run((const sp_thread_fn[]){park_in_time, unpark}, 2, &w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_base[] = {
    {.name = "once_2",
     .test = subject_once,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_once"},
    {.name = "once_3",
     .test = subject_once,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "once_wakes_one"},
    {.name = "once_fails_2",
     .test = subject_once_fails,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_once"},
    {.name = "once_fails_3",
     .test = subject_once_fails,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "once_wakes_one"},
    {.name = "parker", .test = subject_parker, .thread_count = 2, .planted = "look_before_token"},
    {.name = "parker_two",
     .test = subject_parker_two,
     .thread_count = 3,
     .planted = "look_before_token"},
    {.name = "parker_timeout",
     .test = subject_parker_timeout,
     .thread_count = 2,
     .planted = "look_before_token",
     .options = {.timeouts_are_choices = true}},
    {0},
};
