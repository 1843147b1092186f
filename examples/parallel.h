/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one model on many threads, each with its own picture and a known result. */
#ifndef DEMO_PARALLEL_H
#define DEMO_PARALLEL_H

#include "detector.h"

#define PARALLEL_MAX_THREADS 31

/* The threads' shared work, read-only. Thread k runs the k-th input. */
typedef struct parallel_work {
    sp_model model;
    const detector_input *inputs;
    const detector_result *expected;  /* of each input, from a run without concurrent runs */
    const detector_result *reference; /* of the first input, from another program; or NULL */
    double seconds; /* duration in which new runs begin; each thread makes at least one */
} parallel_work;

typedef struct parallel_outcome {
    uint64_t runs;
    uint64_t equal_runs; /* runs whose bits are those expected */
    double seconds;
    float difference; /* the largest difference from the reference */
    bool is_close;    /* all runs of the first thread are close to the reference */
} parallel_outcome;

/* Prints errors to stderr. Wrong results are no failure; they are counted in the outcome. */
bool parallel_run(const parallel_work *work, int threads, parallel_outcome *out);

#endif
