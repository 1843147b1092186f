/* SPDX-License-Identifier: Apache-2.0 */
/* The host executor: every accepted job runs exactly once, also if the executor stops; a waiting
 * job does not block the others. And host functions on a queue. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/host_executor.h"
#include "device/wait.h"
#include "sched/subject.h"

typedef struct world {
    sp_host_job jobs[3];
    bool is_accepted[3];
    uint32_t ran[3]; /* plain: one job at a time, in order */
    uint32_t order;  /* plain, the same */
    sp_atomic_u32 gate;
    sp_queue_device *device;
    sp_command_queue *queue;
} world;

static world *the_world; /* jobs have no other way to it */

static void run_job(sp_host_job *job)
{
    the_world->ran[job - the_world->jobs] = ++the_world->order;
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    the_world = w;
    for (uint32_t i = 0; i < 3; i++) w->jobs[i].run = run_job;
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
}

static void post(world *w, uint32_t index)
{
    w->is_accepted[index] = sp__host_executor_post(&w->jobs[index]);
}

static void post_0_and_1(void *arg)
{
    post(arg, 0);
    post(arg, 1);
}

static void post_2(void *arg)
{
    post(arg, 2);
}

static void stop(void *arg)
{
    (void)arg;
    sp__host_executor_stop();
}

static void check(const world *w)
{
    for (uint32_t i = 0; i < 3; i++) SP_SCHED_ASSERT((w->ran[i] > 0) == w->is_accepted[i]);
    if (w->is_accepted[0] && w->is_accepted[1]) SP_SCHED_ASSERT(w->ran[0] < w->ran[1]);
}

static void subject_host_post(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){post_0_and_1, post_2}, 2, &w);
    sp__host_executor_stop();
    check(&w);
    SP_SCHED_ASSERT(w.is_accepted[0] && w.is_accepted[1] && w.is_accepted[2]);
    sp__subject_end();
}

static void subject_host_stop(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){post_0_and_1, stop}, 2, &w);
    check(&w);
    sp__subject_end();
}

/* ---- a job that waits for the next ---- */

static void open_gate(sp_host_job *job)
{
    run_job(job);
    sp_store_release(&the_world->gate, 1);
    sp_word_wake(&the_world->gate, SP_WAKE_ALL);
}

static void wait_at_gate(sp_host_job *job)
{
    world *w = the_world;
    SP_SCHED_ASSERT(sp__host_executor_block() == SP_OK);
    while (sp_load_acquire(&w->gate) == 0) sp_word_wait(&w->gate, 0, SP_NO_DEADLINE);
    sp__host_executor_unblock();
    w->ran[job - w->jobs] = 1;
}

static void post_waiter_and_opener(void *arg)
{
    world *w = arg;
    post(w, 0);
    post(w, 1);
    if (w->is_accepted[0] && !w->is_accepted[1]) { /* then another thread must */
        sp_store_release(&w->gate, 1);
        sp_word_wake(&w->gate, SP_WAKE_ALL);
    }
}

static void begin_gate(world *w)
{
    begin(w);
    w->jobs[0].run = wait_at_gate;
    w->jobs[1].run = open_gate;
}

static void subject_host_block(void *arg)
{
    (void)arg;
    world w;
    begin_gate(&w);
    sp__subject_run((const sp_thread_fn[]){post_waiter_and_opener, post_2}, 2, &w);
    sp__host_executor_stop();
    SP_SCHED_ASSERT(w.ran[0] > 0 && w.ran[1] > 0 && w.ran[2] > 0);
    sp__subject_end();
}

/* Stop at any time: before the jobs, between them, while the first job waits for the second. */
static void subject_host_block_stop(void *arg)
{
    (void)arg;
    world w;
    begin_gate(&w);
    sp__subject_run((const sp_thread_fn[]){post_waiter_and_opener, stop}, 2, &w);
    for (uint32_t i = 0; i < 2; i++) SP_SCHED_ASSERT((w.ran[i] > 0) == w.is_accepted[i]);
    sp__subject_end();
}

/* ---- on a queue ---- */

static sp_status count_call(void *ctx, sp_fault fault)
{
    SP_SCHED_ASSERT(fault == SP_NO_FAULT);
    ((world *)ctx)->order++;
    return SP_OK;
}

static sp_point submit_host(world *w)
{
    sp_point point;
    const sp_thread_record *record = sp__thread_record();
    SP_SCHED_ASSERT(record != NULL);
    const sp_command command = {.type = SP_COMMAND_HOST, .host = count_call, .ctx = w};
    const sp_submission submission = {
        .commands = &command, .command_count = 1, .thread = record->number};
    SP_SCHED_ASSERT(sp__queue_submit(&w->queue->base, &submission, &point) == SP_OK);
    return point;
}

static void submit_and_wait(void *arg)
{
    world *w = arg;
    const sp_point point = submit_host(w);
    SP_SCHED_ASSERT(sp__point_wait_bare(point, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->order >= 1);
}

static void begin_queue(world *w, uint32_t worker_count)
{
    begin(w);
    w->device = sp__subject_device(worker_count);
    w->queue = sp__subject_queue(w->device, 0, true);
}

static void end_queue(world *w)
{
    sp__subject_device_free(w->device);
    sp__host_executor_stop();
    sp__subject_end();
}

static void submit_and_poll(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 1, submit_host(w));
}

/* Parks, runs on the executor, is unparked: with another submitter on the queue. */
static void subject_host_function(void *arg)
{
    const uint32_t submitters = *(const uint32_t *)arg;
    world w;
    begin_queue(&w, 0);
    sp__subject_run((const sp_thread_fn[]){submit_and_poll, submit_and_poll}, submitters, &w);
    SP_SCHED_ASSERT(w.order == submitters);
    end_queue(&w);
}

/* A worker and the submitter that waits: it may run its own function. */
static void subject_host_own(void *arg)
{
    (void)arg;
    world w;
    begin_queue(&w, 1);
    sp__subject_run((const sp_thread_fn[]){submit_and_wait}, 1, &w);
    SP_SCHED_ASSERT(w.order == 1);
    end_queue(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_host[] = {
    {.name = "host_post",
     .test = subject_host_post,
     .thread_count = 3,
     .planted = "close_drops_list",
     .seconds = 0.5},
    {.name = "host_stop",
     .test = subject_host_stop,
     .thread_count = 3,
     .planted = "close_drops_list",
     .seconds = 0.5},
    {.name = "host_block",
     .test = subject_host_block,
     .thread_count = 4,
     .planted = "close_drops_list",
     .seconds = 0.5},
    {.name = "host_block_stop",
     .test = subject_host_block_stop,
     .thread_count = 4,
     .planted = "close_drops_list",
     .seconds = 0.5},
    {.name = "host_function_1",
     .test = subject_host_function,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 2,
     .planted = "quiet_post",
     .seconds = 0.5},
    {.name = "host_function_2",
     .test = subject_host_function,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 3,
     .planted = "quiet_post",
     .seconds = 0.5},
    {.name = "host_own",
     .test = subject_host_own,
     .thread_count = 3,
     .planted = "quiet_post",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
