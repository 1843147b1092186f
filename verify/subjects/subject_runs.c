/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on threads and submitted runs as a whole: from the wait for a slot through a context or a
 * batch to the end. */
#include "runs_world.h"
#include "runtime/run_queue.h"
#include "runtime/submit_queue.h"
#include "sched/subject.h"

/* ---- line up and lead ---- */

static void subject_runs_lead(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    static sp_runs_world w;
    sp__runs_begin(&w, 1, 1, 2, 0);
    sp__subject_run((const sp_thread_fn[]){sp__runs_run, sp__runs_run, sp__runs_run}, threads, &w);
    sp__runs_end(&w);
}

/* A thread leads a submitted run, or that run the thread's; a third run has a thread, too. */
static void mixed(uint32_t threads, uint32_t input, sp_thread_fn second, sp_status expected)
{
    static sp_runs_world w;
    sp__runs_begin(&w, 1, 1, 2, threads == 3 ? 3 : 0);
    sp__runs_take_slots(&w);
    sp__runs_submit(&w, 0, input);
    sp__subject_run((const sp_thread_fn[]){sp__runs_release_and_work, second, sp__runs_run},
                    threads, &w);
    sp__runs_check(&w, 0, expected);
    sp__runs_end(&w);
}

static void subject_runs_mixed(void *arg)
{
    mixed(*(const uint32_t *)arg, 50, sp__runs_run, SP_OK);
}

/* ---- a leader without a thread ---- */

/* Only waits compute the batch. */
static void subject_runs_helped(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    static sp_runs_world w;
    sp__runs_begin(&w, 1, 1, 2, 0);
    sp__runs_take_slots(&w);
    sp__runs_submit(&w, 0, 50);
    sp__runs_submit(&w, 1, 60);
    sp__runs_release_slot(&w);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.model.counters.batches) == 1);
    sp__subject_run((const sp_thread_fn[]){sp__runs_wait_second, sp__runs_wait}, threads, &w);
    sp__runs_check(&w, 0, SP_OK);
    sp__runs_check(&w, 1, SP_OK);
    sp__runs_end(&w);
}

/* ---- a batch that fails ---- */

/* The run without a thread fails, alone, whichever of the two leads; */
static void subject_runs_fail(void *arg)
{
    mixed(*(const uint32_t *)arg, SP_RUNS_BAD, sp__runs_run, SP_INVALID);
}

/* or the one with a thread does. */
static void subject_runs_fail_thread(void *arg)
{
    mixed(*(const uint32_t *)arg, 50, sp__runs_run_bad, SP_OK);
}

/* ---- a wait inside a callback ---- */

/* Takes the run out of the queue, unless a batch or the slot has it. */
static void subject_runs_cancel(void *arg)
{
    const uint32_t input = *(const uint32_t *)arg;
    static sp_runs_world w;
    sp__runs_begin(&w, 1, 1, 2, 0);
    sp__runs_take_slots(&w);
    sp__runs_submit(&w, 0, input);
    sp__subject_run(
        (const sp_thread_fn[]){sp__runs_release_and_work, sp__runs_run, sp__runs_wait_inside}, 3,
        &w);
    sp__runs_check(&w, 0, input == SP_RUNS_BAD ? SP_INVALID : SP_OK);
    sp__runs_end(&w);
}

/* The run is granted a slot, and then waits for a context, whose run waits for the callback. */
static void subject_runs_awaited(void *arg)
{
    (void)arg;
    static sp_runs_world w;
    sp__runs_begin(&w, 2, 1, 0, 0);
    sp__runs_take_slots(&w);
    sp__runs_take_context(&w);
    sp__runs_submit(&w, 0, 50);
    sp__subject_run(
        (const sp_thread_fn[]){sp__runs_release_late, sp__runs_release_slot, sp__runs_wait_inside},
        3, &w);
    sp__runs_check(&w, 0, w.runs[0].future->fault == SP_NO_FAULT ? SP_OK : SP_OUT_OF_MEMORY);
    sp__runs_end(&w);
}

/* ---- submit queues ---- */

typedef struct queues_world {
    sp_rt_device *device;
} queues_world;

static void queue_use(void *arg)
{
    queues_world *w = arg;
    SP_SCHED_ASSERT(sp__submit_queues_open(w->device, 1) == SP_OK);
    const uint32_t index = sp__submit_queue_acquire(w->device);
    const sp_queue *queue = sp__submit_queue_at(w->device, index);
    SP_SCHED_ASSERT(queue != NULL && queue->device == w->device->dev);
    sp__submit_queue_release(w->device, index);
}

static void subject_submit_queues(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    queues_world w = {.device = sp__subject_bare_device()};
    w.device->dev->limits.run_slots = 3;
    SP_SCHED_ASSERT(sp__submit_queues_open(w.device, 1) == SP_OK);
    const uint32_t taken = sp__submit_queue_acquire(w.device);
    sp__subject_run((const sp_thread_fn[]){queue_use, queue_use, queue_use}, threads, &w);
    sp__submit_queue_release(w.device, taken);
    const uint32_t count = sp__submit_queues_count(w.device);
    SP_SCHED_ASSERT(count >= 2 && count <= 3);
    SP_SCHED_ASSERT(sp_load_relaxed(&w.device->submit_queues.free) == (1u << count) - 1);
    sp__subject_bare_device_free(w.device);
    sp__subject_end();
}

/* ---- run queues ---- */

typedef struct run_queues_world {
    sp_rt_device *device;
    sp_atomic_u32 is_used[2];
} run_queues_world;

static void run_queue_use(void *arg)
{
    run_queues_world *w = arg;
    const uint32_t index = sp__run_queue_acquire(w->device, 1);
    if (index == SP_NO_RUN_QUEUE) return;
    SP_SCHED_ASSERT(sp_exchange_relaxed(&w->is_used[index], 1) == 0);
    SP_SCHED_ASSERT(sp__run_queue_at(w->device, index)->device == w->device->dev);
    sp_store_relaxed(&w->is_used[index], 0);
    sp__run_queue_release(w->device, index, false);
}

/* A thread that shares the stream of the other ones. */
static void run_queue_open_and_use(void *arg)
{
    sp__run_queues_open(((run_queues_world *)arg)->device);
    run_queue_use(arg);
}

static void subject_run_queues(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    run_queues_world w = {.device = sp__subject_bare_device()};
    w.device->dev->limits.run_slots = 2;
    sp__subject_run(
        (const sp_thread_fn[]){run_queue_open_and_use, run_queue_use, run_queue_open_and_use},
        threads, &w);
    for (uint32_t i = 0; i < 2; i++) {
        SP_SCHED_ASSERT(sp__run_queue_acquire(w.device, 0) == i); /* all are free again */
    }
    sp__subject_bare_device_free(w.device);
    sp__subject_end();
}

/* ---- the table ---- */

const sp_subject sp__subjects_runs[] = {
    {.name = "runs_lead_2",
     .test = subject_runs_lead,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 4,
     .planted = "relaxed_grant late_scatter",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_lead_3",
     .test = subject_runs_lead,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_grant late_scatter taken_counts lost_call",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_mixed_2",
     .test = subject_runs_mixed,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "relaxed_grant late_scatter",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_mixed_3",
     .test = subject_runs_mixed,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_grant late_scatter taken_counts",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_helped_1",
     .test = subject_runs_helped,
     .arg = SP_SUBJECT_ARG(1),
     .thread_count = 1,
     .planted = "batch_unhelped",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_helped_2",
     .test = subject_runs_helped,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "batch_unhelped late_scatter",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_fail_2",
     .test = subject_runs_fail,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "stays_counted forget_claim",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_fail_3",
     .test = subject_runs_fail,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_grant late_scatter",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_fail_thread_2",
     .test = subject_runs_fail_thread,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "forget_claim",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_fail_thread_3",
     .test = subject_runs_fail_thread,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "forget_claim",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_cancel",
     .test = subject_runs_cancel,
     .arg = SP_SUBJECT_ARG(50),
     .thread_count = 3,
     .planted = "leave_promised",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_cancel_fail",
     .test = subject_runs_cancel,
     .arg = SP_SUBJECT_ARG(SP_RUNS_BAD),
     .thread_count = 3,
     .planted = "leave_promised",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "runs_awaited",
     .test = subject_runs_awaited,
     .thread_count = 3,
     .planted = "cancel_missed",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "submit_queues_2",
     .test = subject_submit_queues,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_submit_queue two_growers",
     .seconds = 0.5},
    {.name = "submit_queues_3",
     .test = subject_submit_queues,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "relaxed_submit_queue sharer_frees",
     .seconds = 0.5},
    {.name = "run_queues_2",
     .test = subject_run_queues,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "relaxed_run_queue",
     .seconds = 0.5},
    {.name = "run_queues_3",
     .test = subject_run_queues,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "takes_hint relaxed_run_queue",
     .seconds = 0.5},
    {0},
};
