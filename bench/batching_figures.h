/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a model: one value per turn. In a turn everything is measured once, so ratios are
 * medians of the ratios of turns, and a slow phase of the machine affects both sides. */
#ifndef SP_BENCH_BATCHING_FIGURES_H
#define SP_BENCH_BATCHING_FIGURES_H

#include "batching_worker.h"

#define FIGURES_MAX_TURNS 32
#define FIGURES_MAX_POINTS 16
/* Submitted runs in flight for each run that the device computes at a time. */
#define FIGURES_IN_FLIGHT 16u
/* Callers beside the main thread. */
#define FIGURES_BACKGROUND 31u
/* Share of a capacity at which runs arrive. */
#define FIGURES_OPEN_SHARE 0.7
/* Share of what is possible that is wanted. */
#define FIGURES_WANTED 0.9

typedef struct series {
    double values[FIGURES_MAX_TURNS]; /* by turn */
    uint32_t count;
} series;

void series_add(series *self, double value);
/* NAN if there are none, as the others. */
double series_median(const series *self);
/* The median of the ratios of the turns. */
double series_ratio(const series *numerator, const series *denominator);
/* The median of the differences of the turns. */
double series_difference(const series *minuend, const series *subtrahend);

/* Windows of load. */
typedef struct load_series {
    series per_second, p50_ns, p99_ns, p999_ns, rows, missed;
} load_series;

void load_series_add(load_series *self, const window_figures *measured);

/* CPU time per row in a batch. */
typedef struct row_series {
    uint32_t wanted;
    uint32_t rows; /* those measured; 0: none */
    series ns;
} row_series;

typedef enum open_case {
    OPEN_COMBINE,     /* combining, at the share of combining's capacity */
    OPEN_EMPTY,       /* the empty model at that rate: what the load itself costs */
    OPEN_COMBINE_LOW, /* combining, at the share of the capacity without */
    OPEN_OFF_LOW,     /* batching off, at that rate */
    OPEN_CASES
} open_case;

typedef struct figures {
    const char *name;
    worker_greeting greeting; /* of the process with batching off */
    bool has_peer;
    uint32_t cores;
    uint32_t point_count;
    uint32_t points[FIGURES_MAX_POINTS];                      /* numbers of callers, ascending */
    load_series callers[WORKER_PEER + 1][FIGURES_MAX_POINTS]; /* by mode and point */
    series lone_ns[WORKER_OFF + 1];                           /* wall-clock time, by mode */
    series run_ns, empty_ns;                                  /* costs: a, c */
    series wake_ns[FIGURES_MAX_POINTS];                       /* h, by point */
    /* By point; then for 16 in flight; then for the callers beside the main thread. */
    row_series rows[FIGURES_MAX_POINTS + 2];
    double open_rates[2]; /* with combining, without */
    load_series open[OPEN_CASES];
    load_series in_flight, in_flight_empty;
    load_series foreground; /* the main thread's, beside FIGURES_BACKGROUND callers */
} figures;

/* Requests that a slot's owner finds, itself included. */
uint32_t figures_share(const figures *self, uint32_t callers);
/* The median rate of the best point before `point`; of all points if it is their number. */
double figures_best_before(const figures *self, worker_mode mode, uint32_t point);
/* The rate over the wanted share of min(callers, cores) / min(a, b + c + h). */
double figures_of_goal(const figures *self, worker_mode mode, uint32_t point);
/* The rate of submitted runs over the wanted share of min(batch rate, rate of the empty model). */
double figures_in_flight_of_goal(const figures *self);
/* The most that the main thread's 99th percentile should be: twice the time of the longest batch
 * for each run slot and one more. The longest batch is the share of a core of all callers. */
double figures_foreground_wanted_ns(const figures *self);

#endif
