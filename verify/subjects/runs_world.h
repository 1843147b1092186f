/* SPDX-License-Identifier: Apache-2.0 */
/* The world of subject_runs.c: a model with one plan, whose kernel adds 1 to each row, on a device
 * without workers, and batches of some numbers of rows. Runs on threads, submitted runs, slots,
 * contexts, batches and futures are the library's; plans and executables are made by hand. */
#ifndef SP_SUBJECTS_RUNS_WORLD_H
#define SP_SUBJECTS_RUNS_WORLD_H

#include "batch/batch_run.h"
#include "batch/submitted.h"
#include "support.h"

#define SP_RUNS_ROWS 4
#define SP_RUNS_BUCKETS 2
#define SP_RUNS_BAD 100 /* a row with this input fails */

typedef struct sp_runs_world sp_runs_world;

/* A submitted run. */
typedef struct sp_world_run {
    uint32_t input, output;
    void *data[1], *outputs[1];
    sp_rt_future *future; /* held */
    sp_future handle;
} sp_world_run;

/* A plan of `rows` rows on the device. */
typedef struct sp_world_plan {
    uint32_t rows;
    sp_plan_binding bindings[2];
    sp_plan_step step;
    sp_plan_tensor ports[2];
    sp_graph_plan plan;
    sp_segment segment;
    char *label;
    sp_executable executable;
} sp_world_plan;

struct sp_runs_world {
    sp_queue_device *common;
    sp_rt_device *device;
    sp_rt_model model;
    sp_plan_entry entry;
    sp_world_plan single, larger[SP_RUNS_BUCKETS];
    sp_run_slots slots;
    sp_batch_plans plans;
    sp_batch_port ports[2];
    uint64_t shared_bytes[1];
    sp_batch batches[SP_RUNS_BUCKETS];
    void *addresses[SP_RUNS_BUCKETS][2];
    uint32_t tensors[SP_RUNS_BUCKETS][2][SP_RUNS_ROWS];
    sp_rt_stream streams[3];
    sp_atomic_u32 next_stream;
    sp_world_run runs[2];
    sp_exec_context *context; /* of sp__runs_take_context */
};

/* With one batch of each of the numbers of rows, in rising order; 0: none. `contexts`: of the plan
 * of one row, which its runs wait for. */
void sp__runs_begin(sp_runs_world *w, uint32_t slots, uint32_t contexts, uint32_t rows_a,
                    uint32_t rows_b);
/* Nothing runs, waits or is in use. */
void sp__runs_end(sp_runs_world *w);

/* Takes all slots; the only context. */
void sp__runs_take_slots(sp_runs_world *w);
void sp__runs_take_context(sp_runs_world *w);
/* Submits the run w->runs[i], by the subject or a thread. */
void sp__runs_submit(sp_runs_world *w, uint32_t i, uint32_t input);
/* Checks the outcome of the run, once it has ended, and releases it. */
void sp__runs_check(sp_runs_world *w, uint32_t i, sp_status expected);
bool sp__runs_has_ended(const sp_world_run *run);

/* ---- functions of threads; `arg` is the world ---- */

/* A run on the thread, and one that fails alone. */
void sp__runs_run(void *arg);
void sp__runs_run_bad(void *arg);
/* Waits for runs[0] and runs[1], which help. */
void sp__runs_wait(void *arg);
void sp__runs_wait_second(void *arg);
/* A wait for runs[0] inside a callback. */
void sp__runs_wait_inside(void *arg);
/* With a slot that was taken; and then a worker, until runs[0] has ended. */
void sp__runs_release_slot(void *arg);
void sp__runs_release_and_work(void *arg);
/* With a slot and the context, which it releases when runs[0] has ended: as a run that a callback
 * is ahead of. */
void sp__runs_release_late(void *arg);

#endif
