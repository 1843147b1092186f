/* SPDX-License-Identifier: Apache-2.0 */
/* A batch queue: submitted runs of one model, its requests, that wait until they are computed
 * together. They wait in groups, one for each plan, oldest first. The oldest of a group *leads*: it
 * leaves the group, waits for a slot of the device as any submitted run, and, with the slot, takes
 * others of its group as the rows of its batch. The thread that ends a run lets the next one lead.
 *
 *     leads  runs that have begun to lead and are not done; at most options.workers of them at the
 *            moment at which another one begins
 *     waiting = requests in groups, but for those that are to run alone after a failed batch,
 *               + leads that have no slot yet
 *     group.count > 0 or group.pending > 0  =>  the plan `entry` is in use
 *     a group has more requests that are due than its pending leads can take, and
 *     leads < options.workers  =>  a thread is between a change of the queue and the end of its
 *                                  sp__batch_queue_settle
 *     requests wait behind a gate, leads < options.workers  =>  the timer opens it
 *
 * With a delay each group has a gate, behind which its requests wait for others. It lets through as
 * many as the largest batch takes whenever that many wait behind it, and all of them when the
 * oldest has waited for max_delay_ns, or the queue is flushed. See docs/batching.md. */
#ifndef SP_BATCH_BATCH_QUEUE_H
#define SP_BATCH_BATCH_QUEUE_H

#include <streampool/batch.h>

#include "batch/batch.h"
#include "batch/batch_run.h"
#include "device/host_executor.h"
#include "exec/future.h"
#include "exec/model_object.h"

/* The requests of one plan and priority. Guarded by the lock of the queue. */
struct sp_batch_group {
    sp_batch_group *next; /* in the queue, until its end */
    /* NULL: requests that must run alone. Without requests and pending leads: undefined, and the
     * group may be used for another plan. */
    const sp_plan_entry *entry;
    uint32_t priority; /* sp_priority; high has no gate */
    sp_wait_queue requests;
    uint32_t count;   /* of them */
    uint32_t pending; /* leads that have no slot yet, and will take others */
    /* A gate that opens lets requests through, oldest first: these are due. The first that is not,
     * or NULL. */
    uint32_t due;
    sp_wait_entry *gated;
};

struct sp_rt_batch_queue {
    SP_CACHE_ALIGNED sp_object object;
    sp_rt_model *model; /* held */
    sp_host_job job;    /* destroys the queue, and perhaps the model */
    sp_mutex lock;
    sp_batch_queue_options options SP_GUARDED_BY(lock); /* none is zero, but max_delay_ns */
    /* What the queue counts for among the workers of all queues. */
    uint32_t counted_workers SP_GUARDED_BY(lock);
    sp_batch_group alone SP_GUARDED_BY(lock); /* the first group: it has no plan */
    uint32_t leads SP_GUARDED_BY(lock);
    uint32_t passed_over SP_GUARDED_BY(lock); /* times that high priority was preferred, in a row */
    uint32_t waiting SP_GUARDED_BY(lock);
    uint32_t reserved SP_GUARDED_BY(lock);  /* places in the queue, of calls in progress */
    sp_wait_queue room SP_GUARDED_BY(lock); /* threads that wait for such a place */
    uint64_t next_number SP_GUARDED_BY(lock);
    bool is_released SP_GUARDED_BY(lock);  /* by all its users: gates stay open */
    uint64_t timer_ns SP_GUARDED_BY(lock); /* the timer polls the queue then, or earlier */
    uint64_t total_wait_ns SP_GUARDED_BY(lock), longest_wait_ns SP_GUARDED_BY(lock);
    uint64_t refused SP_GUARDED_BY(lock);
    /* Counters for the statistics. Relaxed: raised before the future of the run is done, and after
     * the run has been counted as started, under the lock. */
    SP_CACHE_ALIGNED sp_atomic_u64 done;
    sp_atomic_u64 failed, cancelled, expired;
    sp_atomic_u64 batches[SP_BATCH_QUEUE_SIZES]; /* by size */
};

/* ---- life ---- */

/* `options` may be NULL. Errors: SP_INVALID, SP_EXHAUSTED, SP_OUT_OF_MEMORY. */
sp_status sp__batch_queue_create(sp_rt_model *model, const sp_batch_queue_options *options,
                                 sp_batch_queue *out);
sp_status sp__batch_queue_retain(sp_batch_queue handle);
/* The last release flushes the queue. */
sp_status sp__batch_queue_release(sp_batch_queue handle);
/* The queue with a hold. Errors: SP_INVALID. */
sp_status sp__batch_queue_hold(sp_batch_queue handle, sp_rt_batch_queue **out);
/* Drops a hold; the last one posts the destruction to the host executor. */
void sp__batch_queue_drop(sp_rt_batch_queue *queue);
/* Iteration over all queues: as sp__model_hold_slot. */
bool sp__batch_queue_hold_slot(uint32_t slot, sp_rt_batch_queue **out);

/* ---- calls ---- */

sp_status sp__batch_queue_configure(sp_rt_batch_queue *queue,
                                    const sp_batch_queue_options *options);
/* Opens the gates for the requests that are queued or, `is_last`, for good. */
void sp__batch_queue_flush(sp_rt_batch_queue *queue, bool is_last);
void sp__batch_queue_read(sp_rt_batch_queue *queue, sp_batch_queue_statistics *out);

/* A place for a request, which is used by sp__batch_queue_add or given back. Waits for one if the
 * caller may, on the terms of the run. Errors: SP_BUSY, SP_TIMEOUT, SP_CANCELLED, SP_OUT_OF_MEMORY.
 */
sp_status sp__batch_queue_reserve(sp_rt_batch_queue *queue, bool may_wait,
                                  const sp_run_terms *terms);
void sp__batch_queue_unreserve(sp_rt_batch_queue *queue);

/* Where a request of the plan, which is in use, waits for a slot of the device, when it leads. The
 * first request of a plan asks for larger ones. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__batch_queue_line(const sp_rt_batch_queue *queue, sp_plan_entry *entry,
                               sp_batch_line *out);

/* ---- requests ---- */

/* Queues a published run, which holds the queue, with a reserved place. */
void sp__batch_queue_add(sp_rt_batch_queue *queue, sp_rt_future *run, sp_resume_list *ready);
/* The lead has a slot: its batch, or NULL if it is to run alone. */
sp_batch *sp__batch_queue_form(sp_rt_future *lead, sp_resume_list *ready);
/* The batch has failed: all requests but the lead's are queued to run alone. Releases it. */
void sp__batch_queue_break(sp_batch *batch, sp_resume_list *ready);
/* Removes a run that is in a group and whose entry the caller has claimed. */
void sp__batch_queue_remove(sp_rt_future *run, sp_resume_list *ready);
/* The run has ended, with its fault, and still uses its plan; the future is not done yet. */
void sp__batch_queue_end(sp_rt_future *run, sp_resume_list *ready);
/* Counts a batch of so many rows that was computed. */
void sp__batch_queue_count(sp_rt_batch_queue *queue, uint32_t rows);

/* A run that led is done: it does not count among the leads any more. */
void sp__batch_queue_lead_end(sp_rt_batch_queue *queue);

/* ---- gates ---- */

/* Lets runs lead, and submitters in, as far as the queue allows it now. */
void sp__batch_queue_settle(sp_rt_batch_queue *queue, sp_resume_list *ready);
/* By the timer. */
void sp__batch_queue_poll(sp_rt_batch_queue *queue);

/* Frees the table: for tests, while no handle is in use. */
void sp__batch_queues_deinit(void);

#endif
