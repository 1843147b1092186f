/* SPDX-License-Identifier: Apache-2.0 */
/* A child process of bench_batching: its models, and the windows that it measures. */
#ifndef SP_BENCH_BATCHING_CHILD_H
#define SP_BENCH_BATCHING_CHILD_H

#include "batching_arrivals.h"
#include "batching_callers.h"
#include "batching_costs.h"
#include "batching_foreground.h"
#include "batching_worker.h"
#include "peer.h"

/* Zeroed but for the options: nothing to close. */
typedef struct child {
    const worker_options *options;
    subject models[2];
    subject empty;
    peer peer;
    peer_case of; /* of the peer */
    costs costs;
} child;

/* Sets the options of the process and loads what its windows call. End with child_close, also after
 * a failure. */
sp_status child_open(child *self, worker_greeting *greeting);
sp_status child_measure(child *self, const window *asked, window_result *out);
void child_close(child *self);

#endif
