/* SPDX-License-Identifier: Apache-2.0 */
/* Counters of one model's runs, for sp_model_get_statistics. Relaxed, for information. Those that
 * each run changes are in lanes; the others change only where a run fails or batches are made, or
 * by one run in SP_RUN_SAMPLE. */
#ifndef SP_EXEC_RUN_COUNTERS_H
#define SP_EXEC_RUN_COUNTERS_H

#include <streampool/model.h>

#include "base/atomic.h"
#include "base/lanes.h"
#include "base/macros.h"
#include "exec/run_slots.h"

/* Of so many runs the time of one is measured. */
#define SP_RUN_SAMPLE 64u

typedef struct sp_run_counters {
    SP_CACHE_ALIGNED sp_lane *lanes; /* of the model; constant: counts are SP_RUN_STARTED, ... */
    sp_atomic_u32 most_in_flight;    /* as far as it was looked */
    sp_atomic_u64 refused, expired, cancelled, failed;
    sp_atomic_u64 longest_wait_ns;
    sp_atomic_u64 timed, timed_ns;
    sp_atomic_u64 batches;                             /* of several runs */
    sp_atomic_u64 batched_runs;                        /* runs in them */
    sp_atomic_u64 batches_of[SP_MODEL_BATCH_ROWS + 1]; /* by rows */
} sp_run_counters;

/* By index in sp_lane.counts: runs, refused ones too; runs that compute; runs that have waited, and
 * how long. */
enum { SP_RUN_STARTED, SP_RUN_IN_FLIGHT, SP_RUN_WAITED, SP_RUN_WAIT_NS };

/* All zero; before the model is published. */
void sp__run_counters_init(sp_run_counters *counters, sp_lane *lanes);

/* A run starts. True: its time is to be measured (sp__run_counters_time). */
bool sp__run_counters_start(sp_run_counters *counters, uint32_t lane);
void sp__run_counters_time(sp_run_counters *counters, uint64_t begin_ns);
/* It has ended, with this status. */
void sp__run_counters_end(sp_run_counters *counters, sp_status status);

/* Around what it computes. `looks`: whether more runs than ever compute now, which reads all lanes.
 */
void sp__run_counters_enter(sp_run_counters *counters, uint32_t lane, bool looks);
void sp__run_counters_leave(sp_run_counters *counters, uint32_t lane);
/* Runs that compute now. */
uint32_t sp__run_counters_in_flight(const sp_run_counters *counters);

/* The request was queued, and got its slot or was taken. */
void sp__run_counters_wait(sp_run_counters *counters, const sp_run_request *request);
/* A batch of so many runs begins. */
void sp__run_counters_batch(sp_run_counters *counters, uint32_t rows);

/* Runs, refused ones too. */
uint64_t sp__run_counters_started(const sp_run_counters *counters);
void sp__run_counters_read(const sp_run_counters *counters, sp_model_statistics *out);

#endif
