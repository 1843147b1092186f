/* SPDX-License-Identifier: Apache-2.0 */
/* What a process of bench_batching measures on request, and its answer. */
#ifndef SP_BENCH_BATCHING_WINDOW_H
#define SP_BENCH_BATCHING_WINDOW_H

#include <stdint.h>

#include <streampool/status.h>

#include "failure.h"

typedef enum window_load {
    WINDOW_WARM_UP,    /* callers, until larger plans are built */
    WINDOW_CALLERS,    /* closed loop: `count` threads, each calls again when its call returns */
    WINDOW_ARRIVALS,   /* open loop: `count` threads serve calls that arrive at `rate` */
    WINDOW_FOREGROUND, /* closed loop, beside a main thread that runs with high priority */
    WINDOW_IN_FLIGHT,  /* one thread keeps `count` submitted runs in flight */
    WINDOW_COST        /* nanoseconds per call, of one thread but for WINDOW_WAKE */
} window_load;

typedef enum window_call {
    WINDOW_MODEL,
    WINDOW_SECOND, /* the second model */
    WINDOW_BOTH,   /* both models at once, with `count` threads each */
    WINDOW_EMPTY,  /* a model that copies one number */
    WINDOW_ROWS,   /* the model with a batch of `count` rows */
    WINDOW_WAKE    /* no call: `count` threads wake each other and sleep, in groups of `share` */
} window_call;

typedef struct window {
    window_load load;
    window_call call;
    uint32_t count;
    uint32_t share;
    double rate;    /* a second */
    double seconds; /* after a warm-up of a quarter of that */
} window;

/* Of one model, or of the main thread. */
typedef struct window_figures {
    double per_second;
    double p50_ns, p99_ns, p999_ns;
    double rows;   /* runs that were computed together, on average */
    double missed; /* share of the arrivals that were not served */
} window_figures;

typedef struct window_result {
    window_figures figures[2]; /* by model; WINDOW_FOREGROUND: callers, main thread */
    double ns;                 /* WINDOW_COST; WINDOW_ROWS: per row, 0 if there is none */
    uint32_t rows;             /* WINDOW_ROWS: those measured, at most as many as asked for */
} window_result;

#endif
