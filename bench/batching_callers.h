/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of load: callers in a closed loop, and submitted runs in flight. */
#ifndef SP_BENCH_BATCHING_CALLERS_H
#define SP_BENCH_BATCHING_CALLERS_H

#include "batching_subject.h"
#include "batching_window.h"
#include "load.h"

/* What the threads of a window call. */
typedef struct target {
    load_side side;
    sp_model model; /* zero: not one of ours */
} target;

/* Length of a warm-up, by that of its window. */
#define WINDOW_WARM_UP_SHARE 0.25

/* WINDOW_CALLERS, on one or two targets at the same time. */
sp_status window_callers(const window *asked, const target *targets, uint32_t count,
                         window_result *out);

/* Rate, percentiles and missed arrivals of a load. */
void window_figures_fill(const load_result *result, window_figures *out);

/* WINDOW_IN_FLIGHT: the calling thread submits, waits for the oldest run, and submits again. */
sp_status window_in_flight(const window *asked, const subject *model, window_result *out);

#endif
