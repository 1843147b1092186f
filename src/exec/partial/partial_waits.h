/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of a run of partial plans that a thread of the library computes for a future: for a
 * plan, for a run slot, for a context.
 *
 * What such a run waits for may belong to runs that are behind a host function, and that function
 * may wait for this run's future. So a wait inside a host function or callback ends the run's
 * waits, the one that it is in and those to come: from then on the run takes what is free and
 * computes inline, without a slot, as a run inside a callback does. A cancel ends them too, and the
 * run with them.
 *
 *     request.is_awaited   0: the run waits as other runs do; 1: its waits have ended
 *
 * The run pushes its entry and then reads is_awaited by a read-modify-write; the party that ends
 * the waits exchanges it and then claims the entry: one of the two sees the other. */
#ifndef SP_EXEC_PARTIAL_PARTIAL_WAITS_H
#define SP_EXEC_PARTIAL_PARTIAL_WAITS_H

#include "exec/future.h"
#include "exec/plan_cache.h"

/* Around the execution by a thread: the thread's waits are the run's from now on. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__partial_waits_begin(sp_rt_future *run);
void sp__partial_waits_finish(sp_rt_future *run);

/* Takes a slot of the run's device, which sp__run_slots_release returns. *has_slot is false if the
 * waits have ended. Errors: SP_TIMEOUT past the deadline of the run's terms; then there is none. */
sp_status sp__partial_waits_take_slot(sp_rt_future *run, bool *has_slot);

/* Runs a plan in use: in a slot, on a submit queue of the device; or inline. Errors: as the run,
 * and as the two others here. */
sp_status sp__partial_waits_compute(sp_rt_future *run, const sp_plan_entry *entry,
                                    const void *const *inputs, void **outputs);

/* SP_CANCELLED for a run that is cancelled; SP_CLOSED once the threads that compute such runs are
 * being stopped. */
sp_status sp__partial_waits_check(const sp_rt_future *run);

/* The run has begun: its deadline has been kept, and it is not refused any more. */
static inline void sp__partial_terms_begin(sp_run_terms *terms)
{
    terms->deadline_ns = 0;
    terms->is_refused = terms->is_bounded = false;
}

/* Ends the run's waits. The caller holds the run and its model. */
void sp__partial_waits_end(sp_rt_future *run);

/* For the cache of plans: nonzero once the run must not wait. */
static inline const sp_atomic_u32 *sp__partial_waits_flag(const sp_rt_future *run)
{
    return &run->request.is_awaited;
}

#endif
