/* SPDX-License-Identifier: Apache-2.0 */
/* How long a run of a plan is expected to take in its slot on one thread, from the runs that were
 * timed: what other threads have computed of a run is added. A thread that loses its processor
 * makes a measured time longer, never shorter: so the estimate takes a shorter time at once, and
 * follows a longer one by a quarter at most.
 *
 *     estimate = 0   no run of the plan was timed yet */
#ifndef SP_EXEC_RUN_ESTIMATE_H
#define SP_EXEC_RUN_ESTIMATE_H

#include "base/atomic.h"

/* In nanoseconds; a longer time is this one. */
#define SP_RUN_ESTIMATE_MOST UINT32_MAX

/* Of two threads that add at once one may be lost. */
static inline void sp__run_estimate_add(sp_atomic_u32 *estimate, uint64_t ns)
{
    const uint64_t before = sp_load_relaxed(estimate);
    const uint64_t most = before == 0 ? SP_RUN_ESTIMATE_MOST : before + before / 4 + 1;
    uint64_t next = ns < most ? ns : most;
    if (next == 0) next = 1;
    if (next > SP_RUN_ESTIMATE_MOST) next = SP_RUN_ESTIMATE_MOST;
    sp_store_relaxed(estimate, (uint32_t)next);
}

#endif
