/* SPDX-License-Identifier: Apache-2.0 */
/* The time of each step of a model's plan, in runs on one thread. */
#ifndef SP_CLI_BENCH_STEPS_H
#define SP_CLI_BENCH_STEPS_H

#include <streampool/plan.h>

#include "bench_report.h"
#include "fma_peak.h"

typedef struct bench_step {
    sp_plan_step_info info; /* strings of the plan */
    double us;              /* the median of the runs */
} bench_step;

typedef struct bench_steps {
    const bench_model *model;
    sp_plan plan; /* zero: none */
    bench_step *list;
    uint32_t count;
    uint32_t runs; /* that were timed */
    double us;     /* of a run: the sum of the steps */
    fma_peak peak;
} bench_steps;

typedef struct bench_steps_options {
    double warm_up_seconds, window_seconds;
    bool (*go_on)(void *ctx, double share); /* as load_options has it */
    void *ctx;
} bench_steps_options;

/* Times runs for the length of the window, at most BENCH_STEPS_RUNS. End with bench_steps_close,
 * also after a failure. Errors: SP_UNSUPPORTED for devices other than the cpu, and for a model that
 * several plans compute; SP_INTERNAL: other bits than the model's first run; SP_CANCELLED; those of
 * a run. */
#define BENCH_STEPS_RUNS 1000
sp_status bench_steps_open(bench_steps *self, const bench_model *model,
                           const bench_steps_options *options);
void bench_steps_close(bench_steps *self);

/* Prints the steps in order, and the sums of each op type. */
sp_status bench_steps_report(const bench_format *format, const bench_steps *steps);

#endif
