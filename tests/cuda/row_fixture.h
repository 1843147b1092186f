/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose rows are large, on a device with memory of its own: callers that wait copy their
 * rows themselves. On the fake CUDA driver, or on a null device, as STREAMPOOL_TEST_DEVICE says.
 * Needs STREAMPOOL_BATCHING=always. */
#ifndef SP_TESTS_CUDA_ROW_FIXTURE_H
#define SP_TESTS_CUDA_ROW_FIXTURE_H

#include <streampool/device.h>

#include "batch/batch_plans.h"
#include "combining_fixture.h"

enum { LONG = 4096, CALLERS = 12, THREADS = 31, MOST_ROWS = 256 };

sp_device rows_device_open(void);
void rows_device_close(sp_device device);

typedef enum model_kind {
    FLAT,   /* y = Neg(Tanh(x)) of x[n, LONG] */
    PIECES, /* of x[4, n, LONG / 4]: a row is 4 pieces */
    TABLE,  /* y = Neg(table[x]), of x[n, LONG]: fails with an index out of range */
    TWO,    /* y and t = Tanh(x) */
    TURNED, /* y = Transpose(Neg(Tanh(x))) of x[n, LONG], on the cpu: of one row it moves nothing */
    KINDS
} model_kind;

/* max_waiting: of the options. */
sp_model rows_model_open(model_kind kind, sp_device device, uint32_t max_waiting);

/* A caller's tensors. */
typedef struct caller {
    model_kind kind;
    sp_model model;
    union {
        float numbers[LONG];
        int64_t indices[LONG];
    } x;
    float y[LONG];
    float alone[LONG];
    bool is_bad;
    sp_run_options options;
    sp_status expected;
    sp_future future;
} caller;

extern caller callers[THREADS];

void caller_fill(caller *r, uint32_t number, uint32_t salt);
sp_status caller_run(caller *r);
/* The bits are those of the run alone. */
void caller_check(const caller *r);
/* Of a thread; `arg` is callers[0]. */
void caller_main(void *arg, uint32_t index);

/* A model with larger plans; the runs alone come before these. */
typedef struct rows_world {
    sp_device device;
    sp_model model;
    sp_rt_model *held;
    sp_plan_entry *entry;
    sp_batch_plans *plans;
    merged_runs before;
} rows_world;

void rows_world_open(rows_world *w, model_kind kind);
void rows_world_open_with(rows_world *w, model_kind kind, uint32_t max_waiting);
/* All rows are free. */
void rows_world_close(rows_world *w);

/* Rows that are free, at most so many; how many. */
uint32_t rows_take(const rows_world *w, void **taken, uint32_t most);
void rows_give(const rows_world *w, void **taken, uint32_t count);
uint32_t rows_free(const rows_world *w);

/* All slots of the plan are the test's until `waiting` callers wait. */
typedef struct slot_return {
    const rows_world *w;
    uint32_t waiting, free_rows;
    void (*before)(const struct slot_return *r);
} slot_return;

void slots_take(const rows_world *w);
/* Of a thread; `arg` is a slot_return. */
void slots_return(void *arg);

/* `threads` callers wait together, with `submitted` runs. */
void callers_run(slot_return *r, uint32_t threads, uint32_t submitted);
/* A `before`: so many rows are free as `free_rows` says. */
void check_rows_in_use(const slot_return *r);

#endif
