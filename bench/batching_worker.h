/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes that measure windows: an option of the library holds for a whole process. Those
 * that are not asked sleep. */
#ifndef SP_BENCH_BATCHING_WORKER_H
#define SP_BENCH_BATCHING_WORKER_H

#include <stdbool.h>

#include "batching_window.h"
#include "service.h"

typedef enum worker_mode {
    WORKER_COMBINE, /* STREAMPOOL_BATCHING=combine */
    WORKER_OFF,     /* STREAMPOOL_BATCHING=off */
    WORKER_PEER,    /* ONNX Runtime */
    WORKER_COSTS,   /* on one processor: costs in CPU time */
    WORKER_MODES
} worker_mode;

typedef struct worker_options {
    worker_mode mode;
    const char *paths[2]; /* of models; the second one may be NULL */
    const char *device;
    const char *library; /* of the peer */
    uint32_t threads;    /* the most of any window */
} worker_options;

/* Of the first model and its device. */
typedef struct worker_greeting {
    bool is_separable;
    char reason[FAILURE_BYTES]; /* if not */
    uint32_t width, run_slots;
    bool is_cpu;
} worker_greeting;

/* Zeroed: none. */
typedef struct worker {
    service service;
    worker_greeting greeting;
} worker;

/* Forks; the calling process must not have used the library. Waits until the models are loaded;
 * errors of the child are returned. */
sp_status worker_start(worker *self, const worker_options *options);
/* Measures one window. Errors of the child are returned; SP_IO: it has ended. */
sp_status worker_ask(worker *self, const window *asked, window_result *out);
void workers_stop(worker *workers, uint32_t count);

#endif
