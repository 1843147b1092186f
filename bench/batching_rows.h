/* SPDX-License-Identifier: Apache-2.0 */
/* A model's run on several rows at once: the caller's batch through the public calls, or, where the
 * file has a fixed batch, the library's own larger plan. */
#ifndef SP_BENCH_BATCHING_ROWS_H
#define SP_BENCH_BATCHING_ROWS_H

#include "batching_subject.h"

/* Zeroed: nothing to close. */
typedef struct rows_case {
    const subject *model;
    uint32_t rows;
    sp_host_tensor *inputs; /* each row is the model's input */
    uint32_t input_count;
    sp_host_tensor *outputs;
} rows_case;

/* SP_UNSUPPORTED: the rows are not separable, or the inputs of a batch cannot be made. SP_MISMATCH:
 * the file's batch is fixed. Runs once, and checks that each row has the bits of a run of its own.
 * End with rows_close, also after a failure. */
sp_status rows_open(rows_case *self, const subject *model, uint32_t rows);
void rows_close(rows_case *self);
sp_status rows_run(rows_case *self);

/* Larger plans as the library makes them, with the times that it measures: CPU time on cpu. */
#define ROWS_LIBRARY_PLANS 16

typedef struct rows_library {
    uint32_t count;
    uint32_t rows[ROWS_LIBRARY_PLANS]; /* ascending */
    double run_ns[ROWS_LIBRARY_PLANS]; /* of all rows */
} rows_library;

/* Precondition: STREAMPOOL_BATCHING=always, so that none is left out. Count 0: the rows are not
 * separable. */
sp_status rows_library_measure(const subject *model, rows_library *out);

#endif
