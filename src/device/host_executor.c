/* SPDX-License-Identifier: Apache-2.0 */
/* A FIFO list of jobs, and as many threads as there are waiting functions, plus one that runs jobs
 * and a spare. A thread ends when there are more than that, when the executor stops, or when a job
 * ends it; it is then replaced if needed. */
#include "device/host_executor.h"

#include "base/delay.h"
#include "base/error.h"
#include "base/lock_check.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "device/thread_record.h"

#define MAX_THREADS 64
/* Idle threads that are kept: one for the next job, and one so that functions that wait
 * occasionally do not start a thread each time. */
#define MAX_IDLE 2

typedef struct executor_thread {
    sp_thread thread;
    bool is_live; /* will poll the list again */
} executor_thread;

/* process-wide: host functions cross devices. */
static struct {
    sp_mutex lock;
    sp_cond work; /* jobs, or stop */
    sp_cond gone; /* no thread is live */
    sp_host_job *first SP_GUARDED_BY(lock);
    sp_host_job **end SP_GUARDED_BY(lock);
    executor_thread threads[MAX_THREADS] SP_GUARDED_BY(lock);
    uint32_t live_count SP_GUARDED_BY(lock);
    uint32_t busy_count SP_GUARDED_BY(lock);    /* threads inside a job */
    uint32_t blocked_count SP_GUARDED_BY(lock); /* of those, threads whose job waits */
    /* A thread that has ended, joined by a thread without a job, the next one that ends, or stop.
     */
    sp_thread ended SP_GUARDED_BY(lock);
    bool has_ended SP_GUARDED_BY(lock);
    bool is_stopping SP_GUARDED_BY(lock);
} executor = {.lock = SP_MUTEX_INIT(SP_LOCK_EXECUTOR)};

/* ---- threads ---- */

static void executor_main(void *arg);
static bool thread_ended(void *arg);

static sp_status thread_add_locked(void) SP_REQUIRES(&executor.lock)
{
    for (uint32_t i = 0; i < MAX_THREADS; i++) {
        executor_thread *place = &executor.threads[i];
        if (place->is_live) continue;
        SP_TRY(sp_thread_create(&place->thread, "sp-host", executor_main, place));
        place->is_live = true;
        executor.live_count++;
        return SP_OK;
    }
    return sp__fail(SP_EXHAUSTED, "%d host functions wait at once; let some return first",
                    MAX_THREADS - 1);
}

/* The calling thread will not poll the list again. True: it must join *former, without the lock. */
static bool thread_leave_locked(executor_thread *self, sp_thread *former)
    SP_REQUIRES(&executor.lock)
{
    const bool has_former = executor.has_ended;
    *former = executor.ended;
    executor.ended = self->thread;
    executor.has_ended = true;
    self->is_live = false;
    if (--executor.live_count == 0) sp_cond_broadcast(&executor.gone);
    sp_cond_signal(&executor.work);
    return has_former;
}

/* ---- jobs ---- */

/* A job starts only while all other jobs are blocked in waits. These may resume beside it. */
static bool job_may_run_locked(void) SP_REQUIRES(&executor.lock)
{
    return executor.first != NULL && executor.busy_count == executor.blocked_count;
}

/* For a thread without a job. During stop no thread ends while a job runs: that job may wait for
 * one that is not posted yet. */
static bool thread_may_end_locked(void) SP_REQUIRES(&executor.lock)
{
    const uint32_t busy = SP_PLANTED(blocked_are_idle) ? 0 : executor.busy_count;
    const bool is_surplus = executor.live_count - busy > MAX_IDLE;
    return is_surplus ||
           (executor.is_stopping && executor.first == NULL && executor.busy_count == 0);
}

static void job_end_locked(void) SP_REQUIRES(&executor.lock)
{
    executor.busy_count--;
    if (executor.is_stopping) sp_cond_broadcast(&executor.work);
}

/* Joins a thread that has ended, if another one waits for jobs. Counts as a waiting job, since the
 * ending thread may still run foreign code, in destructors of its slots. */
static bool thread_join_ended_locked(void) SP_REQUIRES(&executor.lock)
{
    if (!executor.has_ended || executor.live_count <= executor.blocked_count + 1) return false;
    sp_thread ended = executor.ended;
    executor.has_ended = false;
    executor.busy_count++;
    executor.blocked_count++;
    sp_mutex_unlock(&executor.lock);
    sp_thread_join(&ended);
    sp_mutex_lock(&executor.lock);
    executor.blocked_count--;
    job_end_locked();
    return true;
}

/* Waits for a job; NULL: the thread ends. */
static sp_host_job *job_next_locked(void) SP_REQUIRES(&executor.lock)
{
    while (!job_may_run_locked()) {
        if (thread_may_end_locked()) return NULL;
        if (thread_join_ended_locked()) continue;
        sp_cond_wait(&executor.work, &executor.lock);
    }
    sp_host_job *job = executor.first;
    executor.first = job->next;
    if (executor.first == NULL) executor.end = &executor.first;
    executor.busy_count++;
    return job;
}

void sp__host_executor_tidy(void)
{
    if (!SP_PLANTED(streams_stay)) sp_tls_end(SP_TLS_STREAM);
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) sp__thread_forget_accesses(record);
}

typedef struct one_job {
    executor_thread *self;
    sp_host_job *job;
    bool has_ended; /* the job has ended its thread, which is kept: the job is over */
} one_job;

static void job_run(void *arg)
{
    sp_host_job *job = ((one_job *)arg)->job;
    /* Before every job, since an earlier attempt may have failed without memory. */
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->is_executor = true;
    sp_delay_point();
    sp_lock_check_none("a host job");
    job->run(job);
    sp__host_executor_tidy();
}

static void executor_serve(executor_thread *self)
{
    sp_thread former;
    sp_mutex_lock(&executor.lock);
    for (;;) {
        one_job one = {.self = self, .job = job_next_locked()};
        if (one.job == NULL) break;
        sp_mutex_unlock(&executor.lock);
        sp_thread_guard(job_run, thread_ended, &one);
        sp_mutex_lock(&executor.lock);
        if (!one.has_ended) job_end_locked();
    }
    const bool has_former = thread_leave_locked(self, &former);
    sp_mutex_unlock(&executor.lock);
    if (has_former) sp_thread_join(&former);
}

static void executor_main(void *arg)
{
    executor_serve(arg);
}

/* The job has ended its thread, which is exiting. A new thread replaces it if only blocked ones
 * would be left; if none can be created, this one is kept. */
static bool thread_ended(void *arg)
{
    one_job *one = arg;
    sp_thread former;
    bool has_former = false;
    one->has_ended = true;
    sp__host_executor_tidy();
    sp_mutex_lock(&executor.lock);
    job_end_locked();
    const bool is_last =
        executor.live_count == executor.blocked_count + 1 && !SP_PLANTED(no_successor);
    const bool must_stay = is_last && thread_add_locked() != SP_OK;
    if (!must_stay) has_former = thread_leave_locked(one->self, &former);
    sp_mutex_unlock(&executor.lock);
    sp_cond_signal(&executor.work);
    if (has_former) sp_thread_join(&former);
    return must_stay;
}

/* ---- without the executor ---- */

static void apart_call(void *arg)
{
    sp_host_job *job = arg;
    job->run(job);
}

static bool apart_ended(void *arg)
{
    (void)arg;
    return false; /* the joining thread continues */
}

static void apart_main(void *arg)
{
    sp_thread_guard(apart_call, apart_ended, arg);
}

void sp__host_executor_run_apart(sp_host_job *job)
{
    sp_thread thread;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const bool is_apart = sp_thread_create(&thread, "sp-host", apart_main, job) == SP_OK;
    sp__error_put_back(&scope);
    if (is_apart) {
        sp_thread_join(&thread);
    } else {
        job->run(job);
    }
}

/* ---- the calls ---- */

sp_status sp__host_executor_start(void)
{
    sp_status status = SP_OK;
    sp_mutex_lock(&executor.lock);
    if (executor.live_count == 0) {
        executor.end = &executor.first;
        executor.is_stopping = false;
        status = thread_add_locked();
    }
    sp_mutex_unlock(&executor.lock);
    return status;
}

bool sp__host_executor_post(sp_host_job *job)
{
    sp_mutex_lock(&executor.lock);
    const bool is_accepted = executor.live_count > 0;
    if (is_accepted) {
        job->next = NULL;
        *executor.end = job;
        executor.end = &job->next;
    }
    sp_mutex_unlock(&executor.lock);
    if (is_accepted && !SP_PLANTED(quiet_post)) sp_cond_signal(&executor.work);
    return is_accepted;
}

sp_status sp__host_executor_block(void)
{
    sp_status status = SP_OK;
    sp_mutex_lock(&executor.lock);
    if (executor.live_count == executor.blocked_count + 1) status = thread_add_locked();
    if (status == SP_OK) executor.blocked_count++;
    sp_mutex_unlock(&executor.lock);
    if (status == SP_OK) sp_cond_signal(&executor.work);
    return status;
}

void sp__host_executor_unblock(void)
{
    sp_mutex_lock(&executor.lock);
    executor.blocked_count--;
    sp_mutex_unlock(&executor.lock);
}

void sp__host_executor_stop(void)
{
    sp_mutex_lock(&executor.lock);
    executor.is_stopping = true;
    if (SP_PLANTED(close_drops_list)) {
        executor.first = NULL;
        executor.end = &executor.first;
    }
    sp_cond_broadcast(&executor.work);
    while (executor.live_count > 0) sp_cond_wait(&executor.gone, &executor.lock);
    const bool has_ended = executor.has_ended;
    sp_thread ended = executor.ended;
    executor.has_ended = false;
    sp_mutex_unlock(&executor.lock);
    if (has_ended) sp_thread_join(&ended);
}
