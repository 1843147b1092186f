/* SPDX-License-Identifier: Apache-2.0 */
/* One point of a bench: models under the load of a number of threads. */
#ifndef SP_CLI_BENCH_POINT_H
#define SP_CLI_BENCH_POINT_H

#include "load.h"
#include "runner.h"

typedef struct bench_model {
    model_arguments arguments;
    model_runner runner;
    sp_batch_queue queue; /* zero: runs go past it */
    double best;          /* highest rate of the points so far */
    /* Of the current point. */
    sp_host_tensor **outputs; /* by thread, then by slot */
    sp_future *futures;       /* the same */
    uint32_t slots;           /* of a thread, at least 1 */
    sp_model_statistics before, after;
    load_result result;
} bench_model;

typedef struct bench_job {
    bench_model models[LOAD_MAX_SIDES];
    uint32_t count;
    double best;         /* of all models together */
    uint64_t rest_bytes; /* memory of the process after the first runs */
    uint64_t peak_bytes; /* the most of it up to the end of the current point */
} bench_job;

/* Runs the load on all models. SP_INTERNAL: a run has other bits than the model's first run. Other
 * errors: those of the runs; SP_OUT_OF_MEMORY; SP_EXHAUSTED. */
sp_status bench_point_run(bench_job *job, const load_options *load);

#endif
