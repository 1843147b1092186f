/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a device beside its streams, for submitted runs and batches: as many as the device has
 * run slots, 64 at most. They have no lease and users cannot submit to them, so work that blocks a
 * stream (a host function, a host access) never delays a submitted run or the run slot that it has.
 * They are created as they are needed, since a queue of a busy GPU takes a long time, and never
 * destroyed. */
#ifndef SP_RUNTIME_SUBMIT_QUEUE_H
#define SP_RUNTIME_SUBMIT_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_SUBMIT_QUEUES 64

typedef struct sp_submit_queues {
    sp_once once; /* creates the first */
    /* The queues 0 to count - 1 exist. Release once a queue was created; pairs with the acquire of
     * its users. Changed by `once`, then by the thread that has raised `is_growing`. */
    sp_atomic_u32 count;
    /* 1 while a thread creates queues. Acquire where it is raised, release where it is lowered. */
    sp_atomic_u32 is_growing;
    /* A bit for each queue without a run. Release once a queue was created; pairs with the acquire
     * of the run that takes it. Relaxed where a run ends: the queue's lock orders the commands. */
    sp_atomic_u64 free;
    sp_atomic_u32 turn; /* round robin of the queues while all have runs; orders nothing */
    sp_queue *queues[SP_SUBMIT_QUEUES];
} sp_submit_queues;

/* Before a queue is used, by a thread that may take long. Creates the first one; then another one
 * if none is free, and as many as there are to be `least`, up to the device's number: of these it
 * creates what it can. Errors: SP_CLOSED, SP_OUT_OF_MEMORY; may be called again. */
sp_status sp__submit_queues_open(sp_rt_device *device, uint32_t least);
/* How many there are. */
uint32_t sp__submit_queues_count(const sp_rt_device *device);

/* Identifies a queue without a run, or, if there is none, any. Requires
 * sp__submit_queues_open. */
uint32_t sp__submit_queue_acquire(sp_rt_device *device);
void sp__submit_queue_release(sp_rt_device *device, uint32_t index);

/* The queue for an index of this device, or of another one, of which it may have fewer now. */
sp_queue *sp__submit_queue_at(sp_rt_device *device, uint32_t index);

#endif
