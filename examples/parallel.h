/* SPDX-License-Identifier: Apache-2.0 */
/* One model, many threads, each with a picture of its own whose result is known. */
#ifndef DEMO_PARALLEL_H
#define DEMO_PARALLEL_H

#include "detector.h"

#define PARALLEL_MAX_THREADS 31

/* What the threads do; they only read it. Thread k takes the k-th input. */
typedef struct parallel_work {
    sp_model model;
    const detector_input *inputs;
    const detector_result *expected;  /* of each input, from a run with nothing beside it */
    const detector_result *reference; /* of the first input, from another program; or NULL */
    double seconds;                   /* how long new runs begin; each thread makes at least one */
} parallel_work;

typedef struct parallel_outcome {
    uint64_t runs;
    uint64_t equal_runs; /* that gave the bits expected */
    double seconds;
    float difference; /* the largest to the reference */
    bool is_close;    /* all runs of the first thread, to the reference */
} parallel_outcome;

/* Says on stderr what failed; wrong results are no failure, but told in the outcome. */
bool parallel_run(const parallel_work *work, int threads, parallel_outcome *out);

#endif
