/* SPDX-License-Identifier: Apache-2.0 */
/* An open loop: runs arrive in a Poisson process at a rate up to millions a second, whichever
 * threads are free take them in order, and a latency counts from the arrival. */
#ifndef SP_BENCH_BATCHING_ARRIVALS_H
#define SP_BENCH_BATCHING_ARRIVALS_H

#include "batching_callers.h"

/* WINDOW_ARRIVALS. Arrivals that no thread was free for within another window are missed. A call
 * that fails ends the process. */
sp_status window_arrivals(const window *asked, const target *called, window_result *out);

#endif
