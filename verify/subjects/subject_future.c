/* SPDX-License-Identifier: Apache-2.0 */
/* Futures: queries and waits see either a run that is on no queue yet, or its last point; and the
 * run's writes once the future is done. */
#include "support.h"

#include <string.h>

#include "device/host_executor.h"
#include "exec/future.h"
#include "sched/subject.h"

typedef struct world {
    sp_queue_device *common;
    sp_command_queue *queue;
    sp_subject_log log; /* plain: what the run writes */
    sp_rt_future *run;
    sp_future future;
    uint32_t calls;        /* plain: of the callback */
    sp_subject_log failed; /* plain: what a batch writes that fails */
    sp_waiter batch_waiter;
} world;

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->common = sp__subject_device(0);
    w->queue = sp__subject_queue(w->common, 0, false);
    SP_SCHED_ASSERT(sp__future_create(&w->run) == SP_OK);
    w->future = sp__future_publish(w->run);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(w->log.count == 1);
    SP_SCHED_ASSERT(sp_future_query(w->future) == SP_OK);
    SP_SCHED_ASSERT(sp_future_release(w->future) == SP_OK);
    sp__subject_device_free(w->common);
    sp__futures_deinit();
    sp__subject_end();
}

/* What the submitter and the run's last point do. */
static void run(void *arg)
{
    world *w = arg;
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queue, &w->log, 0, NULL, 0, &point) == SP_OK);
    sp__future_start(w->run, point);
    sp__subject_poll(w->common, 1, point);
    sp__future_complete(w->run);
    sp__future_drop(w->run);
}

static void query(void *arg)
{
    world *w = arg;
    const sp_status status = sp_future_query(w->future);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_NOT_READY);
    if (status == SP_OK) SP_SCHED_ASSERT(w->log.count == 1);
}

static void wait(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_future_wait(w->future) == SP_OK);
    SP_SCHED_ASSERT(w->log.count == 1);
}

static void subject_future_query(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){run, query}, 2, &w);
    end(&w);
}

static void subject_future_wait(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){run, wait}, 2, &w);
    end(&w);
}

/* ---- callbacks ---- */

static void called(void *ctx, sp_status status)
{
    world *w = ctx;
    SP_SCHED_ASSERT(status == SP_OK);
    SP_SCHED_ASSERT(w->log.count == 1);
    w->calls++;
}

static void ask_for_call(void *arg)
{
    world *w = arg;
    SP_SCHED_ASSERT(sp_future_on_complete(w->future, called, w) == SP_OK);
}

static void subject_future_callback(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    SP_SCHED_ASSERT(sp__host_executor_start() == SP_OK);
    sp__subject_run((const sp_thread_fn[]){run, ask_for_call}, 2, &w);
    sp__host_executor_stop();
    SP_SCHED_ASSERT(w.calls == 1);
    end(&w);
}

/* ---- the search for wait cycles follows a future to its run ---- */

static void visit(void *ctx, sp_point point)
{
    const world *w = ctx;
    SP_SCHED_ASSERT(point.timeline == &w->queue->base.timeline && point.value == 1);
}

static void visit_any(void *ctx, sp_point point)
{
    const world *w = ctx;
    SP_SCHED_ASSERT(point.timeline == &w->queue->base.timeline && point.value <= 2);
}

static void search(void *arg)
{
    world *w = arg;
    (void)w->run->timeline.source->each_wait(&w->run->timeline, w->run->value, visit, w);
}

static void subject_future_search(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){run, search}, 2, &w);
    end(&w);
}

/* ---- a run in a batch ---- */

static void batch_passed(sp_waiter *waiter)
{
    world *w = SP_CONTAINER_OF(waiter, world, batch_waiter);
    sp__future_complete(w->run);
    sp__future_drop(w->run);
}

/* Only the wait computes the batch: there is no worker. */
static void subject_future_batch(void *arg)
{
    (void)arg;
    world w;
    sp_point point;
    begin(&w);
    SP_SCHED_ASSERT(sp__subject_append(w.queue, &w.log, 0, NULL, 0, &point) == SP_OK);
    sp__future_start_in_batch(w.run, point);
    w.batch_waiter = (sp_waiter){.value = point.value, .fire = batch_passed};
    SP_SCHED_ASSERT(sp__timeline_register(point.timeline, &w.batch_waiter));
    sp__subject_run((const sp_thread_fn[]){wait, query}, 2, &w);
    end(&w);
}

/* The batch fails, which is seen once it has passed; then the run is alone. */
static void batch_then_run(void *arg)
{
    world *w = arg;
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(w->queue, &w->failed, 0, NULL, 0, &point) == SP_OK);
    sp__future_start_in_batch(w->run, point);
    sp__subject_poll(w->common, 1, point);
    run(arg);
}

static void subject_future_batch_breaks(void *arg)
{
    const sp_thread_fn *fn = arg;
    world w;
    begin(&w);
    sp__subject_run((const sp_thread_fn[]){batch_then_run, *fn}, 2, &w);
    SP_SCHED_ASSERT(w.failed.count == 1);
    end(&w);
}

static void query_or_search(void *arg)
{
    world *w = arg;
    query(w);
    (void)w->run->timeline.source->each_wait(&w->run->timeline, w->run->value, visit_any, w);
}

static const sp_thread_fn batch_wait = wait, batch_query = query_or_search;

/* ---- any of two ---- */

typedef struct pair {
    sp_queue_device *common;
    sp_command_queue *queues[2];
    sp_subject_log logs[2]; /* plain: what each run writes */
    sp_rt_future *runs[2];
    sp_future futures[2];
} pair;

static void pair_begin(pair *p)
{
    memset(p, 0, sizeof *p);
    p->common = sp__subject_device(0);
    for (uint32_t i = 0; i < 2; i++) {
        p->queues[i] = sp__subject_queue(p->common, i, false);
        SP_SCHED_ASSERT(sp__future_create(&p->runs[i]) == SP_OK);
        p->futures[i] = sp__future_publish(p->runs[i]);
    }
}

static void pair_end(pair *p)
{
    for (uint32_t i = 0; i < 2; i++) {
        SP_SCHED_ASSERT(p->logs[i].count == 1);
        SP_SCHED_ASSERT(sp_future_release(p->futures[i]) == SP_OK);
    }
    sp__subject_device_free(p->common);
    sp__futures_deinit();
    sp__subject_end();
}

static void pair_run(pair *p, uint32_t i)
{
    sp_point point;
    SP_SCHED_ASSERT(sp__subject_append(p->queues[i], &p->logs[i], i, NULL, 0, &point) == SP_OK);
    sp__future_start(p->runs[i], point);
    sp__subject_poll(p->common, 2, point);
    sp__future_complete(p->runs[i]);
    sp__future_drop(p->runs[i]);
}

static void run_first(void *arg)
{
    pair_run(arg, 0);
}

static void run_second(void *arg)
{
    pair_run(arg, 1);
}

static uint32_t pair_wait_any(pair *p)
{
    uint32_t which = 2;
    SP_SCHED_ASSERT(sp_future_wait_any(p->futures, 2, -1, &which) == SP_OK);
    SP_SCHED_ASSERT(which < 2 && p->logs[which].count == 1);
    return which;
}

/* The first run is not submitted before the second one is done. */
static void wait_any_then_run_first(void *arg)
{
    SP_SCHED_ASSERT(pair_wait_any(arg) == 1);
    pair_run(arg, 0);
}

static void wait_any_then_all(void *arg)
{
    pair *p = arg;
    (void)pair_wait_any(p);
    SP_SCHED_ASSERT(sp_future_wait_all(p->futures, 2, -1) == SP_OK);
    SP_SCHED_ASSERT(p->logs[0].count == 1 && p->logs[1].count == 1);
}

static void subject_future_any(void *arg)
{
    (void)arg;
    pair p;
    pair_begin(&p);
    sp__subject_run((const sp_thread_fn[]){run_second, wait_any_then_run_first}, 2, &p);
    pair_end(&p);
}

static void subject_future_any_of_both(void *arg)
{
    (void)arg;
    pair p;
    pair_begin(&p);
    sp__subject_run((const sp_thread_fn[]){run_first, run_second, wait_any_then_all}, 3, &p);
    pair_end(&p);
}

/* ---- the table ---- */

const sp_subject sp__subjects_future[] = {
    {.name = "future_query",
     .test = subject_future_query,
     .thread_count = 2,
     .planted = "relaxed_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_wait",
     .test = subject_future_wait,
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "relaxed_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_callback",
     .test = subject_future_callback,
     .thread_count = 3,
     .planted = "relaxed_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_search",
     .test = subject_future_search,
     .thread_count = 2,
     .planted = "relaxed_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_batch",
     .test = subject_future_batch,
     .thread_count = 2,
     .planted = "batch_unhelped",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_batch_breaks",
     .test = subject_future_batch_breaks,
     .arg = (void *)(uintptr_t)&batch_wait,
     .thread_count = 2,
     .inexhaustible = "the wait helps two commands in turn: no end within 200,000 orders",
     .planted = "relaxed_batch_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_batch_search",
     .test = subject_future_batch_breaks,
     .arg = (void *)(uintptr_t)&batch_query,
     .thread_count = 2,
     .dpor_seconds = 10,
     .planted = "relaxed_batch_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_any",
     .test = subject_future_any,
     .thread_count = 2,
     .planted = "relaxed_start any_of_first any_keeps_nodes",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "future_any_of_both",
     .test = subject_future_any_of_both,
     .thread_count = 3,
     .planted = "relaxed_start",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {0},
};
