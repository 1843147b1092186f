/* SPDX-License-Identifier: Apache-2.0 */
/* The larger plans of a plan whose rows are separable: one for each of some numbers of rows, the
 * buckets, with the times that were measured. They are made in the background (batch_builder.h),
 * attached to the plan's cache entry when all are there, and end with it. Constant then, but for
 * the batches of each bucket. Any thread that uses the plan. */
#ifndef SP_BATCH_BATCH_PLANS_H
#define SP_BATCH_BATCH_PLANS_H

#include "base/mutex.h"
#include "batch/batch_ports.h"
#include "exec/plan_cache.h"
#include "exec/run_slots.h"

/* Most rows of a batch. */
#define SP_BATCH_ROWS 64
#define SP_BATCH_BUCKETS 16

typedef struct sp_batch sp_batch;

typedef struct sp_batch_bucket {
    uint32_t rows;
    sp_executable *executable;
    uint64_t run_ns; /* of a batch */
    sp_mutex lock;
    sp_batch *idle SP_GUARDED_BY(lock);
} sp_batch_bucket;

typedef struct sp_batch_plans {
    sp_plan_extra extra;
    uint32_t input_count, output_count;
    sp_batch_port *ports; /* inputs, then outputs */
    uint64_t
        *shared_bytes;     /* by input; 0: it is batched, or all plans of the key have its values */
    uint64_t lone_ns;      /* of a run with one row */
    uint32_t bucket_count; /* 0: batches are not faster */
    /* On a device with many run slots: those of this plan, so that requests gather while one batch
     * computes and another one is made. Else NULL: the device's. */
    sp_run_slots *own_slots;
    sp_run_group own_group;                    /* of requests for them */
    sp_batch_bucket buckets[SP_BATCH_BUCKETS]; /* by rows */
} sp_batch_plans;

/* Without buckets. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__batch_plans_create(const sp_graph_plan *single, sp_batch_plans **out);
/* Precondition: no batch is in use. */
void sp__batch_plans_destroy(sp_batch_plans *plans);
/* Adds a bucket without batches. Takes ownership of the executable. */
sp_batch_bucket *sp__batch_plans_add(sp_batch_plans *plans, uint32_t rows,
                                     sp_executable *executable);
void sp__batch_bucket_deinit(sp_batch_bucket *bucket);

/* The plans of an entry that is in use; NULL: none yet. */
static inline sp_batch_plans *sp__batch_plans_of(const sp_plan_entry *entry)
{
    sp_plan_extra *extra = sp_load_acquire(&entry->extra);
    return extra != NULL ? SP_CONTAINER_OF(extra, sp_batch_plans, extra) : NULL;
}

/* An idle batch of the largest bucket with at most `rows` rows; NULL: there is none. Its user
 * releases it. */
sp_batch *sp__batch_acquire(sp_batch_plans *plans, uint32_t rows);
void sp__batch_release(sp_batch *batch);

#endif
