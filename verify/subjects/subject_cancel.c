/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels against the rest of a submitted run's life, and against threads that wait: a run that is
 * cancelled leaves its queue or ends by itself, once, and a token tells each of its listeners. The
 * code of submitted runs, slots, contexts, futures and tokens is real; the plan is of a graph
 * without nodes, and the list of its one context has a command that writes to a log. */
#include "support.h"

#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "batch/submitted.h"
#include "device/thread_record.h"
#include "runtime/submit_queue.h"
#include "sched/subject.h"

typedef struct world {
    sp_rt_model *model;
    sp_run_slots slots;
    sp_executable *executable;
    sp_exec_context *context; /* taken by the subject, or NULL */
    sp_subject_log log;       /* plain: what the runs write */
    sp_list *list;
    sp_future runs[2];
    sp_cancel_token handle;
    sp_rt_cancel_token *token; /* held */
} world;

static const sp_graph_body no_nodes;
static const sp_graph graph = {.main = &no_nodes};
static const sp_kernel plan_kernels;
static const sp_run_terms any_terms;

/* ---- the world ---- */

static sp_plan_entry *entry_acquire(world *w)
{
    const sp_plan_request request = {.kernels = &plan_kernels};
    sp_plan_entry *entry;
    SP_SCHED_ASSERT(sp__plan_cache_acquire(&w->model->plans, &request, true, &entry) == SP_OK);
    return entry;
}

static sp_status log_append(const sp_tile *tile)
{
    sp_subject_log *log = tile->bindings[0];
    log->count++;
    return SP_OK;
}

static const sp_kernel log_kernel = {.name = "log", .run = log_append};

/* The list of the context writes to the log. */
static void list_replace(world *w)
{
    static sp_memory memory; /* process-wide: outlives each command */
    sp_binding binding;
    const sp_command command =
        sp__subject_dispatch(&log_kernel, &binding, &memory, &w->log, sizeof w->log.count, NULL);
    sp_dev *dev = w->model->device->dev;
    sp_exec_context *context = sp__exec_context_acquire_idle(w->executable);
    SP_SCHED_ASSERT(context != NULL && w->executable->segments.count == 1);
    SP_SCHED_ASSERT(dev->vtable->list_create(dev, &command, 1, 0, &w->list) == SP_OK);
    dev->vtable->list_release(context->lists[0]);
    context->lists[0] = w->list;
    context->home = SP_NO_HOME;
    w->context = context;
}

static void context_return(world *w)
{
    sp__wait_entry_resume(sp__exec_context_release(w->context));
}

static void begin(world *w)
{
    memset(w, 0, sizeof *w);
    w->model = sp_aligned_malloc(SP_CACHE_LINE, sizeof *w->model);
    SP_SCHED_ASSERT(w->model != NULL);
    memset(w->model, 0, sizeof *w->model);
    sp_store_relaxed(&w->model->object.word, 1); /* one hold: the subject's */
    w->model->graph = &graph;
    sp__run_counters_init(&w->model->counters, w->model->lanes);
    w->model->device = sp__subject_bare_device();
    SP_SCHED_ASSERT(sp__plan_cache_init(&w->model->plans, &graph, w->model->device, NULL, 1) ==
                    SP_OK);
    sp__run_slots_init(&w->slots, 1, 1);
    sp_plan_entry *entry = entry_acquire(w);
    w->executable = entry->executable;
    SP_SCHED_ASSERT(sp__submit_queues_open(w->model->device, 1) == SP_OK);
    list_replace(w);
    sp__plan_cache_release(&w->model->plans, entry);
    SP_SCHED_ASSERT(sp__cancel_token_create(&w->handle) == SP_OK);
    SP_SCHED_ASSERT(sp__cancel_token_hold(w->handle, &w->token) == SP_OK);
}

static void end(world *w)
{
    SP_SCHED_ASSERT(sp_load_relaxed(&w->model->object.word) == 1);
    SP_SCHED_ASSERT(sp__free_slots_word(&w->slots.free) == w->slots.count);
    SP_SCHED_ASSERT(sp_load_relaxed(&w->slots.submitted_count) == 0);
    sp__cancel_token_drop(w->token);
    SP_SCHED_ASSERT(sp__cancel_token_release(w->handle) == SP_OK);
    sp__run_slots_deinit(&w->slots);
    sp__plan_cache_deinit(&w->model->plans);
    sp__subject_bare_device_free(w->model->device);
    sp_free(w->model);
    sp__futures_deinit();
    sp__cancel_tokens_deinit();
    sp__subject_end();
}

/* ---- runs ---- */

static void submit(world *w, uint32_t i, sp_rt_cancel_token *token)
{
    sp_plan_entry *entry = entry_acquire(w);
    const sp_run_ports ports = {0};
    const sp_run_terms terms = {.token = token};
    const sp_batch_line line = {.slots = &w->slots};
    sp_rt_future *run;
    SP_SCHED_ASSERT(sp__submitted_create(w->model->device, w->executable, &line, &ports, &run) ==
                    SP_OK);
    SP_SCHED_ASSERT(sp__submitted_accept(run, w->model, entry, &line, &terms, &w->runs[i]) ==
                    SP_OK);
}

/* What a worker does. */
static void work(world *w)
{
    static const sp_executor executor = {
        .kind = SP_WORKER, .until = UINT64_MAX, .budget = UINT32_MAX};
    sp_command_queue *queue = sp__command_queue(sp__submit_queue_at(w->model->device, 0));
    if (sp__queue_claim(queue)) sp__queue_drain(queue, &executor);
    else sp_spin_hint();
}

static sp_status outcome(world *w, uint32_t i)
{
    sp_status status;
    while ((status = sp_future_query(w->runs[i])) == SP_NOT_READY) work(w);
    SP_SCHED_ASSERT(sp_future_release(w->runs[i]) == SP_OK);
    return status;
}

static void take_slot(world *w)
{
    SP_SCHED_ASSERT(sp__run_slots_try_acquire(&w->slots, &any_terms));
}

static void release_slot(void *arg)
{
    world *w = arg;
    sp__wait_entry_resume(sp__run_slots_release(&w->slots, &any_terms));
}

static void cancel_first(void *arg)
{
    const world *w = arg;
    SP_SCHED_ASSERT(sp_future_cancel(w->runs[0]) == SP_OK);
}

static void cancel_token(void *arg)
{
    const world *w = arg;
    sp__cancel_token_cancel(w->token);
}

/* ---- against the grant of a slot ---- */

static void subject_cancel_grant(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    context_return(&w);
    take_slot(&w);
    submit(&w, 0, NULL);
    submit(&w, 1, NULL);
    sp__subject_run((const sp_thread_fn[]){release_slot, cancel_first, cancel_first}, threads, &w);
    const sp_status status = outcome(&w, 0);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CANCELLED);
    SP_SCHED_ASSERT(outcome(&w, 1) == SP_OK); /* behind it, and not cancelled */
    SP_SCHED_ASSERT(w.log.count == (status == SP_OK ? 2u : 1u));
    end(&w);
}

/* ---- against the start of a run ---- */

static void submit_with_token(void *arg)
{
    world *w = arg;
    submit(w, 0, w->token);
}

/* The slot is not free before the run has ended: a cancelled run is in no queue. */
static void subject_cancel_submit(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    context_return(&w);
    take_slot(&w);
    sp__subject_run((const sp_thread_fn[]){submit_with_token, cancel_token}, 2, &w);
    SP_SCHED_ASSERT(outcome(&w, 0) == SP_CANCELLED);
    SP_SCHED_ASSERT(w.log.count == 0);
    release_slot(&w);
    end(&w);
}

/* The run gets its slot, and is queued for the context that the subject has. */
static void subject_cancel_context(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    take_slot(&w);
    submit(&w, 0, NULL);
    sp__subject_run((const sp_thread_fn[]){release_slot, cancel_first, cancel_first}, threads, &w);
    SP_SCHED_ASSERT(outcome(&w, 0) == SP_CANCELLED);
    SP_SCHED_ASSERT(w.log.count == 0);
    context_return(&w);
    end(&w);
}

/* The same against the context's return: one of the two has the run. */
static void return_context(void *arg)
{
    context_return(arg);
}

static void subject_cancel_context_grant(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    submit(&w, 0, NULL);
    sp__subject_run((const sp_thread_fn[]){return_context, cancel_first}, 2, &w);
    const sp_status status = outcome(&w, 0);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CANCELLED);
    SP_SCHED_ASSERT(w.log.count == (status == SP_OK ? 1u : 0u));
    end(&w);
}

/* ---- against the end of a run ---- */

static void work_until_done(void *arg)
{
    world *w = arg;
    while (sp_future_query(w->runs[0]) == SP_NOT_READY) work(w);
}

static void subject_cancel_end(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    context_return(&w);
    submit(&w, 0, w.token);
    sp__subject_run((const sp_thread_fn[]){work_until_done, cancel_token, cancel_token}, threads,
                    &w);
    const sp_status status = outcome(&w, 0);
    SP_SCHED_ASSERT(status == SP_OK || status == SP_CANCELLED);
    SP_SCHED_ASSERT(w.log.count == (status == SP_OK ? 1u : 0u));
    end(&w);
}

/* The run has no handle any more, and the next one is in its memory. */
static void work_then_submit(void *arg)
{
    world *w = arg;
    while (sp_load_relaxed(&w->slots.submitted_count) != 0) work(w);
    submit(w, 1, NULL);
    SP_SCHED_ASSERT(outcome(w, 1) == SP_OK);
}

static void subject_cancel_next(void *arg)
{
    (void)arg;
    world w;
    begin(&w);
    context_return(&w);
    submit(&w, 0, w.token);
    SP_SCHED_ASSERT(sp_future_release(w.runs[0]) == SP_OK);
    sp__subject_run((const sp_thread_fn[]){work_then_submit, cancel_token}, 2, &w);
    SP_SCHED_ASSERT(w.log.count == 1 || w.log.count == 2);
    end(&w);
}

/* ---- a thread that waits ---- */

/* As a wait for a slot, which no releaser ends. The listener's memory is gone with the wait. */
static void wait_for_cancel(void *arg)
{
    world *w = arg;
    sp_cancel_listener *listener = sp_malloc(sizeof *listener);
    sp_thread_record *record = sp__thread_record();
    SP_SCHED_ASSERT(listener != NULL && record != NULL);
    *listener = (sp_cancel_listener){.parker = &record->parker};
    if (sp__cancel_token_add(w->token, listener)) {
        while (!sp__cancel_token_is_cancelled(w->token)) {
            sp_parker_park(&record->parker, SP_NO_DEADLINE);
        }
        sp__cancel_token_remove(w->token, listener);
    }
    sp_free(listener);
}

static void subject_cancel_thread(void *arg)
{
    const uint32_t threads = *(const uint32_t *)arg;
    world w;
    begin(&w);
    context_return(&w);
    sp__subject_run((const sp_thread_fn[]){cancel_token, wait_for_cancel, wait_for_cancel}, threads,
                    &w);
    end(&w);
}

/* ---- the table ---- */

const sp_subject sp__subjects_cancel[] = {
    {.name = "cancel_grant_2",
     .test = subject_cancel_grant,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "leave_promised",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_grant_3",
     .test = subject_cancel_grant,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "leave_promised",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_submit",
     .test = subject_cancel_submit,
     .thread_count = 2,
     .planted = "cancel_missed add_unseen late_flag",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_context_2",
     .test = subject_cancel_context,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "cancel_missed",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_context_3",
     .test = subject_cancel_context,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "cancel_missed",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_context_grant",
     .test = subject_cancel_context_grant,
     .thread_count = 2,
     .planted = "leave_promised",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_end_2",
     .test = subject_cancel_end,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "hold_dropped_twice",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_end_3",
     .test = subject_cancel_end,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "hold_dropped_twice",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_next",
     .test = subject_cancel_next,
     .thread_count = 2,
     .planted = "hold_dropped_twice",
     .options = SP_SPINNERS,
     .seconds = 0.5},
    {.name = "cancel_thread_2",
     .test = subject_cancel_thread,
     .arg = SP_SUBJECT_ARG(2),
     .thread_count = 2,
     .planted = "late_flag touch_popped",
     .seconds = 0.5},
    {.name = "cancel_thread_3",
     .test = subject_cancel_thread,
     .arg = SP_SUBJECT_ARG(3),
     .thread_count = 3,
     .planted = "late_flag touch_popped",
     .seconds = 0.5},
    {0},
};
