/* SPDX-License-Identifier: Apache-2.0 */
/* The host executor: the thread on which host functions run when their submitter does not happen to
 * wait for them itself. One for all devices, so that no device's worker ever runs foreign code.
 *
 * What a function makes current or leases on its thread goes back when it ends. A function may end
 * its thread (pthread_exit, a cancellation): its job is over then, and another thread goes on.
 *
 * A host function may wait. While it does, a spare thread goes on with the other functions, so that
 * none waits behind another for longer than that other runs:
 *     threads - blocked >= 1  whenever a job is queued.
 * A function whose wait is over goes on at once, also beside another that started meanwhile: it may
 * hold a lock of the application's that the other one wants. */
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

/* Starts the executor's first thread if it does not run yet: called when a device is opened, so
 * that posting cannot fail. */
sp_status sp__host_executor_start(void);

/* Queues a job; never blocks. False, and the job is still the caller's, once the executor has
 * stopped: accepting and stopping are decided under one lock, so an accepted job always runs. */
bool sp__host_executor_post(sp_host_job *job);

/* For a job that was refused because the executor has stopped: runs it on a thread of its own, so
 * that its end is not the caller's, and waits for it. In place without memory for a thread. */
void sp__host_executor_run_apart(sp_host_job *job);

/* On an executor thread, between functions: what the one before has left on the thread, its current
 * streams and their leases, goes back. A job calls it before it tells anyone that its function is
 * done; the executor calls it after every job. */
void sp__host_executor_tidy(void);

/* Around a wait inside a host function, on an executor thread: meanwhile others may start.
 * SP_EXHAUSTED, with nothing changed, if another thread is needed and cannot be had. */
sp_status sp__host_executor_block(void);
void sp__host_executor_unblock(void);

/* Runs what is queued, and what is posted meanwhile, then ends and joins the threads. */
void sp__host_executor_stop(void);

#endif
