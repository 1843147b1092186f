/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/partial_threads.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/thread_record.h"
#include "exec/model_object.h"
#include "exec/partial/partial_waits.h"
#include "runtime/runtime_state.h"

enum { NONE, QUEUED, ACTIVE };

/* The runs of one device. */
typedef struct run_line {
    sp_rt_future *first; /* oldest first */
    sp_rt_future **end;  /* NULL: the address of `first` */
    uint32_t queued, active, most;
} run_line;

typedef struct pool_thread {
    sp_thread thread;
    struct pool_thread *next;
} pool_thread;

/* process-wide: its threads serve all devices */
static struct {
    sp_mutex lock;
    sp_cond changed; /* a run was pushed, or `is_stopping` was set */
    run_line lines[SP_MAX_DEVICES] SP_GUARDED_BY(lock);
    uint32_t turn SP_GUARDED_BY(lock); /* the device whose queue is read first */
    uint32_t demand SP_GUARDED_BY(lock);
    uint32_t thread_count SP_GUARDED_BY(lock);
    pool_thread *threads SP_GUARDED_BY(lock);
    sp_rt_future *active SP_GUARDED_BY(lock);
    sp_atomic_u32 is_stopping;         /* set under the lock; polled by active runs without it */
    bool has_exit SP_GUARDED_BY(lock); /* pool_exit is registered */
    bool is_ended SP_GUARDED_BY(lock); /* the process ends */
} pool = {.lock = SP_MUTEX_INIT(SP_LOCK_PARTIAL_THREADS)};

/* ---- queues ---- */

static run_line *line_of_locked(const sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    return &pool.lines[run->model->device->index];
}

static void run_link(sp_rt_future *run, sp_rt_future **link)
{
    run->partial.link = link;
    run->partial.next = *link;
    if (*link != NULL) (*link)->partial.link = &run->partial.next;
    *link = run;
}

static void run_unlink(const sp_rt_future *run)
{
    *run->partial.link = run->partial.next;
    if (run->partial.next != NULL) run->partial.next->partial.link = run->partial.link;
}

static void line_push_locked(run_line *line, sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    if (line->first == NULL) line->end = &line->first;
    run_link(run, line->end);
    line->end = &run->partial.next;
    run->partial.state = QUEUED;
    run->request.counted_in = &run->model->partial_queued;
    sp_fetch_add_relaxed(&run->model->partial_queued, 1);
    if (line->queued++ + line->active < line->most) pool.demand++;
}

/* From anywhere in the queue. */
static void line_unlink_locked(run_line *line, sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    run_unlink(run);
    if (run->partial.next == NULL) line->end = run->partial.link;
    run->partial.state = NONE;
    if (--line->queued + line->active < line->most) pool.demand--;
}

/* The run does not wait any more. */
static void line_remove_locked(run_line *line, sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    line_unlink_locked(line, run);
    sp__run_request_uncount(&run->request);
}

/* The run waits until it has been queued for a slot, or begins. */
static void run_begin_locked(run_line *line, sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    line_unlink_locked(line, run);
    if (line->queued + line->active++ < line->most) pool.demand++;
    run->partial.state = ACTIVE;
    run->partial.has_ended_waits = false;
    run_link(run, &pool.active);
}

static void run_leave_locked(sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    run_line *line = line_of_locked(run);
    run_unlink(run);
    run->partial.state = NONE;
    if (line->queued + --line->active < line->most) pool.demand--;
}

/* The oldest run of a device that may compute one more, the devices taking turns. */
static sp_rt_future *run_find_locked(void) SP_REQUIRES(&pool.lock)
{
    for (uint32_t i = 0; i < SP_MAX_DEVICES; i++) {
        const uint32_t at = (pool.turn + i) % SP_MAX_DEVICES;
        run_line *line = &pool.lines[at];
        sp_rt_future *run = line->first;
        if (run == NULL || line->active >= line->most) continue;
        pool.turn = at + 1;
        run_begin_locked(line, run);
        return run;
    }
    return NULL;
}

/* ---- the threads ---- */

/* NULL: the thread is to end. */
static sp_rt_future *run_wait_locked(void) SP_REQUIRES(&pool.lock)
{
    sp_rt_future *run = NULL;
    while (sp_load_relaxed(&pool.is_stopping) == 0 && (run = run_find_locked()) == NULL) {
        sp_cond_wait(&pool.changed, &pool.lock);
    }
    return run;
}

static void pool_main(void *unused)
{
    (void)unused;
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->ends_with_shutdown = true;
    sp_mutex_lock(&pool.lock);
    for (sp_rt_future *run; (run = run_wait_locked()) != NULL;) {
        sp_mutex_unlock(&pool.lock);
        run->partial.work->execute(run, false);
        sp__run_request_uncount(&run->request); /* it has failed before it waited for a slot */
        sp_mutex_lock(&pool.lock);
        run_leave_locked(run);
        sp_mutex_unlock(&pool.lock);
        run->partial.work->end(run);
        sp_mutex_lock(&pool.lock);
    }
    sp_mutex_unlock(&pool.lock);
}

static sp_status thread_add_locked(void) SP_REQUIRES(&pool.lock)
{
    pool_thread *self = sp_malloc(sizeof *self);
    if (self == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to start a thread");
    const sp_status status = sp_thread_create(&self->thread, "sp-partial", pool_main, NULL);
    if (status != SP_OK) {
        sp_free(self);
        return status;
    }
    self->next = pool.threads;
    pool.threads = self;
    pool.thread_count++;
    return SP_OK;
}

/* As many threads as there are runs to compute. Without a new one, the threads that compute other
 * runs of the device suffice. */
static sp_status threads_grow_locked(const run_line *line) SP_REQUIRES(&pool.lock)
{
    if (pool.demand <= pool.thread_count) return SP_OK;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    sp_status status = thread_add_locked();
    if (line->active > 0) status = SP_OK;
    return sp__error_settle(&scope, status);
}

/* ---- stop ---- */

/* An active run whose waits have not ended yet, with a hold on it and its model; NULL: none. */
static sp_rt_future *active_find(void)
{
    sp_mutex_lock(&pool.lock);
    sp_rt_future *run = pool.active;
    while (run != NULL && run->partial.has_ended_waits) run = run->partial.next;
    if (run != NULL) {
        run->partial.has_ended_waits = true;
        sp__object_hold(&run->object);
        sp__object_hold(&run->model->object);
    }
    sp_mutex_unlock(&pool.lock);
    return run;
}

/* What the active runs wait for may depend on the thread that stops them. */
static void active_end_waits(void)
{
    for (sp_rt_future *run; (run = active_find()) != NULL;) {
        sp_rt_model *model = run->model;
        sp__partial_waits_end(run);
        sp__model_drop(model);
        sp__future_drop(run);
    }
}

static sp_rt_future *queued_pop(void)
{
    sp_rt_future *run = NULL;
    sp_mutex_lock(&pool.lock);
    for (uint32_t i = 0; i < SP_MAX_DEVICES && run == NULL; i++) {
        run = pool.lines[i].first;
        if (run != NULL) line_remove_locked(&pool.lines[i], run);
    }
    sp_mutex_unlock(&pool.lock);
    return run;
}

static void queued_refuse(void)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    for (sp_rt_future *run; (run = queued_pop()) != NULL;) {
        run->fault = sp__fault_create(
            sp__fail(SP_CLOSED, "streampool was shut down (sp_shutdown) before the run's turn"));
        run->partial.work->end(run);
    }
    sp__error_put_back(&scope);
}

/* Active runs end at their next check, queued ones are refused. */
static void pool_stop(void)
{
    sp_mutex_lock(&pool.lock);
    sp_store_relaxed(&pool.is_stopping, 1);
    pool_thread *threads = pool.threads;
    pool.threads = NULL;
    sp_cond_broadcast(&pool.changed);
    sp_mutex_unlock(&pool.lock);
    active_end_waits();
    while (threads != NULL) {
        pool_thread *next = threads->next;
        sp_thread_join(&threads->thread);
        sp_free(threads);
        threads = next;
        sp_mutex_lock(&pool.lock);
        pool.thread_count--;
        sp_mutex_unlock(&pool.lock);
    }
    if (!SP_PLANTED(queued_forgotten)) queued_refuse();
}

/* On a thread of the library, in the log's callback, it waits for no thread. */
static void pool_exit(void)
{
    if (sp__runtime_is_forked()) return;
    const sp_thread_record *record = sp__thread_record();
    sp_mutex_lock(&pool.lock);
    pool.is_ended = true;
    sp_mutex_unlock(&pool.lock);
    if (record == NULL || !record->ends_with_shutdown) pool_stop();
}

/* ---- the calls ---- */

static sp_status pool_open_locked(void) SP_REQUIRES(&pool.lock)
{
    /* Before the phase is read: the shutdown stops the threads after it has changed the phase. */
    if (!SP_PLANTED(late_partial_stop)) sp__runtime_set_stop(SP_PARTIAL_THREADS, pool_stop);
    const bool is_up = sp_load_seq_cst(&sp__runtime_phase) == SP_RUNTIME_UP;
    if (!is_up || pool.is_ended) {
        return sp__fail(SP_CLOSED, pool.is_ended
                                       ? "the process ends"
                                       : "streampool was shut down (sp_shutdown) in this process");
    }
    if (!pool.has_exit) pool.has_exit = sp_thread_at_exit(pool_exit);
    if (!pool.has_exit) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a thread's end");
    if (pool.thread_count == 0) sp_store_relaxed(&pool.is_stopping, 0);
    if (SP_PLANTED(late_partial_stop)) sp__runtime_set_stop(SP_PARTIAL_THREADS, pool_stop);
    return SP_OK;
}

/* How a new run is received, beside the queue of its device. */
typedef struct run_outlook {
    bool may_begin;   /* a slot is free, and the limit of its model is not reached */
    uint32_t waiting; /* runs of the model that wait */
} run_outlook;

static run_outlook outlook_of_locked(const sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    sp_run_slots *slots = run->slots;
    const sp_run_flow *flow = run->request.terms.flow;
    sp_mutex_lock(&slots->lock);
    const bool has_room = flow->limit == 0 || flow->active < flow->limit;
    const run_outlook outlook = {.may_begin = has_room && !sp__run_slots_use(slots, slots->count),
                                 .waiting = sp__model_waiting_locked(run->model, slots)};
    sp_mutex_unlock(&slots->lock);
    return outlook;
}

/* A run that would have to wait, for a slot or behind others, may be refused by its terms. */
static sp_status terms_check_locked(const run_line *line, const sp_rt_future *run)
    SP_REQUIRES(&pool.lock)
{
    const sp_run_terms *terms = &run->request.terms;
    if (!terms->is_refused && !terms->is_bounded) return SP_OK;
    const run_outlook outlook = outlook_of_locked(run);
    const bool is_next = line->queued == 0 && line->active < line->most;
    const bool may_begin = is_next && outlook.may_begin;
    const bool has_place = !terms->is_bounded || outlook.waiting < terms->flow->most_queued;
    if (has_place && (may_begin || !terms->is_refused)) return SP_OK;
    return sp__run_terms_refuse(terms, outlook.waiting);
}

static sp_status push_locked(sp_rt_future *run) SP_REQUIRES(&pool.lock)
{
    SP_TRY(pool_open_locked());
    run_line *line = line_of_locked(run);
    const uint32_t width = run->model->device->dev->limits.width;
    line->most = width < SP_PARTIAL_RUNS ? width : SP_PARTIAL_RUNS;
    SP_TRY(terms_check_locked(line, run));
    run->request.terms.is_refused = run->request.terms.is_bounded = false; /* accepted */
    run->partial.is_stopping = &pool.is_stopping;
    line_push_locked(line, run);
    const sp_status status = threads_grow_locked(line);
    if (status != SP_OK) line_remove_locked(line, run);
    return status;
}

sp_status sp__partial_threads_push(sp_rt_future *run)
{
    sp_mutex_lock(&pool.lock);
    const sp_status status = push_locked(run);
    if (status == SP_OK && !SP_PLANTED(quiet_push)) sp_cond_signal(&pool.changed);
    sp_mutex_unlock(&pool.lock);
    return status;
}

bool sp__partial_threads_claim(sp_rt_future *run)
{
    sp_mutex_lock(&pool.lock);
    const bool is_queued = run->partial.state == QUEUED;
    const bool is_claimed = is_queued || (SP_PLANTED(claim_active) && run->partial.state == ACTIVE);
    if (is_queued) line_remove_locked(line_of_locked(run), run);
    sp_mutex_unlock(&pool.lock);
    return is_claimed;
}

/* The run's model with a hold, if a thread computes the run; else NULL. */
static sp_rt_model *active_model(sp_rt_future *run)
{
    sp_mutex_lock(&pool.lock);
    sp_rt_model *model = run->partial.state == ACTIVE ? run->model : NULL;
    if (model != NULL) sp__object_hold(&model->object);
    sp_mutex_unlock(&pool.lock);
    return model;
}

void sp__partial_threads_await(sp_rt_future *run)
{
    if (sp__partial_threads_claim(run)) {
        run->partial.work->execute(run, true);
        run->partial.work->end(run);
        return;
    }
    sp_rt_model *model = active_model(run);
    if (model == NULL) return;
    sp__partial_waits_end(run);
    sp__model_drop(model);
}
