/* SPDX-License-Identifier: Apache-2.0 */
/* The packed weights of one model: copies in the layouts of kernels, by weight, packing, device and
 * the CPU's table of kernels (its instruction set). The first compile that needs a copy makes it;
 * all plans of the model on that device share it; it ends with the model.
 *
 * Copies are made without the lock, by one thread at a time: `packers` counts the threads that are
 * packing; a thread that misses a copy waits until it is 0, then looks again. A caller that must
 * not wait for other threads makes the missing copies itself, beside a packer; where both make the
 * same copy, the second one is freed. A failure leaves nothing behind, and the next waiting thread
 * tries again.
 *
 * Copies are in the heap for devices that access host memory, else in memory of the device. Of a
 * weight with a copy in the heap the file's layout is parked (weight_store.h). */
#ifndef SP_EXEC_PACKED_WEIGHTS_H
#define SP_EXEC_PACKED_WEIGHTS_H

#include "base/atomic.h"
#include "base/thread.h"
#include "exec/weight_store.h"
#include "plan/plan.h"
#include "runtime/runtime_state.h"

/* Copies that were made together, in one block of memory. */
typedef struct sp_packed_batch sp_packed_batch;
typedef struct sp_packed_copy sp_packed_copy;

typedef struct sp_packed_weights {
    const sp_graph *graph; /* NULL: not initialised */
    sp_mutex lock;
    sp_cond changed;                             /* a packer has ended */
    sp_packed_copy **copies SP_GUARDED_BY(lock); /* linked lists, by weight */
    sp_packed_batch *batches SP_GUARDED_BY(lock);
    uint32_t packers SP_GUARDED_BY(lock);
    sp_atomic_u64 bytes;   /* of all copies; relaxed, for information */
    sp_weight_store store; /* the file's layout */
} sp_packed_weights;

/* Borrows the graph. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__packed_weights_init(sp_packed_weights *table, const sp_graph *graph);
/* Precondition: no plan is left. The graph has no elements of parked weights afterwards. Valid on a
 * table whose init failed, and on a zeroed one. */
void sp__packed_weights_deinit(sp_packed_weights *table);

/* The copies that an executable needs: a subset of the plan's packings, on one device. */
typedef struct sp_packed_request {
    const sp_graph_plan *plan;
    sp_rt_device *device;
    const bool *is_needed; /* by packing */
    bool may_wait;         /* for other threads */
} sp_packed_request;

/* The copies by packing; zeroed where none is needed. Valid for the lifetime of the table. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__packed_weights_get(sp_packed_weights *table, const sp_packed_request *request,
                                 sp_memory *out);

#endif
