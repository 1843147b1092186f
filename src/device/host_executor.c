/* SPDX-License-Identifier: Apache-2.0 */
/* A first-in-first-out list of jobs, and as many threads as there are functions that wait, plus
 * one. Surplus threads stay as spares until the executor stops. */
#include "device/host_executor.h"

#include "base/delay.h"
#include "base/error.h"
#include "base/lock_check.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "device/thread_record.h"

#define MAX_THREADS 64

/* process-wide: host functions cross devices. */
static struct {
    sp_mutex lock;
    sp_cond work; /* jobs, or stop */
    sp_host_job *first SP_GUARDED_BY(lock);
    sp_host_job **end SP_GUARDED_BY(lock);
    sp_thread threads[MAX_THREADS] SP_GUARDED_BY(lock);
    uint32_t thread_count SP_GUARDED_BY(lock);
    uint32_t live_count SP_GUARDED_BY(lock);    /* threads that will look at the list again */
    uint32_t busy_count SP_GUARDED_BY(lock);    /* threads inside a job */
    uint32_t blocked_count SP_GUARDED_BY(lock); /* of those, threads whose job waits */
    bool is_stopping SP_GUARDED_BY(lock);
} executor = {.lock = SP_MUTEX_INIT(SP_LOCK_EXECUTOR)};

/* A job starts only while the others are all blocked in their waits. They may go on beside it. */
static bool may_run_locked(void) SP_REQUIRES(&executor.lock)
{
    return executor.first != NULL && executor.busy_count == executor.blocked_count;
}

/* Spares stay while a job runs: it may wait for one that is still to be posted. */
static bool may_end_locked(void) SP_REQUIRES(&executor.lock)
{
    return executor.is_stopping && executor.first == NULL && executor.busy_count == 0;
}

/* Asked for before every job: there may be no memory for the record at first. */
static void mark_as_executor(void)
{
    sp_thread_record *record = sp__thread_record();
    if (record != NULL) record->is_executor = true;
}

static void executor_main(void *unused)
{
    (void)unused;
    sp_mutex_lock(&executor.lock);
    for (;;) {
        while (!may_run_locked() && !may_end_locked()) {
            sp_cond_wait(&executor.work, &executor.lock);
        }
        if (executor.first == NULL) break;
        sp_host_job *job = executor.first;
        executor.first = job->next;
        if (executor.first == NULL) executor.end = &executor.first;
        executor.busy_count++;
        sp_mutex_unlock(&executor.lock);
        mark_as_executor();
        sp_delay_point();
        sp_lock_check_none("a host job");
        job->run(job);
        sp_mutex_lock(&executor.lock);
        executor.busy_count--;
        if (executor.is_stopping) sp_cond_broadcast(&executor.work);
    }
    executor.live_count--;
    sp_mutex_unlock(&executor.lock);
}

static sp_status add_thread_locked(void) SP_REQUIRES(&executor.lock)
{
    if (executor.thread_count == MAX_THREADS) {
        return sp__fail(SP_EXHAUSTED, "%d host functions wait at once; let some return first",
                        MAX_THREADS - 1);
    }
    SP_TRY(
        sp_thread_create(&executor.threads[executor.thread_count], "sp-host", executor_main, NULL));
    executor.thread_count++;
    executor.live_count++;
    return SP_OK;
}

sp_status sp__host_executor_start(void)
{
    sp_status status = SP_OK;
    sp_mutex_lock(&executor.lock);
    if (executor.thread_count == 0) {
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
    /* Not thread_count: stop takes threads off it before they have ended. */
    const uint32_t count =
        SP_PLANTED(count_joined_threads) ? executor.thread_count : executor.live_count;
    if (count == executor.blocked_count + 1) status = add_thread_locked();
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
    sp_mutex_unlock(&executor.lock);
    sp_cond_broadcast(&executor.work);
    for (;;) {
        sp_mutex_lock(&executor.lock);
        const bool is_any = executor.thread_count > 0;
        sp_thread thread = executor.threads[is_any ? executor.thread_count - 1 : 0];
        if (is_any) executor.thread_count--;
        sp_mutex_unlock(&executor.lock);
        if (!is_any) return;
        sp_thread_join(&thread);
    }
}
