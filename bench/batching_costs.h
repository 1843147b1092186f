/* SPDX-License-Identifier: Apache-2.0 */
/* Costs of a run, a run on several rows and an empty call, of one thread; of a wake-up, among many.
 */
#ifndef SP_BENCH_BATCHING_COSTS_H
#define SP_BENCH_BATCHING_COSTS_H

#include "batching_rows.h"
#include "batching_window.h"
#include "bench.h"

#define COSTS_ROW_CASES 16

/* Zeroed: nothing to close. */
typedef struct costs {
    subject *model, *empty;
    bench_clock clock;
    rows_case cases[COSTS_ROW_CASES]; /* those that were asked for and can be run */
    uint32_t case_count;
    rows_library library;
    bool has_library; /* measured: a file with a fixed batch */
} costs;

/* WINDOW_COST, of every call but those to a second model. */
sp_status window_cost(costs *self, const window *asked, window_result *out);
void costs_close(costs *self);

#endif
