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
    sp_rt_model *model; /* held */
    uint32_t word_count;
    uint64_t words[]; /* key of the plan */
} build_job;

static struct {
    sp_mutex lock;
    sp_cond changed; /* a job was added or has ended, or `is_stopping` was set */
    build_job *first SP_GUARDED_BY(lock);
    build_job **end SP_GUARDED_BY(lock);
    bool is_running SP_GUARDED_BY(lock);
    bool is_building SP_GUARDED_BY(lock);
    sp_atomic_u32 is_stopping; /* set under the lock; read without it between two plans */
    sp_thread thread;          /* of the caller that sets or clears is_running */
    sp_atomic_u64 number;      /* of the thread, which may end the process itself; orders nothing */
    bool has_exit SP_GUARDED_BY(lock);                      /* builder_exit is registered */
    bool is_ended SP_GUARDED_BY(lock);                      /* the process ends */
} builder = {.lock = SP_MUTEX_INIT(SP_LOCK_BATCH_BUILDER)}; /* process-wide: one thread for all */

/* ---- a job ---- */

/* NULL: evicted since. */
static sp_plan_entry *job_find(const build_job *job)
{
    sp_plan_key key;
    sp__plan_key_borrow(&key, (uint64_t *)job->words, job->word_count);
    return sp__plan_cache_find(&job->model->plans, &key);
}

/* Plans in use are not evicted, and a run may wait for that, one in the log's callback too: the
 * job's plan is in use only while the result is attached. */
static void plans_attach(const build_job *job, sp_batch_plans *plans)
{
    const uint32_t count = plans->bucket_count;
    sp_plan_entry *entry = job_find(job);
    const bool is_attached = entry != NULL && sp__plan_entry_attach(entry, &plans->extra);
    if (entry != NULL) sp__plan_cache_release(&job->model->plans, entry);
    if (is_attached) {
        SP_LOG(SP_LOG_INFO, "plans for batches were built: %u", count);
    } else {
        sp__batch_plans_destroy(plans);
    }
}

/* No memory: the plan asks again, after as many waits. */
static void waits_restart(const build_job *job)
{
    sp_plan_entry *entry = job_find(job);
    if (entry == NULL) return;
    sp_store_relaxed(&entry->waits, 0);
    sp__plan_cache_release(&job->model->plans, entry);
}

static void job_run(build_job *job)
{
    sp_batch_plans *plans;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status =
        sp__batch_plans_make(job->model, job->words, job->word_count, &builder.is_stopping, &plans);
    if (status == SP_OK) plans_attach(job, plans);
    else if (status == SP_OUT_OF_MEMORY) waits_restart(job);
    sp__error_put_back(&scope);
}

static void job_free(build_job *job)
{
    sp__model_drop(job->model);
    sp_free(job);
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
        job_run(job);
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

/* By the shutdown, and when the process ends. From the log's callback, on the thread itself, it
 * does not wait: the thread ends after the callback. */
static void builder_stop(void)
{
    sp_mutex_lock(&builder.lock);
    const bool is_running = builder.is_running;
    builder.is_running = false;
    sp_store_relaxed(&builder.is_stopping, 1);
    if (is_running) sp_cond_broadcast(&builder.changed);
    sp_mutex_unlock(&builder.lock);
    if (is_running && !is_builder()) {
        sp_thread_join(&builder.thread);
        sp_cond_deinit(&builder.changed);
        sp_store_relaxed(&builder.is_stopping, 0);
    }
    jobs_free();
}

/* The thread itself may end the process, from the log's callback. */
static void builder_exit(void)
{
    if (sp__runtime_is_forked() || is_builder()) return;
    sp_mutex_lock(&builder.lock);
    builder.is_ended = true;
    sp_mutex_unlock(&builder.lock);
    builder_stop();
}

/* ---- requests ---- */

/* Not after the phase has changed: the shutdown stops the builder after that. */
static bool builder_start_locked(void) SP_REQUIRES(&builder.lock)
{
    /* Before the phase is read. */
    if (!SP_PLANTED(late_stop_fn)) sp__runtime_set_stop(builder_stop);
    if (sp_load_seq_cst(&sp__runtime_phase) != SP_RUNTIME_UP || builder.is_ended) return false;
    if (builder.is_running) return true;
    if (!builder.has_exit) builder.has_exit = sp_thread_at_exit(builder_exit);
    if (!builder.has_exit) return false;
    sp_cond_init(&builder.changed);
    builder.end = &builder.first;
    sp_store_relaxed(&builder.is_stopping, 0);
    if (SP_PLANTED(late_stop_fn)) sp__runtime_set_stop(builder_stop);
    builder.is_running =
        sp_thread_create(&builder.thread, "sp-batches", builder_main, NULL) == SP_OK;
    if (!builder.is_running) sp_cond_deinit(&builder.changed);
    return builder.is_running;
}

static build_job *job_create(sp_rt_model *model, const sp_plan_entry *entry)
{
    const size_t bytes = entry->word_count * sizeof *entry->words;
    build_job *job = sp_malloc(sizeof *job + bytes);
    if (job == NULL) return NULL;
    *job = (build_job){.model = model, .word_count = entry->word_count};
    memcpy(job->words, entry->words, bytes);
    sp__object_hold(&model->object);
    return job;
}

void sp__batch_builder_request(sp_rt_model *model, const sp_plan_entry *entry)
{
    if (sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_OFF) return;
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
        if (!is_added) job_free(job); /* not the last hold: the caller has one */
    }
    sp__error_put_back(&scope);
}

void sp__batch_builder_drain(void)
{
    sp_mutex_lock(&builder.lock);
    while (builder.is_running && (builder.first != NULL || builder.is_building)) {
        sp_cond_wait(&builder.changed, &builder.lock);
    }
    sp_mutex_unlock(&builder.lock);
}
