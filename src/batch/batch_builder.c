/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_builder.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"
#include "base/thread.h"
#include "batch/batch_measure.h"
#include "batch/batch_plans.h"
#include "device/thread_record.h"
#include "runtime/runtime_state.h"

typedef struct build_job {
    struct build_job *next;
    sp_batch_build build; /* the model is held */
    uint64_t words[];     /* key of the plan */
} build_job;

static struct {
    sp_mutex lock;
    sp_cond changed; /* a job was added or has ended, or one of the three below has changed */
    build_job *first SP_GUARDED_BY(lock);
    build_job **end SP_GUARDED_BY(lock);
    bool is_building SP_GUARDED_BY(lock);
    bool is_running SP_GUARDED_BY(lock); /* the thread exists, until it is joined */
    bool is_joining SP_GUARDED_BY(lock); /* a stop is about to: others wait for it */
    sp_atomic_u32 is_stopping;           /* set under the lock; read without it between two plans */
    sp_thread thread;                    /* of the caller that sets is_running or is_joining */
    sp_atomic_u64 number; /* of the thread, which may end the process itself; orders nothing */
    bool has_exit SP_GUARDED_BY(lock);                      /* builder_exit is registered */
    bool is_ended SP_GUARDED_BY(lock);                      /* the process ends */
} builder = {.lock = SP_MUTEX_INIT(SP_LOCK_BATCH_BUILDER)}; /* process-wide: one thread for all */

/* ---- a job ---- */

/* NULL: evicted since. */
static sp_plan_entry *plan_find(const sp_batch_build *build)
{
    sp_plan_key key;
    sp__plan_key_borrow(&key, (uint64_t *)(uintptr_t)build->words, build->word_count);
    return sp__plan_cache_find(&build->model->plans, &key);
}

/* Plans in use are not evicted, and a run may wait for that, one in the log's callback too: the
 * plan is in use only while something is attached. */
static bool plans_attach(const sp_batch_build *build, sp_batch_plans *plans)
{
    sp_plan_entry *entry = plan_find(build);
    if (entry == NULL) return false;
    const bool is_attached = sp__batch_plans_attach(plans, entry);
    sp__plan_cache_release(&build->model->plans, entry);
    return is_attached;
}

/* No memory: the plan asks again, after as many waits. */
static void waits_restart(const sp_batch_build *build)
{
    sp_plan_entry *entry = plan_find(build);
    if (entry == NULL) return;
    sp_store_relaxed(&entry->waits, 0);
    sp__plan_cache_release(&build->model->plans, entry);
}

static void plans_build(const sp_batch_build *build)
{
    sp_batch_plans *plans;
    const sp_status status = sp__batch_plans_make(build, &plans);
    if (status == SP_OUT_OF_MEMORY) waits_restart(build);
    if (status != SP_OK) return;
    /* Without buckets, too: they are not asked for again. */
    const bool is_attached = plans_attach(build, plans);
    const uint32_t count = sp__batch_plans_count(plans);
    sp__batch_plans_drop(plans);
    if (is_attached) SP_LOG(SP_LOG_INFO, "plans for batches were built: %u", count);
}

typedef enum job_step { JOB_ENDS, JOB_BUILDS, JOB_CONTINUES } job_step;

/* Creates one missing batch: the plan is in use no longer than that. */
static job_step plans_refill(const sp_batch_build *build)
{
    sp_plan_entry *entry = plan_find(build);
    if (entry == NULL) return JOB_ENDS;
    job_step step = JOB_BUILDS;
    sp_batch_plans *plans = sp__batch_plans_of(entry);
    if (plans != NULL) {
        step = sp__batch_plans_refill(plans) ? JOB_CONTINUES : JOB_ENDS;
        if (step == JOB_ENDS) sp__batch_plans_refill_ended(plans);
    }
    sp__plan_cache_release(&build->model->plans, entry);
    return step;
}

/* Creates all that are missing: JOB_CONTINUES if the thread is to stop. */
static job_step plans_refill_all(const sp_batch_build *build)
{
    job_step step = JOB_CONTINUES;
    while (step == JOB_CONTINUES && sp_load_relaxed(&builder.is_stopping) == 0) {
        step = plans_refill(build);
    }
    return step;
}

static void plans_refill_between(const sp_batch_build *build)
{
    (void)plans_refill_all(build);
}

static void job_run(void *arg)
{
    build_job *job = arg;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (plans_refill_all(&job->build) == JOB_BUILDS) plans_build(&job->build);
    sp__error_put_back(&scope);
}

static void job_free(build_job *job)
{
    sp__model_drop(job->build.model);
    sp_free(job);
}

/* The log's callback has ended the thread, which is kept for other jobs. */
static bool job_ended(void *arg)
{
    (void)arg;
    sp__error_abandon_scopes();
    return true;
}

/* ---- the thread ---- */

static build_job *job_pop_locked(void) SP_REQUIRES(&builder.lock)
{
    build_job *job = builder.first;
    if (job == NULL) return NULL;
    builder.first = job->next;
    if (job->next == NULL) builder.end = &builder.first;
    return job;
}

static build_job *job_wait(void)
{
    sp_mutex_lock(&builder.lock);
    builder.is_building = false;
    sp_cond_broadcast(&builder.changed);
    while (builder.first == NULL && sp_load_relaxed(&builder.is_stopping) == 0) {
        sp_cond_wait(&builder.changed, &builder.lock);
    }
    build_job *job = sp_load_relaxed(&builder.is_stopping) == 0 ? job_pop_locked() : NULL;
    builder.is_building = job != NULL;
    sp_mutex_unlock(&builder.lock);
    return job;
}

static void builder_main(void *unused)
{
    (void)unused;
    sp_store_relaxed(&builder.number, sp_thread_number());
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->ends_with_shutdown = true;
    for (build_job *job; (job = job_wait()) != NULL;) {
        sp_thread_guard(job_run, job_ended, job);
        job_free(job);
    }
}

static void jobs_free(void)
{
    for (;;) {
        sp_mutex_lock(&builder.lock);
        build_job *job = job_pop_locked();
        sp_mutex_unlock(&builder.lock);
        if (job == NULL) return;
        job_free(job);
    }
}

static bool is_builder(void)
{
    return sp_thread_number() == sp_load_relaxed(&builder.number);
}

/* True for one of several stops: it joins the thread. Not on the thread itself, in the log's
 * callback: it ends after that. */
static bool stop_begin_locked(void) SP_REQUIRES(&builder.lock)
{
    while (builder.is_joining && !SP_PLANTED(second_stop)) {
        sp_cond_wait(&builder.changed, &builder.lock);
    }
    sp_store_relaxed(&builder.is_stopping, 1);
    sp_cond_broadcast(&builder.changed);
    if (!builder.is_running || builder.is_joining || is_builder()) return false;
    builder.is_joining = true;
    return true;
}

void sp__batch_builder_stop(void)
{
    sp_mutex_lock(&builder.lock);
    if (stop_begin_locked()) {
        sp_mutex_unlock(&builder.lock);
        sp_thread_join(&builder.thread);
        jobs_free();
        sp_mutex_lock(&builder.lock);
        builder.is_running = builder.is_joining = false;
        sp_cond_broadcast(&builder.changed);
    }
    sp_mutex_unlock(&builder.lock);
}

/* The thread itself may end the process, from the log's callback. */
static void builder_exit(void)
{
    if (sp__runtime_is_forked() || is_builder()) return;
    sp_mutex_lock(&builder.lock);
    builder.is_ended = true;
    sp_mutex_unlock(&builder.lock);
    sp__batch_builder_stop();
}

/* ---- requests ---- */

/* Not after the phase has changed: the shutdown stops the builder after that. */
static bool builder_start_locked(void) SP_REQUIRES(&builder.lock)
{
    /* Before the phase is read. */
    if (!SP_PLANTED(late_stop_fn)) sp__runtime_set_stop(SP_BATCH_BUILDER, sp__batch_builder_stop);
    if (sp_load_seq_cst(&sp__runtime_phase) != SP_RUNTIME_UP || builder.is_ended) return false;
    if (builder.is_joining) return false;
    if (builder.is_running) return true;
    if (!builder.has_exit) builder.has_exit = sp_thread_at_exit(builder_exit);
    if (!builder.has_exit) return false;
    builder.end = &builder.first;
    sp_store_relaxed(&builder.is_stopping, 0);
    if (SP_PLANTED(late_stop_fn)) sp__runtime_set_stop(SP_BATCH_BUILDER, sp__batch_builder_stop);
    builder.is_running =
        sp_thread_create(&builder.thread, "sp-batches", builder_main, NULL) == SP_OK;
    return builder.is_running;
}

static build_job *job_create(sp_rt_model *model, const sp_plan_entry *entry)
{
    const size_t bytes = entry->word_count * sizeof *entry->words;
    build_job *job = sp_malloc(sizeof *job + bytes);
    if (job == NULL) return NULL;
    *job = (build_job){.build = {.model = model,
                                 .words = job->words,
                                 .word_count = entry->word_count,
                                 .is_stopping = &builder.is_stopping,
                                 .attach = plans_attach,
                                 .refill = plans_refill_between}};
    memcpy(job->words, entry->words, bytes);
    if (sp__object_hold_visited(&model->object)) return job;
    sp_free(job); /* the model has been released, and ends with the caller's run */
    return NULL;
}

bool sp__batch_builder_request(sp_rt_model *model, const sp_plan_entry *entry)
{
    if (sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_OFF) return true;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    build_job *job = job_create(model, entry);
    bool is_added = false;
    if (job != NULL) {
        sp_mutex_lock(&builder.lock);
        is_added = builder_start_locked();
        if (is_added) {
            *builder.end = job;
            builder.end = &job->next;
            if (!SP_PLANTED(quiet_request)) sp_cond_broadcast(&builder.changed);
        }
        sp_mutex_unlock(&builder.lock);
        if (!is_added) job_free(job); /* the model does not end: the caller holds or visits it */
    }
    sp__error_put_back(&scope);
    return is_added;
}

void sp__batch_builder_refill(sp_rt_model *model, const sp_plan_entry *entry)
{
    sp_batch_plans *plans = sp__batch_plans_of(entry);
    if (!sp__batch_plans_must_refill(plans)) return;
    if (!sp__batch_builder_request(model, entry)) sp__batch_plans_forget_misses(plans);
}

void sp__batch_builder_drain(void)
{
    sp_mutex_lock(&builder.lock);
    while (builder.is_running && sp_load_relaxed(&builder.is_stopping) == 0 &&
           (builder.first != NULL || builder.is_building)) {
        sp_cond_wait(&builder.changed, &builder.lock);
    }
    sp_mutex_unlock(&builder.lock);
}
