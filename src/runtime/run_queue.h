/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a device for runs that leave their stream because other threads share it (exec,
 * model_compute.c): as many as the device has run slots, 64 at most. One run at a time uses a
 * queue, so it is never behind another one's commands; submitted runs have queues of their own
 * (submit_queue.h). They have no lease and users cannot submit to them.
 *
 * They are created when the first stream is shared, by the thread that shares it, and never
 * destroyed: a run creates none. */
#ifndef SP_RUNTIME_RUN_QUEUE_H
#define SP_RUNTIME_RUN_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_RUN_QUEUES 64
#define SP_NO_RUN_QUEUE UINT32_MAX

typedef struct sp_run_queue {
    /* 1 while a run has the queue. On a line of its own: a thread takes the same queue again.
     * Acquire where it is taken and release where it is given back, one with the other. */
    SP_CACHE_ALIGNED sp_atomic_u32 is_taken;
    sp_queue *queue;
} sp_run_queue;

typedef struct sp_run_queues {
    sp_once once; /* creates them */
    /* The queues 0 to count - 1 exist. Release by the creator; pairs with the acquire of a run. */
    sp_atomic_u32 count;
    sp_run_queue queues[SP_RUN_QUEUES];
} sp_run_queues;

/* Creates them, or as many as memory allows; without any, runs stay on their streams. Not on
 * devices with memory of their own, whose queues take long to create. May be called again. */
void sp__run_queues_open(sp_rt_device *device);

/* The number of a queue without a run, `hint` or the first one after it; or SP_NO_RUN_QUEUE. */
uint32_t sp__run_queue_acquire(sp_rt_device *device, uint32_t hint);
/* `has_failed`: no record of the failure is kept, since nobody else asks for it. */
void sp__run_queue_release(sp_rt_device *device, uint32_t index, bool has_failed);
sp_queue *sp__run_queue_at(const sp_rt_device *device, uint32_t index);

#endif
