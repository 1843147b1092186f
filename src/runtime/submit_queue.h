/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of a device beside its streams, for runs that are submitted and not waited for: as many as
 * the device has run slots, 64 at most. Nobody leases them and nothing that users submit gets in,
 * so what is stuck in a stream (a host function, a host access) never holds up a submitted run, nor
 * the run slot that it has. They are made with the first submit and stay. */
#ifndef SP_RUNTIME_SUBMIT_QUEUE_H
#define SP_RUNTIME_SUBMIT_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_SUBMIT_QUEUES 64

typedef struct sp_submit_queues {
    sp_once once;
    uint32_t count; /* written by `once`, as the queues are: nothing reads them before */
    /* A bit for each queue without a run. Relaxed: whose commands come first is the queue's lock's
     * to say. */
    sp_atomic_u64 free;
    sp_atomic_u32 turn; /* who shares a queue if all have runs; orders nothing */
    sp_queue *queues[SP_SUBMIT_QUEUES];
} sp_submit_queues;

/* Makes them all. Errors: SP_CLOSED, SP_OUT_OF_MEMORY; it can be asked again. */
sp_status sp__submit_queues_open(sp_rt_device *device);

/* The index of a queue that has no run, or, if there is none, of any. The queues have been made. */
uint32_t sp__submit_queue_acquire(sp_rt_device *device);
void sp__submit_queue_release(sp_rt_device *device, uint32_t index);

/* The queue at a index, or, on a device with fewer of them, the one that stands for it. */
sp_queue *sp__submit_queue_at(sp_rt_device *device, uint32_t index);

#endif
