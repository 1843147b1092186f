/* SPDX-License-Identifier: Apache-2.0 */
/* A bench: what the command line asks for, and its points one after the other. */
#ifndef SP_CLI_BENCH_RUN_H
#define SP_CLI_BENCH_RUN_H

#include "bench_picture.h"
#include "bench_report.h"

#define BENCH_MAX_POINTS PICTURE_MAX_POINTS

typedef struct bench_arguments {
    model_arguments model; /* first; its path is unused */
    const char *paths[LOAD_MAX_SIDES];
    uint32_t path_count;
    uint32_t threads[BENCH_MAX_POINTS];
    uint32_t point_count;
    uint64_t window_ms, warm_up_ms;
    uint64_t rate;
    uint32_t in_flight;   /* 0: calls that return when the run is done */
    const char *batching; /* a value of STREAMPOOL_BATCHING, or NULL */
    bool has_queues;
    bool has_steps;
    const char *against;      /* the library of a peer, or NULL */
    uint32_t against_threads; /* that compute a run of it; 0: what it chooses */
    bool has_against_threads; /* it was given */
    bench_format format;
    const char *svg; /* the file of the picture, or NULL */
    bench_picture picture;
} bench_arguments;

/* Loads the models and prints what was asked for. `job` is zeroed; end with bench_job_close, also
 * after a failure. SP_CANCELLED: interrupted; what was measured before is printed. */
sp_status bench_run(bench_arguments *arguments, bench_job *job);

/* Its parts for other benches: the models with their first runs; then, if asked for, their steps.
 */
sp_status bench_job_open(bench_arguments *arguments, bench_job *job);
sp_status bench_job_time_steps(const bench_arguments *arguments, bench_job *job);
void bench_job_close(bench_job *job);

#endif
