/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a device beside its streams, for submitted runs: as many as the device has run slots,
 * 64 at most. They have no lease and users cannot submit to them, so work that blocks a stream (a
 * host function, a host access) never delays a submitted run or the run slot that it has. They are
 * created with the first submit and never destroyed. */
#ifndef SP_RUNTIME_SUBMIT_QUEUE_H
#define SP_RUNTIME_SUBMIT_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_SUBMIT_QUEUES 64

typedef struct sp_submit_queues {
    sp_once once;
    uint32_t count; /* written by `once`, as the queues are: not read before */
    /* A bit for each queue without a run. Relaxed: the queue's lock orders the commands. */
    sp_atomic_u64 free;
    sp_atomic_u32 turn; /* round robin of the queues while all have runs; orders nothing */
    sp_queue *queues[SP_SUBMIT_QUEUES];
} sp_submit_queues;

/* Creates them all. Errors: SP_CLOSED, SP_OUT_OF_MEMORY; may be called again. */
sp_status sp__submit_queues_open(sp_rt_device *device);

/* The index of a queue without a run, or, if there is none, of any. Requires
 * sp__submit_queues_open. */
uint32_t sp__submit_queue_acquire(sp_rt_device *device);
void sp__submit_queue_release(sp_rt_device *device, uint32_t index);

/* The queue for an index, modulo the number of queues of the device. */
sp_queue *sp__submit_queue_at(sp_rt_device *device, uint32_t index);

#endif
