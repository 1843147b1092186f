/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that the submitting call returns: no synchronize reports them again, and no command of
 * their lease fails for them; those beside them are reported once. */
#include "support.h"

#include <string.h>

#include "runtime/failures.h"
#include "runtime/submit.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *common;
    sp_stream lease;
    sp_stream_ref stream;
} world;

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->stream = sp__subject_stream(sp__subject_runtime(w->common), &w->lease);
}

/* Of each failure some call has been told. */
static void end(world *w)
{
    sp_fault first;
    SP_SCHED_ASSERT(sp__timeline_unreported(&w->stream.queue->timeline, &first) == 0);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->stream.queue->lease_faults.count) == 0);
    sp__stream_lease_release(w->lease);
    sp__subject_runtime_down();
}

static sp_status always_fail(const sp_tile *tile)
{
    (void)tile;
    return SP_FAILED;
}

static const sp_kernel failing_kernel = {.name = "fail", .run = always_fail};

/* A submission that fails, or an empty one. Its point has passed. */
static sp_point submit(world *w, const sp_stream_ref *stream, sp_submission submission,
                       bool is_failing)
{
    const sp_command command = {
        .type = SP_COMMAND_DISPATCH, .kernel = &failing_kernel, .grid = {1, 1, 1}};
    sp_point point;
    submission.commands = &command;
    submission.command_count = is_failing ? 1 : 0;
    SP_SCHED_ASSERT(sp__submit_plain(stream, &submission, &point) == SP_OK);
    sp__subject_poll(w->common, 2, point); /* the default stream, and this one */
    return point;
}

static const sp_submission plain, awaited = {.is_awaited = true},
                                  untracked = {.is_untracked = true};

static bool has_failed(sp_point point)
{
    return sp__point_fault(point) != SP_NO_FAULT;
}

/* ---- runs ---- */

/* The call has the failure, and no synchronize of its thread. */
static void fail_and_return(void *arg)
{
    world *w = arg;
    const sp_point point = submit(w, &w->stream, awaited, true);
    SP_SCHED_ASSERT(has_failed(point));
    SP_SCHED_ASSERT(sp__failures_report(point) == SP_OK);
}

/* Another thread on the lease: neither its commands nor its synchronize get the failure. */
static void run_beside(void *arg)
{
    world *w = arg;
    const sp_point point = submit(w, &w->stream, untracked, false);
    SP_SCHED_ASSERT(!has_failed(point));
    SP_SCHED_ASSERT(sp__failures_report(point) == SP_OK);
}

/* A failure that no call returns, on the same queue and of no lease, is reported once. */
static void fail_untold_beside(void *arg)
{
    world *w = arg;
    sp_stream_ref stream = w->stream;
    stream.lease = 0;
    const sp_point point = submit(w, &stream, plain, true);
    SP_SCHED_ASSERT(sp__failures_report(point) == SP_FAILED);
    SP_SCHED_ASSERT(sp__failures_report(point) == SP_OK);
}

static void subject_returned(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){fail_and_return, run_beside, fail_untold_beside},
                    threads, &w);
    end(&w);
}

/* ---- calls that wait for what they have submitted ---- */

/* The call returns the second failure; the first stays, and stops the lease. */
static void return_the_second(void *arg)
{
    world *w = arg;
    (void)submit(w, &w->stream, plain, true);
    const sp_point point = submit(w, &w->stream, plain, true);
    sp__failures_returned(point, point.value - 1);
    SP_SCHED_ASSERT(has_failed(submit(w, &w->stream, untracked, false)));
    SP_SCHED_ASSERT(sp__failures_report(sp__queue_last_point(w->stream.queue)) == SP_FAILED);
    SP_SCHED_ASSERT(!has_failed(submit(w, &w->stream, untracked, false)));
}

/* A call of another thread, whose command fails if the lease has. */
static void return_what_is_consumed(void *arg)
{
    world *w = arg;
    const sp_point point = submit(w, &w->stream, untracked, false);
    if (has_failed(point)) sp__failures_returned(point, point.value - 1);
    SP_SCHED_ASSERT(sp__failures_report(point) == SP_OK);
}

static void subject_returned_second(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){return_the_second, return_what_is_consumed}, 2, &w);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_returned[] = {
    {.name = "returned_2",
     .test = subject_returned,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "awaited_untold",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "returned_3",
     .test = subject_returned,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "awaited_untold",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "returned_second",
     .test = subject_returned_second,
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "earlier_told",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {0},
};
