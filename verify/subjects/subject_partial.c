/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs in several plans: each is computed once, by a thread or by a wait, or refused by a
 * shutdown; and a wait in a callback ends the waits of the run, whatever it waits for. */
#include "support.h"

#include <string.h>

#include <streampool/streampool.h>

#include "batch/partial_threads.h"
#include "exec/model_object.h"
#include "exec/partial/partial_waits.h"
#include "sched/subject.h"

enum { RUNS = 2 };

static const sp_graph_body no_nodes;
static const sp_graph graph = {.main = &no_nodes};
static const sp_kernel kernels_a, kernels_b;

typedef struct partial_world {
    sp_rt_device *device;
    sp_rt_model model;
    sp_run_slots slots;
    sp_rt_future *run; /* of the subjects with one */
    uint32_t executed; /* plain: by one thread at a time */
    uint32_t inside;   /* plain: the slot orders it */
} partial_world;

static partial_world *world; /* process-wide: of the subject that runs */

static void execute(sp_rt_future *run, bool is_inline)
{
    (void)run;
    (void)is_inline;
    world->executed++;
}

static void end(sp_rt_future *run)
{
    sp__future_complete(run);
    sp__future_drop(run);
}

static const sp_partial_work work = {execute, end};

static void never_taken(sp_run_request *request, sp_resume_list *ready)
{
    (void)request;
    (void)ready;
    SP_SCHED_ASSERT(false);
}

static sp_rt_future *run_create(partial_world *w)
{
    sp_rt_future *run;
    SP_SCHED_ASSERT(sp__future_create(&run) == SP_OK);
    run->model = &w->model;
    run->slots = &w->slots;
    run->request = (sp_run_request){.finish = never_taken};
    run->partial.work = &work;
    run->end_queued = sp__partial_threads_await;
    return run;
}

static void world_begin(partial_world *w)
{
    memset(w, 0, sizeof *w);
    world = w;
    w->device = sp__subject_bare_device();
    w->model.device = w->device;
    w->model.graph = &graph;
    sp__run_counters_init(&w->model.counters, w->model.lanes);
    sp_store_relaxed(&w->model.object.word, 1);
    sp__run_slots_init(&w->slots, 1, 1);
    SP_SCHED_ASSERT(sp__plan_cache_init(&w->model.plans, &graph, w->device, NULL, 1) == SP_OK);
    sp_store_release(&sp__runtime_phase, SP_RUNTIME_UP);
}

static void world_end(partial_world *w)
{
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model.object.word) == 1);
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == 1);
    sp__subject_runtime_down();
    sp__plan_cache_deinit(&w->model.plans);
    sp__run_slots_deinit(&w->slots);
    sp__subject_bare_device_free(w->device);
    sp__futures_deinit();
    sp__subject_end();
}

/* ---- the threads ---- */

/* Returns the status of the run, or of the push. */
static sp_status push_and_wait(partial_world *w)
{
    sp_rt_future *run = run_create(w);
    const sp_future future = sp__future_publish(run);
    sp_status status = sp__partial_threads_push(run);
    if (status == SP_OK) status = sp_future_wait(future);
    else end(run);
    SP_SCHED_ASSERT(sp_future_release(future) == SP_OK);
    return status;
}

/* The thread that has computed the first run may be asleep before the second one. */
static void push_twice(void *arg)
{
    partial_world *w = arg;
    for (uint32_t i = 0; i < RUNS; i++) SP_SCHED_ASSERT(push_and_wait(w) == SP_OK);
    SP_SCHED_ASSERT(w->executed == RUNS);
}

static void push_in_shutdown(void *arg)
{
    partial_world *w = arg;
    const sp_status status = push_and_wait(w);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CLOSED);
}

static void stop(void *arg)
{
    (void)arg;
    SP_SCHED_ASSERT(sp_shutdown() == SP_OK);
}

/* As a wait inside a callback. */
static void push_and_await(void *arg)
{
    partial_world *w = arg;
    sp_rt_future *run = run_create(w);
    const sp_future future = sp__future_publish(run);
    SP_SCHED_ASSERT(sp__partial_threads_push(run) == SP_OK);
    sp__partial_threads_await(run);
    SP_SCHED_ASSERT(sp_future_wait(future) == SP_OK);
    SP_SCHED_ASSERT(w->executed == 1);
    SP_SCHED_ASSERT(sp_future_release(future) == SP_OK);
}

static void threads_run(const sp_thread_fn *fns, uint32_t count)
{
    static partial_world w;
    world_begin(&w);
    sp__subject_run(fns, count, &w);
    world_end(&w);
}

static void subject_partial_push(void *arg)
{
    (void)arg;
    threads_run((const sp_thread_fn[]){push_twice}, 1);
}

static void subject_partial_await(void *arg)
{
    (void)arg;
    threads_run((const sp_thread_fn[]){push_and_await}, 1);
}

static void subject_partial_stop(void *arg)
{
    (void)arg;
    threads_run((const sp_thread_fn[]){push_in_shutdown, stop}, 2);
}

/* ---- waits ---- */

static void slot_use(partial_world *w)
{
    w->inside++;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, NULL));
}

static void slot_take(void *arg)
{
    partial_world *w = arg;
    SP_SCHED_ASSERT(sp__partial_waits_begin(w->run) == SP_OK);
    bool has_slot;
    SP_SCHED_ASSERT(sp__partial_waits_take_slot(w->run, &has_slot) == SP_OK);
    if (has_slot) slot_use(w);
    sp__partial_waits_finish(w->run);
}

static void slot_leave(void *arg)
{
    slot_use(arg);
}

static void waits_end(void *arg)
{
    partial_world *w = arg;
    sp__partial_waits_end(w->run);
}

/* The main thread has the slot; `is_left` if one of the others releases it. */
static void slots_run(const sp_thread_fn *fns, uint32_t count, bool is_left)
{
    static partial_world w;
    world_begin(&w);
    w.run = run_create(&w);
    SP_SCHED_ASSERT(sp__run_slots_acquire(&w.slots, NULL) == SP_OK);
    sp__subject_run(fns, count, &w);
    if (!is_left) slot_use(&w);
    sp__future_discard(w.run);
    world_end(&w);
}

static void subject_partial_slot_end(void *arg)
{
    (void)arg;
    slots_run((const sp_thread_fn[]){slot_take, waits_end}, 2, false);
}

static void subject_partial_slot_grant(void *arg)
{
    (void)arg;
    slots_run((const sp_thread_fn[]){slot_take, slot_leave}, 2, true);
}

static void subject_partial_slot_both(void *arg)
{
    (void)arg;
    slots_run((const sp_thread_fn[]){slot_take, slot_leave, waits_end}, 3, true);
}

/* The one place of the cache is in use. */
static void plan_take(void *arg)
{
    partial_world *w = arg;
    const sp_plan_request request = {.kernels = &kernels_b};
    sp_plan_entry *entry;
    SP_SCHED_ASSERT(sp__plan_cache_acquire_until(&w->model.plans, &request,
                                                 sp__partial_waits_flag(w->run), &entry) == SP_OK);
    SP_SCHED_ASSERT(entry->is_private);
    sp__plan_cache_release(&w->model.plans, entry);
}

static void subject_partial_plan_end(void *arg)
{
    static partial_world w;
    const sp_plan_request request = {.kernels = &kernels_a};
    sp_plan_entry *entry;
    (void)arg;
    world_begin(&w);
    w.run = run_create(&w);
    SP_SCHED_ASSERT(sp__plan_cache_acquire(&w.model.plans, &request, true, &entry) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){plan_take, waits_end}, 2, &w);
    sp__plan_cache_release(&w.model.plans, entry);
    sp__future_discard(w.run);
    world_end(&w);
}

/* ---- the table ---- */

#define ENDLESS_RUNS                                                                               \
    "two runs, each with a wait for its future by sleep or by poll: no end within 330,000 orders"

const sp_subject sp__subjects_partial[] = {
    {.name = "partial_push",
     .test = subject_partial_push,
     .thread_count = 2,
     .planted = "quiet_push",
     .inexhaustible = ENDLESS_RUNS,
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "partial_await",
     .test = subject_partial_await,
     .thread_count = 2,
     .planted = "claim_active",
     .dpor_seconds = 10,
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "partial_stop",
     .test = subject_partial_stop,
     .thread_count = 3,
     .planted = "late_partial_stop queued_forgotten",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "partial_slot_end",
     .test = subject_partial_slot_end,
     .thread_count = 2,
     .planted = "waits_unseen",
     .seconds = 0.5},
    {.name = "partial_slot_grant",
     .test = subject_partial_slot_grant,
     .thread_count = 2,
     .planted = "relaxed_answer",
     .seconds = 0.5},
    {.name = "partial_slot_both",
     .test = subject_partial_slot_both,
     .thread_count = 3,
     .planted = "relaxed_answer",
     .seconds = 0.5},
    {.name = "partial_plan_end",
     .test = subject_partial_plan_end,
     .thread_count = 2,
     .planted = "quiet_waits_end",
     .seconds = 0.5},
    {0},
};
