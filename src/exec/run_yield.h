/* SPDX-License-Identifier: Apache-2.0 */
/* Yields of threads that expect other threads of the process to run meanwhile: those whose requests
 * may be taken into a batch, and owners of slots that let the callers of the last batch come back.
 *
 * A yield is meant for them, but it goes to any thread, and beside other programs that compute it
 * costs a slice of the system: some milliseconds for a run of some microseconds. So after a yield
 * that lasts long the next ones are measured: where the process has not had its processors
 * meanwhile, there are none for a multiple of the time that was lost. See docs/decisions/0082. */
#ifndef SP_EXEC_RUN_YIELD_H
#define SP_EXEC_RUN_YIELD_H

#include <stdbool.h>

#include "base/atomic.h"

/* Of a device. All atomics are relaxed: hints. */
typedef struct sp_run_yields {
    uint32_t processors;        /* on which runs advance, where threads wait for one. Constant */
    sp_atomic_u32 measured;     /* so many of the next yields are */
    sp_atomic_u64 paused_until; /* a time */
} sp_run_yields;

/* `width`: runs that advance at the same time. */
void sp__run_yields_init(sp_run_yields *yields, uint32_t width);

/* False: no yield, since other programs would get the processor. */
bool sp__run_yield(sp_run_yields *yields);

/* After a yield from `before` to `now`, in which all threads of the process have used `used_ns` of
 * processors: pauses, if it has gone to other programs. */
void sp__run_yield_judge(sp_run_yields *yields, uint64_t before, uint64_t now, uint64_t used_ns);

#endif
