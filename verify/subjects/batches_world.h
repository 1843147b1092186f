/* SPDX-License-Identifier: Apache-2.0 */
/* The world of subject_batches.c and subject_batch_rows.c: slots, a group, and batches for some
 * numbers of rows. A run adds 1 to a number. Slots, batches, gather and scatter are real; plans and
 * their devices are not needed. */
#ifndef SP_SUBJECTS_BATCHES_WORLD_H
#define SP_SUBJECTS_BATCHES_WORLD_H

#include "batch/batch.h"
#include "support.h"

#define SP_BATCHES_ROWS 4
#define SP_BATCHES_BUCKETS 2
#define SP_BATCHES_STAGED 2

typedef struct sp_batches_world sp_batches_world;

/* A run without a thread. Plain fields belong to the party that has the run. */
typedef struct sp_queued_run {
    sp_run_request request;
    sp_batches_world *world; /* NULL: it has not been submitted */
    uint32_t input, output;
    const void *inputs[1];
    void *outputs[1];
    bool has_slot;
    uint32_t ends;
} sp_queued_run;

struct sp_batches_world {
    sp_run_slots slots;
    sp_run_group group;
    sp_batch_plans plans;
    sp_batch_port ports[2];
    uint64_t shared_bytes[1];
    sp_batch batches[SP_BATCHES_BUCKETS];
    void *addresses[SP_BATCHES_BUCKETS][2];
    uint32_t tensors[SP_BATCHES_BUCKETS][2][SP_BATCHES_ROWS];
    /* With sp__batches_add_rows: rows of callers, an input and an output each. */
    sp_batch_rows rows;
    sp_atomic_u32 row_links[SP_BATCHES_STAGED];
    uint64_t row_offsets[2];
    uint32_t row_memory[SP_BATCHES_STAGED][2];
    int64_t places[SP_BATCHES_BUCKETS][2][SP_BATCHES_ROWS];
    int64_t *places_of[SP_BATCHES_BUCKETS][2];
    uint32_t inside; /* plain: with one slot, the slot orders it */
    sp_atomic_u32 computed, ended;
    bool fails;         /* batches do; constant */
    bool is_found;      /* the owner of the only slot always finds a batch; constant */
    bool second_lapses; /* runs[1] is past its deadline: no batch takes it; constant */
    sp_queued_run runs[2];
};

/* With one batch of each of the numbers of rows, in rising order; rows_b 0: of rows_a alone. */
void sp__batches_begin(sp_batches_world *w, uint32_t slots, uint32_t rows_a, uint32_t rows_b);
/* The same; all slots are taken, for the threads that lead or release. */
void sp__batches_begin_taken(sp_batches_world *w, uint32_t slots, uint32_t rows_a, uint32_t rows_b);
/* Callers that wait copy their rows, for which there are so many places. */
void sp__batches_add_rows(sp_batches_world *w, uint32_t count);
/* So many rows were computed, each submitted run has ended once, and nothing waits or is in use. */
void sp__batches_end(sp_batches_world *w, uint32_t computed);

/* Takes all slots, for the threads that lead or release. */
void sp__batches_take_slots(sp_batches_world *w);
/* Submits the run w->runs[i], with a slot or queued. */
void sp__batches_submit(sp_batches_world *w, uint32_t i);
/* A thread that waits and then two submitted runs, which do not wake it as a row of theirs. */
void sp__batches_run_unmerged(sp_batches_world *w);
/* With a slot that was taken: leads what waits now. */
void sp__batches_lead(sp_batches_world *w);

/* ---- functions of threads; `arg` is the world ---- */

void sp__batches_run(void *arg);
/* A run that must be alone. */
void sp__batches_run_apart(void *arg);
void sp__batches_submit_one(void *arg);
/* As a wait inside a callback for runs[0]: runs it without a slot, if it is still queued. */
void sp__batches_run_inline(void *arg);

/* A run that must begin at once, but waits: it leaves the queue. Or it gets a slot, and is alone.
 */
void sp__batches_run_late(void *arg);
/* As a caller that takes a row, writes all of it and returns it. */
void sp__batches_use_row(void *arg);

/* With a slot that was taken. */
void sp__batches_release_slot(void *arg);
void sp__batches_lead_now(void *arg);
/* The same when a request is in the group. */
void sp__batches_lead_one(void *arg);
/* Its batch fails, and its slot is not free before the run ends that a callback waits for. */
void sp__batches_lead_awaited(void *arg);
/* Leads the one of two that is in the group, and leaves the slot to itself, but does not come back.
 */
void sp__batches_lead_and_leave(void *arg);

#endif
