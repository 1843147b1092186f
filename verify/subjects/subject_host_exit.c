/* SPDX-License-Identifier: Apache-2.0 */
/* What functions on the host leave behind: threads that they end, streams that they lease, threads
 * that were made because they wait. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/host_executor.h"
#include "device/wait.h"
#include "runtime/current_stream.h"
#include "sched/subject.h"

typedef struct world {
    sp_host_job jobs[3];
    uint32_t ran; /* plain: one job at a time */
    sp_atomic_u32 gate;
    sp_rt_device *device;
    sp_command_queue *queues[2];
    sp_point point;
    sp_atomic_u32 is_submitted;
} world;

static world *the_world; /* jobs have no other way to it */

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    the_world = w;
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
}

static void post_all(void *arg)
{
    world *w = arg;
    for (uint32_t i = 0; i < 3; i++) SP_SCHED_ASSERT(sp__host_executor_post(&w->jobs[i]));
}

/* ---- two jobs that wait for the third ---- */

static void wait_at_gate(sp_host_job *job)
{
    world *w = the_world;
    (void)job;
    SP_SCHED_ASSERT(sp__host_executor_block() == SP_OK);
    while (sp_load_acquire(&w->gate) == 0) sp_word_wait(&w->gate, 0, SP_NO_DEADLINE);
    sp__host_executor_unblock();
}

static void open_gate(sp_host_job *job)
{
    (void)job;
    the_world->ran++;
    sp_store_release(&the_world->gate, 1);
    sp_word_wake(&the_world->gate, SP_WAKE_ALL);
}

static void subject_host_nested(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    w.jobs[0].run = w.jobs[1].run = wait_at_gate;
    w.jobs[2].run = open_gate;
    sp__subject_run((const sp_thread_fn[]){post_all}, 1, &w);
    sp__host_executor_stop();
    SP_SCHED_ASSERT(w.ran == 1);
    sp__subject_end();
}

/* ---- a job that ends its thread ---- */

static void end_thread(sp_host_job *job)
{
    (void)job;
    the_world->ran++;
    sp_thread_exit();
}

static void count_job(sp_host_job *job)
{
    (void)job;
    the_world->ran++;
}

static void subject_host_exit(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    w.jobs[0].run = w.jobs[1].run = end_thread;
    w.jobs[2].run = count_job;
    sp__subject_run((const sp_thread_fn[]){post_all}, 1, &w);
    sp__host_executor_stop();
    SP_SCHED_ASSERT(w.ran == 3);
    sp__subject_end();
}

/* ---- functions of queues ---- */

static void begin_queues(world *w)
{
    begin(w);
    w->device = sp__subject_bare_device();
    const sp_stream_pool_options options = {.count = 2, .policy = SP_OPTION_POLICY_FAIL};
    SP_SCHED_ASSERT(sp__stream_pool_init(&w->device->pool, w->device, &options) == SP_OK);
    sp_queue_device *device = sp__queue_device(w->device->dev);
    /* Behind those of the pool's streams. */
    for (uint32_t i = 0; i < 2; i++) w->queues[i] = sp__subject_queue(device, 2 + i, true);
}

static void poll(world *w, sp_point point)
{
    sp__subject_poll(sp__queue_device(w->device->dev), 4, point);
}

static void take_the_stream(world *w)
{
    sp_stream stream;
    SP_SCHED_ASSERT(sp__stream_pool_acquire(&w->device->pool, &stream) == SP_OK);
    SP_SCHED_ASSERT(sp__stream_lease_release(stream) == SP_OK);
}

static void end_queues(world *w)
{
    take_the_stream(w);
    sp__queue_device_stop(w->device->dev);
    sp__host_executor_stop();
    sp__stream_pool_deinit(&w->device->pool);
    sp__stream_leases_deinit();
    sp__subject_bare_device_free(w->device);
    sp__subject_end();
}

static sp_point submit_function(world *w, uint32_t queue,
                                sp_status (*fn)(void *ctx, sp_fault fault))
{
    sp_point point;
    const sp_thread_record *record = sp__thread_record();
    SP_SCHED_ASSERT(record != NULL);
    const sp_command command = {.type = SP_COMMAND_HOST, .host = fn, .ctx = w};
    const sp_submission submission = {
        .commands = &command, .command_count = 1, .thread = record->number};
    SP_SCHED_ASSERT(sp__queue_submit(&w->queues[queue]->base, &submission, &point) == SP_OK);
    return point;
}

static sp_status end_any_thread(void *ctx, sp_fault fault)
{
    SP_SCHED_ASSERT(fault == SP_NO_FAULT);
    ((world *)ctx)->ran++;
    sp_thread_exit();
}

/* May run the function itself, and does not return then. */
static void submit_and_end(void *arg)
{
    world *w = arg;
    w->point = submit_function(w, 0, end_any_thread);
    sp_store_release(&w->is_submitted, 1);
    SP_SCHED_ASSERT(sp__point_wait_bare(w->point, SP_NO_DEADLINE) == SP_OK);
}

static void poll_for_failure(void *arg)
{
    world *w = arg;
    while (sp_load_acquire(&w->is_submitted) == 0) sp_spin_hint();
    poll(w, w->point);
    SP_SCHED_ASSERT(w->ran == 1);
    SP_SCHED_ASSERT(sp__fault_status(sp__point_fault(w->point)) == SP_FAILED);
}

static void subject_host_exit_own(void *arg)
{
    (void)arg;
    world w;
    begin_queues(&w);
    sp__subject_run((const sp_thread_fn[]){submit_and_end, poll_for_failure}, 2, &w);
    end_queues(&w);
}

static sp_status ask_for_stream(void *ctx, sp_fault fault)
{
    sp_stream_ref ref;
    SP_SCHED_ASSERT(fault == SP_NO_FAULT);
    SP_SCHED_ASSERT(sp__current_stream(((world *)ctx)->device, &ref) == SP_OK);
    SP_SCHED_ASSERT(ref.stream->index == 1);
    return SP_OK;
}

/* The one stream is free again once the function is seen to be done. */
static void ask_and_take(void *arg)
{
    world *w = arg;
    poll(w, submit_function(w, 0, ask_for_stream));
    take_the_stream(w);
}

static void ask_in_0(void *arg)
{
    poll(arg, submit_function(arg, 0, ask_for_stream));
}

static void ask_in_1(void *arg)
{
    poll(arg, submit_function(arg, 1, ask_for_stream));
}

static void subject_host_lease(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin_queues(&w);
    if (threads == 2) {
        sp__subject_run((const sp_thread_fn[]){ask_and_take}, 1, &w);
    } else {
        sp__subject_run((const sp_thread_fn[]){ask_in_0, ask_in_1}, 2, &w);
    }
    end_queues(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_host_exit[] = {
    {.name = "host_nested",
     .test = subject_host_nested,
     .thread_count = 4,
     .planted = "blocked_are_idle",
     .seconds = 0.5},
    {.name = "host_exit",
     .test = subject_host_exit,
     .thread_count = 3,
     .planted = "no_successor",
     .seconds = 0.5},
    {.name = "host_exit_own",
     .test = subject_host_exit_own,
     .thread_count = 3,
     .planted = "claim_is_lost",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "host_lease_2",
     .test = subject_host_lease,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .inexhaustible = SP_ENDLESS_RUNTIME,
     .planted = "streams_stay",
     .seconds = 0.5},
    {.name = "host_lease_3",
     .test = subject_host_lease,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "streams_stay",
     .seconds = 0.5},
    {0},
};
