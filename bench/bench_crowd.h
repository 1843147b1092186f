/* SPDX-License-Identifier: Apache-2.0 */
/* The bare exchange behind a batch: of each group of threads the last one to arrive wakes the
 * others, which come again and sleep. What it computes before that is not counted, and no lock is
 * taken, so this is what N callers cost that are woken once for each run. */
#ifndef SP_BENCH_BENCH_CROWD_H
#define SP_BENCH_BENCH_CROWD_H

#include <stdint.h>

/* CPU time in nanoseconds of a thread's round, one wake-up and one sleep, with `threads` threads in
 * groups of `share` (the last one may be smaller), for `ms` after a warm-up. 0 if `threads` or
 * `share` is less than 2: nobody is woken. */
double bench_crowd_wake_ns(uint32_t threads, uint32_t share, double ms);

#endif
