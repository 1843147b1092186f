/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in-first-out list of jobs, and as many threads as there are functions that wait, plus one
 * that runs jobs and a spare. A thread ends when there is more than that, when the executor stops,
 * or when a job ends it; another one takes its place if it is needed. */
#include "device/host_executor.h"

#include "base/delay.h"
#include "base/error.h"
#include "base/lock_check.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "device/thread_record.h"

#define MAX_THREADS 64
/* Threads that have no job and stay: one for the next job, and one so that functions that wait now
 * and then do not start a thread each time. */
#define MAX_IDLE 2

typedef struct executor_thread {
    sp_thread thread;
    bool is_live; /* will look at the list again */
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
    /* A thread that has ended. A thread without a job joins it, or the next one that ends, or stop.
     */
    sp_thread ended SP_GUARDED_BY(lock);
    bool has_ended SP_GUARDED_BY(lock);
    bool is_stopping SP_GUARDED_BY(lock);
} executor = {.lock = SP_MUTEX_INIT(SP_LOCK_EXECUTOR)};

/* ---- threads ---- */

static void executor_main(void *arg);
static bool thread_ended(void *arg);

static sp_status add_thread_locked(void) SP_REQUIRES(&executor.lock)
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

/* The calling thread will not look at the list again. True: it joins *former, without the lock. */
static bool leave_locked(executor_thread *self, sp_thread *former) SP_REQUIRES(&executor.lock)
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

/* A job starts only while the others are all blocked in their waits. They may go on beside it. */
static bool may_run_locked(void) SP_REQUIRES(&executor.lock)
{
    return executor.first != NULL && executor.busy_count == executor.blocked_count;
}

/* For a thread without a job. All stay while a job runs that stop waits for: it may wait for one
 * that is still to be posted. */
static bool may_end_locked(void) SP_REQUIRES(&executor.lock)
{
    const uint32_t busy = SP_PLANTED(blocked_are_idle) ? 0 : executor.busy_count;
    const bool is_surplus = executor.live_count - busy > MAX_IDLE;
    return is_surplus ||
           (executor.is_stopping && executor.first == NULL && executor.busy_count == 0);
}

static void job_is_over_locked(void) SP_REQUIRES(&executor.lock)
{
    executor.busy_count--;
    if (executor.is_stopping) sp_cond_broadcast(&executor.work);
}

/* Joins a thread that has ended, while another one waits for jobs. Counts as a job that waits: what
 * the ending thread still does is foreign, in destructors of its slots. */
static bool join_ended_locked(void) SP_REQUIRES(&executor.lock)
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
    job_is_over_locked();
    return true;
}

/* Waits for a job; NULL: the thread ends. */
static sp_host_job *next_job_locked(void) SP_REQUIRES(&executor.lock)
{
    while (!may_run_locked()) {
        if (may_end_locked()) return NULL;
        if (join_ended_locked()) continue;
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
    bool has_ended; /* its thread, and stays: the job is over */
} one_job;

static void run_job(void *arg)
{
    sp_host_job *job = ((one_job *)arg)->job;
    /* Asked for before every job: there may be no memory for the record at first. */
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->is_executor = true;
    sp_delay_point();
    sp_lock_check_none("a host job");
    job->run(job);
    sp__host_executor_tidy();
}

static void serve(executor_thread *self)
{
    sp_thread former;
    sp_mutex_lock(&executor.lock);
    for (;;) {
        one_job one = {.self = self, .job = next_job_locked()};
        if (one.job == NULL) break;
        sp_mutex_unlock(&executor.lock);
        sp_thread_guard(run_job, thread_ended, &one);
        sp_mutex_lock(&executor.lock);
        if (!one.has_ended) job_is_over_locked();
    }
    const bool has_former = leave_locked(self, &former);
    sp_mutex_unlock(&executor.lock);
    if (has_former) sp_thread_join(&former);
}

static void executor_main(void *arg)
{
    serve(arg);
}

/* The job has ended its thread, which is on its way out. Another thread takes its place if none but
 * blocked ones would be left; if there can be none, this one stays and serves on. */
static bool thread_ended(void *arg)
{
    one_job *one = arg;
    sp_thread former;
    bool has_former = false;
    one->has_ended = true;
    sp__host_executor_tidy();
    sp_mutex_lock(&executor.lock);
    job_is_over_locked();
    const bool is_last =
        executor.live_count == executor.blocked_count + 1 && !SP_PLANTED(no_successor);
    const bool must_stay = is_last && add_thread_locked() != SP_OK;
    if (!must_stay) has_former = leave_locked(one->self, &former);
    sp_mutex_unlock(&executor.lock);
    sp_cond_signal(&executor.work);
    if (has_former) sp_thread_join(&former);
    return must_stay;
}

/* ---- without the executor ---- */

static void call_apart(void *arg)
{
    sp_host_job *job = arg;
    job->run(job);
}

static bool apart_ended(void *arg)
{
    (void)arg;
    return false; /* the thread that joins this one goes on */
}

static void run_apart(void *arg)
{
    sp_thread_guard(call_apart, apart_ended, arg);
}

void sp__host_executor_run_apart(sp_host_job *job)
{
    sp_thread thread;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const bool is_apart = sp_thread_create(&thread, "sp-host", run_apart, job) == SP_OK;
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
        status = add_thread_locked();
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
    if (executor.live_count == executor.blocked_count + 1) status = add_thread_locked();
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
