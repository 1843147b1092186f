/* SPDX-License-Identifier: Apache-2.0 */
/* The threads that compute submitted runs of partial plans, since the host computes between two
 * plans. A device has a queue of such runs, FIFO, of which as many are computed at a time as it has
 * run slots, SP_PARTIAL_RUNS at most. Any thread computes runs of any device.
 *
 *     demand       == sum over devices of min(most, queued + active)
 *     thread_count >= demand, unless the system gave no thread
 *
 * So a device whose runs are blocked delays no run of another one. Threads are created when a run
 * is pushed, and end with the shutdown or the process.
 *
 * A run is QUEUED, then ACTIVE, then owned by the thread that ends it; or it is claimed while it is
 * queued, and owned by that thread. Both steps are under the lock. */
#ifndef SP_BATCH_PARTIAL_THREADS_H
#define SP_BATCH_PARTIAL_THREADS_H

#include "exec/future.h"

/* Most runs of a device that are computed at a time. */
#define SP_PARTIAL_RUNS 16u

/* Queues the run of a published future, which has its work, model and request; from then on the run
 * may end at any time. Errors, and the run is the caller's: SP_BUSY by its terms, if it would wait;
 * SP_CLOSED after a shutdown, and at the end of the process; SP_EXHAUSTED and SP_OUT_OF_MEMORY if
 * no thread computes runs of the device and none can be created. */
sp_status sp__partial_threads_push(sp_rt_future *run);

/* True if the run was queued; it is the caller's now, which ends it. */
SP_NODISCARD bool sp__partial_threads_claim(sp_rt_future *run);

/* For a cancel, and a wait inside a host function or callback: computes the run inline if it is
 * queued, which ends at once if it is cancelled; and ends its waits for other runs if a thread
 * computes it. The caller holds the future. */
void sp__partial_threads_await(sp_rt_future *run);

#endif
