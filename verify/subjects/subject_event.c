/* SPDX-License-Identifier: Apache-2.0 */
/* Events: after a wait for a record the work before it is visible; records, waits, callbacks and
 * the release may come at any time from any thread. */
#include "support.h"

#include <string.h>

#include <streampool/event.h>

#include "device/host_executor.h"
#include "runtime/event.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_stream stream;
    sp_command_queue *queue;
    sp_event event;
    sp_event start;         /* of event_time */
    sp_subject_log logs[2]; /* one for each command: plain, read after its event */
    uint32_t calls;         /* plain: of the callback */
    sp_atomic_u32 expected_calls;
} world;

static void begin(world *w, bool is_timed)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->device = sp__subject_runtime(w->common);
    const sp_stream_ref ref = sp__subject_stream(w->device, &w->stream);
    w->queue = sp__command_queue(ref.queue);
    const sp_event_options options = {.enable_timing = is_timed};
    SP_SCHED_ASSERT(sp_event_create(&options, &w->event) == SP_OK);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp__stream_lease_release(w->stream) == SP_OK);
    sp__subject_runtime_down();
}

static void command(world *w, uint32_t index)
{
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queue, &w->logs[index], index, NULL, 0, &point) == SP_OK);
}

static bool record(world *w)
{
    const sp_status status = sp_event_record(w->event, w->stream);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_INVALID);
    return status == SP_OK;
}

static void record_twice(void *arg)
{
    world *w = arg;
    command(w, 0);
    record(w);
    command(w, 1);
    record(w);
}

static void record_once(void *arg)
{
    world *w = arg;
    command(w, 0);
    record(w);
}

/* Released or never recorded, or else it has waited for one of the records. */
static void synchronize(void *arg)
{
    world *w = arg;
    const sp_status status = sp_event_synchronize(w->event);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_INVALID);
    if (status == SP_OK) SP_SCHED_ASSERT(w->logs[0].count == 1);
}

static void query(void *arg)
{
    world *w = arg;
    const sp_status status = sp_event_query(w->event);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_INVALID || status == SP_NOT_READY);
    if (status == SP_OK) SP_SCHED_ASSERT(w->logs[0].count == 1);
}

static void release(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_event_release(w->event) == SP_OK);
}

static void subject_event_wait(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, false);
    sp__subject_run((const sp_thread_fn[]){record_twice, synchronize, query}, threads, &w);
    release(&w);
    end(&w);
}

static void subject_event_release(void *arg)
{
    (void)arg;
    world w;
    begin(&w, true);
    sp__subject_run((const sp_thread_fn[]){record_once, synchronize, release}, 3, &w);
    end(&w);
}

/* ---- times: the stamp of a record is reused only when it is neither read nor written ---- */

static void record_alone(void *arg)
{
    record(arg);
}

static void elapse(void *arg)
{
    world *w = arg;
    int64_t ns = -1;
    SP_SCHED_ASSERT(sp_event_elapsed(w->start, w->event, &ns) == SP_OK);
    SP_SCHED_ASSERT(ns >= 0); /* a stamp in its next life reads 0, or a later record's time */
}

static void subject_event_time(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, true);
    SP_SCHED_ASSERT(sp_event_create(&(sp_event_options){.enable_timing = true}, &w.start) == SP_OK);
    SP_SCHED_ASSERT(sp_event_record(w.start, w.stream) == SP_OK);
    SP_SCHED_ASSERT(record(&w));
    /* Their stamps can be used again at once. */
    if (threads == 2) SP_SCHED_ASSERT(sp_event_synchronize(w.event) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){record_twice, elapse, record_alone}, threads, &w);
    SP_SCHED_ASSERT(sp_event_release(w.start) == SP_OK);
    release(&w);
    end(&w);
}

/* ---- timed records of several threads on one stream: an event never goes back ---- */

/* Runs submitted work, so that an older record may have completed before the command does. */
static void record_and_look(world *w, uint32_t index)
{
    (void)sp__subject_work(w->common, 2);
    command(w, index);
    SP_SCHED_ASSERT(record(w));
    const sp_status status = sp_event_query(w->event);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_NOT_READY);
    if (status == SP_OK) SP_SCHED_ASSERT(w->logs[index].count == 1);
}

static void record_first(void *arg)
{
    record_and_look(arg, 0);
}

static void record_second(void *arg)
{
    record_and_look(arg, 1);
}

static void subject_event_records(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, true);
    sp__subject_run((const sp_thread_fn[]){record_alone, record_first, record_second}, threads, &w);
    release(&w);
    end(&w);
}

/* ---- callbacks: once each, after the record that was the last when they were asked for ---- */

static void called(void *ctx, sp_status status)
{
    world *w = ctx;
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(w->logs[0].count == 1);
    w->calls++;
}

static void ask_for_call(void *arg)
{
    world *w = arg;
    const sp_status status = sp_event_on_complete(w->event, called, w);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_INVALID);
    if (status == SP_OK) sp_fetch_add_relaxed(&w->expected_calls, 1);
    (void)sp_event_synchronize(w->event);
}

static void subject_event_callback(void *arg)
{
    (void)arg;
    world w;
    begin(&w, false);
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    sp__subject_run((const sp_thread_fn[]){record_once, ask_for_call}, 2, &w);
    release(&w);
    end(&w); /* stops the executor when the device has drained */
    SP_SCHED_ASSERT(w.calls == sp_load_relaxed(&w.expected_calls));
}

/* ---- the table ---- */

const sp_subject sp__subjects_event[] = {
    {.name = "event_wait_2",
     .test = subject_event_wait,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "record_too_early",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "event_wait_3",
     .test = subject_event_wait,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "record_too_early relaxed_done",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "event_release",
     .test = subject_event_release,
     .thread_count = 3,
     .planted = "lost_stamp",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {.name = "event_time_2",
     .test = subject_event_time,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .options = SP_SPINNERS,
     .planted = "unheld_stamp",
     .seconds = 0.4},
    {.name = "event_time_3",
     .test = subject_event_time,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .options = SP_SPINNERS,
     .planted = "unheld_stamp",
     .seconds = 0.4},
    {.name = "event_records_2",
     .test = subject_event_records,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .options = SP_SPINNERS,
     .planted = "older_record",
     .seconds = 0.4},
    {.name = "event_records_3",
     .test = subject_event_records,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .options = SP_SPINNERS,
     .planted = "older_record",
     .seconds = 0.4},
    {.name = "event_callback",
     .test = subject_event_callback,
     .thread_count = 3,
     .planted = "record_too_early",
     .options = SP_SPINNERS,
     .seconds = 0.4},
    {0},
};
