/* SPDX-License-Identifier: Apache-2.0 */
/* Parking: a queue that waits for a point resumes when it has passed, in any order of park and
 * completion, and runs nothing before; the unparking thread has left its device before that closes.
 */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "device/wait.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *device;
    sp_command_queue *first, *second;
    sp_timeline timeline; /* of the host */
    uint32_t data;        /* plain: written before the timeline advances */
    sp_subject_log log;
    sp_point last;
} world;

static void begin(world *w, uint32_t worker_count)
{
    memset(w, 0, sizeof *w);
    w->device = sp__subject_device(worker_count);
    w->first = sp__subject_queue(w->device, 0, true);
    w->second = sp__subject_queue(w->device, 1, true);
    sp__timeline_init(&w->timeline, NULL);
}

static void end(world *w)
{
    sp__subject_device_free(w->device);
    sp__timeline_deinit(&w->timeline);
    sp__subject_end();
}

static sp_status append_if_ready(const sp_tile *tile)
{
    world *w = tile->bindings[0];
    SP_SCHED_ASSERT(w->data == 1);
    w->log.items[w->log.count++] = *(const uint32_t *)tile->constants;
    return SP_OK;
}

static const sp_kernel kernel = {.name = "append if ready", .run = append_if_ready};
static sp_memory memory[SP_LOG_ITEMS];

static sp_point submit(world *w, sp_command_queue *queue, uint32_t item, sp_point wait)
{
    sp_binding binding;
    sp_point point;
    const sp_command command = sp__subject_dispatch(&kernel, &binding, &memory[item], w, 0, &item);
    SP_SCHED_ASSERT(sp__subject_submit(queue, &command, &wait, 1, &point) == SP_OK);
    return point;
}

static void advance(void *arg)
{
    world *w = arg;
    w->data = 1;
    sp__timeline_advance(&w->timeline, 1);
}

static void submit_and_poll(void *arg)
{
    world *w = arg;
    const sp_point point = submit(w, w->first, 1, (sp_point){&w->timeline, 1});
    sp__subject_poll(w->device, 1, point);
}

static void subject_park_unpark(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    sp__subject_run((const sp_thread_fn[]){advance, submit_and_poll}, 2, &w);
    SP_SCHED_ASSERT(w.log.count == 1);
    end(&w);
}

/* ---- a chain: second waits for first, first for the host ---- */

static void poll_all(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 2, w->last);
}

static void submit_chain(world *w)
{
    const sp_point first = submit(w, w->first, 1, (sp_point){&w->timeline, 1});
    w->last = submit(w, w->second, 2, first);
}

static void subject_park_chain(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w, 0);
    submit_chain(&w);
    sp__subject_run((const sp_thread_fn[]){advance, poll_all, poll_all}, threads, &w);
    SP_SCHED_ASSERT(w.log.count == 2 && w.log.items[0] == 1 && w.log.items[1] == 2);
    end(&w);
}

static void submit_chain_and_wait(void *arg)
{
    world *w = arg;
    submit_chain(w);
    SP_SCHED_ASSERT(sp__point_wait(w->last, SP_NO_DEADLINE) == SP_OK);
    SP_SCHED_ASSERT(w->log.count == 2);
}

/* With a worker that sleeps: helping, parking, ringing and waiting together. */
static void subject_park_worker(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 1);
    sp__subject_run((const sp_thread_fn[]){advance, submit_chain_and_wait}, 2, &w);
    end(&w);
}

/* ---- the device closes as soon as its work is done ---- */

static void close_device(void *arg)
{
    world *w = arg;
    sp__subject_poll(w->device, 1, w->last);
    sp__subject_device_free(w->device);
}

static void subject_park_visitor(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    w.last = submit(&w, w.first, 1, (sp_point){&w.timeline, 1});
    sp__subject_run((const sp_thread_fn[]){advance, close_device}, 2, &w);
    sp__timeline_deinit(&w.timeline);
    sp__subject_end();
}

/* ---- the only worker falls asleep while the queue is parked: a thread plays it, by the rule of
 * workers.c; the wake-up may come as late as after its end ---- */

static void work_and_sleep(void *arg)
{
    world *w = arg;
    w->last = submit(w, w->first, 1, (sp_point){&w->timeline, 1});
    do {
        sp_fetch_and_seq_cst(&w->device->sleeping, ~(uint64_t)1);
        while (sp__subject_work(w->device, 1)) {
        }
        sp_fetch_or_seq_cst(&w->device->sleeping, (uint64_t)1);
    } while (sp__queue_has_work(w->first));
}

static void subject_park_sleeper(void *arg)
{
    (void)arg;
    world w;
    begin(&w, 0);
    void *none = w.device->workers;
    sp_queue_worker sleeper = {.device = w.device};
    w.device->workers = &sleeper;
    sp__subject_run((const sp_thread_fn[]){advance, work_and_sleep}, 2, &w);
    if (!sp__point_has_passed(w.last)) SP_SCHED_ASSERT(sp_parker_park(&sleeper.parker, 0));
    while (sp__subject_work(w.device, 1)) {
    }
    SP_SCHED_ASSERT(w.log.count == 1);
    w.device->workers = none;
    sp_store_relaxed(&w.device->sleeping, 0);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_park[] = {
    {.name = "park_unpark",
     .test = subject_park_unpark,
     .thread_count = 2,
     .planted = "park_for_good",
     .seconds = 0.5},
    {.name = "park_chain_2",
     .test = subject_park_chain,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "park_for_good",
     .seconds = 0.5},
    {.name = "park_chain_3",
     .test = subject_park_chain,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "park_for_good",
     .seconds = 0.5},
    {.name = "park_worker",
     .test = subject_park_worker,
     .thread_count = 3,
     .planted = "park_for_good quiet_unpark",
     .options = SP_SLEEPERS,
     .seconds = 0.5},
    {.name = "park_sleeper",
     .test = subject_park_sleeper,
     .thread_count = 2,
     .planted = "quiet_unpark",
     .seconds = 0.5},
    {.name = "park_visitor",
     .test = subject_park_visitor,
     .thread_count = 2,
     .planted = "close_before_visitors",
     .seconds = 0.5},
    {0},
};
