/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a device: what was accepted is done when stop returns, and nothing is accepted after. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/wait.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *device;
    sp_command_queue *queues[2];
    sp_subject_log logs[2]; /* plain */
    uint32_t accepted[2];   /* plain: by each submitter */
    sp_waiter waiter;
    sp_point last;
    uint32_t fired; /* plain: how often the waiter was */
} world;

static void submit_until_closed(world *w, uint32_t index)
{
    for (uint32_t i = 0; i < 2; i++) {
        sp_point point;
        const sp_status status =
            sp__subject_append(w->queues[index], &w->logs[index], 2 * index + i, NULL, 0, &point);
        SP_SCHED_ASSERT(status == SP_OK || status == SP_CLOSED);
        if (status == SP_CLOSED) return;
        w->accepted[index]++;
    }
}

static void submit_0(void *arg)
{
    submit_until_closed(arg, 0);
}

static void submit_1(void *arg)
{
    submit_until_closed(arg, 1);
}

static void close_device(void *arg)
{
    world *w = arg;
    sp__queue_device_stop(&w->device->base);
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queues[0], &w->logs[0], 7, NULL, 0, &point) == SP_CLOSED);
}

static void explore(uint32_t worker_count, uint32_t submitters)
{
    world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_device(worker_count);
    for (uint32_t i = 0; i < submitters; i++) {
        w.queues[i] = sp__subject_queue(w.device, i, true);
    }
    sp__subject_run((const sp_thread_fn[]){close_device, submit_0, submit_1}, 1 + submitters, &w);
    for (uint32_t i = 0; i < submitters; i++) {
        SP_SCHED_ASSERT(w.logs[i].count == w.accepted[i]);
        SP_SCHED_ASSERT(sp_load_relaxed(&w.queues[i]->base.timeline.done) == w.accepted[i]);
    }
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* 1: two submitters and the closer; 2: one submitter; 3: one submitter and a worker. */
static void subject_close(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    explore(threads == 3 ? 1 : 0, threads == 1 ? 2 : 1);
}

/* ---- a queue that is made beside the stop is closed with the others, or never made ---- */

static void make_queue_and_submit(void *arg)
{
    world *w = arg;
    const sp_queue_options options = {.is_batching = true};
    sp_queue *queue;
    const sp_status status = sp__command_queue_create(&w->device->base, 1, &options, &queue);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CLOSED);
    if (status == SP_CLOSED) return;
    w->queues[1] = sp__command_queue(queue);
    submit_until_closed(w, 1);
}

static void subject_close_new_queue(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_device(0);
    w.queues[0] = sp__subject_queue(w.device, 0, true);
    sp__subject_run((const sp_thread_fn[]){close_device, make_queue_and_submit}, 2, &w);
    SP_SCHED_ASSERT(w.logs[1].count == w.accepted[1]);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- when stop returns, the waiters of the last command have been fired: the host executor, which
 * stops afterwards, would refuse jobs that they post ---- */

static void note_fired(sp_waiter *waiter)
{
    SP_CONTAINER_OF(waiter, world, waiter)->fired++;
}

static void wait_for_last(void *arg)
{
    const world *w = arg;
    SP_SCHED_ASSERT(sp__point_wait(w->last, SP_NO_DEADLINE) == SP_OK);
}

static void close_and_look(void *arg)
{
    world *w = arg;
    sp__queue_device_stop(&w->device->base);
    SP_SCHED_ASSERT(w->fired == 1);
}

static void subject_close_fires(void *arg)
{
    (void)arg;
    world w;
    memset(&w, 0, sizeof w);
    w.device = sp__subject_device(0);
    w.queues[0] = sp__subject_queue(w.device, 0, true);
    SP_SCHED_ASSERT(sp__subject_append(w.queues[0], &w.logs[0], 1, NULL, 0, &w.last) == SP_OK);
    w.waiter = (sp_waiter){.value = w.last.value, .fire = note_fired};
    SP_SCHED_ASSERT(sp__timeline_register(w.last.timeline, &w.waiter));
    sp__subject_run((const sp_thread_fn[]){close_and_look, wait_for_last}, 2, &w);
    sp__subject_device_free(w.device);
    sp__subject_end();
}

/* ---- the table ---- */

const sp_subject sp__subjects_close[] = {
    {.name = "close_one",
     .test = subject_close,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "accept_while_closing",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "close_two",
     .test = subject_close,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 3,
     .planted = "accept_while_closing",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "close_new_queue",
     .test = subject_close_new_queue,
     .thread_count = 2,
     .planted = "queue_after_close",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "close_fires",
     .test = subject_close_fires,
     .thread_count = 2,
     .dpor_seconds = 3,
     .planted = "close_before_firing",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "close_worker",
     .test = subject_close,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "accept_while_closing",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {0},
};
