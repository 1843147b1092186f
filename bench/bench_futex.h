/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads that wake each other by futexes: the lower bound of waking a sleeping thread. */
#ifndef SP_BENCH_BENCH_FUTEX_H
#define SP_BENCH_BENCH_FUTEX_H

#include "base/atomic.h"
#include "base/thread.h"

/* One thread is the caller's, the other one runs from start to stop. A word is written by one
 * thread (release) and waited for by the other one (acquire). */
typedef struct bench_futex {
    sp_atomic_u32 ping;
    sp_atomic_u32 pong;
    sp_atomic_u32 is_over;
    sp_thread thread;
} bench_futex;

void bench_futex_start(bench_futex *pair);
/* Wakes the other thread and sleeps until that thread wakes this one: two wake-ups, two sleeps. */
void bench_futex_round(bench_futex *pair);
void bench_futex_stop(bench_futex *pair);

#endif
