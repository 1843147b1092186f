/* SPDX-License-Identifier: Apache-2.0 */
/* A model with its inputs and with outputs for each thread that calls it. */
#ifndef SP_BENCH_BATCHING_SUBJECT_H
#define SP_BENCH_BATCHING_SUBJECT_H

#include "runner.h"
#include "test_data.h"

/* Zeroed: nothing to close. */
typedef struct subject {
    model_arguments arguments;
    char data[PATH_BYTES]; /* the folder of its inputs */
    model_runner runner;
    sp_host_tensor **outputs; /* by thread; allocated by the thread's first run */
    uint32_t thread_count;
} subject;

/* Loads the model on the device. Inputs are those of the folder test_data_set_0 beside its file, or
 * generated as by `streampool bench`. End with subject_close, also after a failure. */
sp_status subject_open(subject *self, const char *path, const char *device, uint32_t threads);
/* A model that copies one number: the cost of a call. */
sp_status subject_open_empty(subject *self, const char *device, uint32_t threads);
void subject_close(subject *self);

/* A run (load_side); `ctx` is the subject. */
sp_status subject_call(void *ctx, uint32_t thread);

/* SP_INTERNAL unless the last run of each thread has the bits of the first run. */
sp_status subject_check(const subject *self);

#endif
