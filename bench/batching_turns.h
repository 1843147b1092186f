/* SPDX-License-Identifier: Apache-2.0 */
/* The turns of windows in which a model, or two at once, are measured. */
#ifndef SP_BENCH_BATCHING_TURNS_H
#define SP_BENCH_BATCHING_TURNS_H

#include "batching_figures.h"

typedef struct turns_options {
    const char *device;
    const char *library; /* of the peer; NULL: no peer */
    uint32_t points[FIGURES_MAX_POINTS];
    uint32_t point_count;
    uint32_t turns;
    double seconds; /* of a window */
    uint32_t cores;
} turns_options;

/* A model of the command line. */
typedef struct turns_model {
    const char *name, *path;
} turns_model;

/* A message names the process that failed. That of a peer which cannot run the model is printed to
 * stderr; then there are no figures of it. */
sp_status turns_measure(const turns_options *options, const turns_model *model, figures *out);

#define PAIR_CALLERS 31u

/* Two models, alone and at the same time, with PAIR_CALLERS each. */
typedef struct pair_figures {
    series shares[2]; /* of each one's rate alone */
    series sum;
} pair_figures;

sp_status turns_measure_pair(const turns_options *options, const turns_model *first,
                             const turns_model *second, pair_figures *out);

#endif
