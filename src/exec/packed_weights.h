/* SPDX-License-Identifier: Apache-2.0 */
/* The packed weights of one model: copies in the layouts of kernels, by weight, packing, device and
 * the CPU's table of kernels (its instruction set). The first compile that needs a copy makes it;
 * all plans of the model on that device share it; it ends with the model.
 *
 * Copies are made outside of the lock, by one thread at a time: `packers` counts those that are at
 * it, and others that miss something wait until it is 0, then look again. A caller that must not
 * wait for other threads makes what it misses itself; where both make the same, the copies that
 * come second are freed. A failure leaves nothing behind, and the next that waits tries again.
 *
 * Memory is the heap's on devices that see the host's memory, else the device's. */
#ifndef SP_EXEC_PACKED_WEIGHTS_H
#define SP_EXEC_PACKED_WEIGHTS_H

#include "base/atomic.h"
#include "base/thread.h"
#include "plan/plan.h"
#include "runtime/runtime_state.h"

/* Copies that were made together, in one memory. */
typedef struct sp_packed_batch sp_packed_batch;
typedef struct sp_packed_copy sp_packed_copy;

typedef struct sp_packed_weights {
    const sp_graph *graph; /* NULL: not initialised */
    sp_mutex lock;
    sp_cond changed;                             /* a packer has ended */
    sp_packed_copy **copies SP_GUARDED_BY(lock); /* lists, by weight */
    sp_packed_batch *batches SP_GUARDED_BY(lock);
    uint32_t packers SP_GUARDED_BY(lock);
    sp_atomic_u64 bytes; /* of all copies; relaxed, for information */
} sp_packed_weights;

/* Borrows the graph. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__packed_weights_init(sp_packed_weights *table, const sp_graph *graph);
/* No plan is left. A table whose init failed, and a zeroed one, are fine. */
void sp__packed_weights_deinit(sp_packed_weights *table);

/* Which copies are wanted: of the plan's packings, those that are needed on a device. */
typedef struct sp_packed_request {
    const sp_graph_plan *plan;
    sp_rt_device *device;
    const bool *is_needed; /* by packing */
    bool may_wait;         /* for other threads */
} sp_packed_request;

/* Where the copies are, by packing; zeroes where none is needed. They stay while the table does.
 * Errors: SP_OUT_OF_MEMORY. */
sp_status sp__packed_weights_get(sp_packed_weights *table, const sp_packed_request *request,
                                 sp_memory *out);

#endif
