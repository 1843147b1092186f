/* SPDX-License-Identifier: Apache-2.0 */
/* Load on functions: threads that call them for a window of time, with the latency of each call.
 *
 * Closed loop: each thread calls again when its call has returned, or keeps several calls in flight
 * and waits for the oldest one before it begins the next. Open loop: calls arrive at a
 * rate (a Poisson process), whichever threads are free take them in order, and a latency counts
 * from the arrival, so that a call which has to wait for a thread is not faster than it is to its
 * user (Tene, "How NOT to Measure Latency", 2013: coordinated omission). */
#ifndef SP_CLI_LOAD_H
#define SP_CLI_LOAD_H

#include <stdbool.h>

#include <streampool/status.h>

#include "failure.h"
#include "latencies.h"

#define LOAD_MAX_SIDES 16

/* Functions that threads of its own call; the sides of a load run at the same time. They get the
 * number of the thread, from 0 on; a failure ends the load. */
typedef struct load_side {
    sp_status (*call)(void *ctx, uint32_t thread);
    /* With `in_flight`, instead of `call`: begins a call in a free slot of the thread, from 0 on;
     * and waits until it has ended. Each call that began ends, also after a failure. */
    sp_status (*begin)(void *ctx, uint32_t thread, uint32_t slot);
    sp_status (*end)(void *ctx, uint32_t thread, uint32_t slot);
    void *ctx;
} load_side;

typedef struct load_options {
    uint32_t threads; /* of each side */
    double warm_up_seconds, window_seconds;
    double rate;        /* arrivals a second on each side; 0: closed loop */
    uint32_t in_flight; /* closed loop: calls of each thread at the same time; 0: by `call` */
    /* NULL, or called some twenty times a second by the thread that waits for the load, with the
     * share of the time that has passed. False ends the load: SP_CANCELLED. */
    bool (*go_on)(void *ctx, double share);
    void *ctx;
} load_options;

typedef struct load_result {
    /* Of the calls that ended in the window, or if none did, that ended behind it; open loop: that
     * arrived in it. */
    latencies latencies;
    /* Calls that ended in the window, by its length; open loop: those that arrived before it too.
     * If none ended in it, the number of the others by the time that they took. */
    double per_second;
    /* Closed loop: the same of all calls, each counted by the share of it that was in the window:
     * not off by a whole call for each thread, which matters in windows of few calls. */
    double shares_per_second;
    /* Open loop: arrivals that no thread was free for within another window; those after the first
     * of them are not drawn, but counted by the rate. */
    uint64_t missed;
    double cores; /* CPU time of the process in the window, by the window's length */
} load_result;

/* Errors: the first failure of a call; SP_OUT_OF_MEMORY; SP_EXHAUSTED, no more threads. */
sp_status load_run(const load_options *options, const load_side *sides, uint32_t side_count,
                   load_result *results);

#endif
