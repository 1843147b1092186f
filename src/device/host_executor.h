/* SPDX-License-Identifier: Apache-2.0 */
/* The host executor: threads that run host functions unless the submitting thread runs them inline
 * while it waits. One executor for all devices, so that no device's worker runs foreign code.
 *
 * Streams that a function makes current or leases on its thread are released when it ends. A
 * function may end its thread (pthread_exit, cancellation): its job is then over, and another
 * thread replaces it.
 *
 * A host function may wait. During its wait a spare thread runs the other functions, so that a
 * function is delayed only while others run, not while they wait:
 *     threads - blocked >= 1  whenever a job is queued.
 * A function whose wait has ended continues at once, also beside one that started during the wait:
 * it may hold an application lock that the other one needs. */
#ifndef SP_DEVICE_HOST_EXECUTOR_H
#define SP_DEVICE_HOST_EXECUTOR_H

#include <stdbool.h>

#include <streampool/status.h>

typedef struct sp_host_job sp_host_job;

struct sp_host_job {
    sp_host_job *next;
    /* Called once, on an executor thread, without locks. The job belongs to the callee. */
    void (*run)(sp_host_job *job);
};

/* Starts the executor's first thread if it is not running: called when a device is opened, so that
 * posting cannot fail. */
sp_status sp__host_executor_start(void);

/* Queues a job; never blocks. False, and the caller keeps the job, once the executor has stopped:
 * accepting and stopping are decided under one lock, so an accepted job always runs. */
bool sp__host_executor_post(sp_host_job *job);

/* For a job that was refused because the executor has stopped: runs it on a separate thread, so
 * that it cannot end the caller's, and waits for it. Runs it inline if no thread can be created. */
void sp__host_executor_run_apart(sp_host_job *job);

/* On an executor thread, between functions: releases what the previous one left on the thread, its
 * current streams and their leases. A job calls it before it signals that its function is done; the
 * executor calls it after every job. */
void sp__host_executor_tidy(void);

/* Around a wait inside a host function, on an executor thread: other functions may start in
 * between. SP_EXHAUSTED, with nothing changed, if another thread is needed and cannot be created.
 */
sp_status sp__host_executor_block(void);
void sp__host_executor_unblock(void);

/* Runs all queued jobs, and those posted during the call, then ends and joins the threads. */
void sp__host_executor_stop(void);

#endif
