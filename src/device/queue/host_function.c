/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions of a queue. Foreign code, which may end its thread instead of returning: the
 * function has then failed, and the thread's claim or job is released while it exits. */
#include "base/assert.h"
#include "base/error.h"
#include "base/lock_check.h"
#include "base/thread.h"
#include "device/queue/queue.h"
#include "device/queue/engine.h"
#include "device/queue/record.h"

/* One call; on the calling thread's stack. */
typedef struct host_call {
    sp_command_queue *queue;
    const sp_record *record;
    sp_thread_record *thread; /* NULL on an executor thread without memory for one */
    sp_status status;         /* returned by the function */
    sp_point point;           /* of the submission that contains the function */
} host_call;

static void call_enter(host_call *call)
{
    sp_command_queue *queue = call->queue;
    call->point = (sp_point){&queue->base.timeline, sp_load_relaxed(&queue->drained) + 1};
    if (call->thread == NULL) return;
    SP_ASSERT(call->thread->inside == NULL);
    call->thread->inside = &call->point;
}

/* The function has returned, or ended its thread, with this status and last error. */
static void call_leave(host_call *call, sp_status status)
{
    sp_cursor *cursor = &call->queue->cursor;
    /* On this thread, whose last error is the message of the failure. */
    cursor->host_fault = status == SP_OK ? SP_NO_FAULT : sp__fault_create(status);
    cursor->is_host_done = true;
    if (call->thread != NULL) call->thread->inside = NULL;
}

static void call_function(void *arg)
{
    host_call *call = arg;
    const sp_record *record = call->record;
    sp_lock_check_none("a host function");
    call->status = record->command.host(record->command.ctx, call->queue->cursor.fault);
}

/* call_leave runs once: a cancellation takes effect before the guard returns, or not at all. */
static void call_guarded(host_call *call, sp_thread_ended_fn ended)
{
    call_enter(call);
    sp_thread_guard(call_function, ended, call);
    call_leave(call, call->status);
}

static void call_leave_failed(host_call *call)
{
    call_leave(call, sp__fail(SP_FAILED, "a host function ended its thread (pthread_exit or "
                                         "cancellation) instead of returning"));
}

/* ---- on the executor ---- */

/* Unparks the queue, which is parked until the job is done. */
static void job_finish(host_call *call)
{
    sp_command_queue *queue = call->queue;
    sp_store_relaxed(&queue->by_host, sp_load_relaxed(&queue->by_host) + 1);
    /* Before the function is seen to be done: its streams are then already released. */
    sp__host_executor_tidy();
    sp__queue_unpark(queue);
}

static bool executor_thread_ended(void *arg)
{
    call_leave_failed(arg);
    job_finish(arg);
    return false;
}

static void job_run(sp_host_job *job)
{
    sp_command_queue *queue = SP_CONTAINER_OF(job, sp_command_queue, job);
    host_call call = {.queue = queue, .record = queue->cursor.host, .thread = sp__thread_record()};
    call_guarded(&call, executor_thread_ended);
    job_finish(&call);
}

/* ---- inline ---- */

/* The thread has the claim, inside sp__queue_drain. */
static bool helper_ended(void *arg)
{
    host_call *call = arg;
    sp_command_queue *queue = call->queue;
    const sp_queue_engine *engine = sp__queue_device_of(queue)->options.engine;
    const sp_fpenv fpenv = queue->cursor.fpenv;
    call_leave_failed(call);
    call->thread->runs_own_functions = false;
    if (!SP_PLANTED(claim_is_lost)) sp__queue_give_up_with_work(queue);
    engine->leave();
    sp_fpenv_leave(fpenv);
    sp__error_abandon_scopes();
    return false;
}

static bool call_may_run_inline(const sp_command_queue *queue, const sp_executor *executor)
{
    return executor->kind == SP_HELPER && executor->record->runs_own_functions &&
           executor->record->number == queue->cursor.thread;
}

bool sp__queue_host_is_done(sp_command_queue *queue, const sp_record *record,
                            const sp_executor *executor)
{
    if (queue->cursor.is_host_done) return true;
    const sp_queue_engine *engine = sp__queue_device_of(queue)->options.engine;
    if (!engine->settle(queue)) return false;
    if (call_may_run_inline(queue, executor)) {
        host_call call = {.queue = queue, .record = record, .thread = executor->record};
        call_guarded(&call, helper_ended);
        return true;
    }
    queue->cursor.host = record;
    queue->job.run = job_run;
    sp_store_relaxed(&queue->parked_on, NULL);
    sp__queue_become_parked(queue);
    const bool is_accepted = sp__host_executor_post(&queue->job);
    SP_ASSERT(is_accepted); /* the executor stops after all devices */
    (void)is_accepted;
    return false;
}
