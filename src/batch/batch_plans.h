/* SPDX-License-Identifier: Apache-2.0 */
/* The larger plans of a plan whose rows are separable: one for each of some numbers of rows, the
 * buckets, with the times that were measured. They are made in the background (batch_builder.h) and
 * attached to the plan's cache entry with the first bucket; others are published as they come.
 * Constant then, but for the batches of each bucket. Any thread that uses the plan.
 *
 * Held by the entry that they are attached to, and by the builder while it adds buckets. */
#ifndef SP_BATCH_BATCH_PLANS_H
#define SP_BATCH_BATCH_PLANS_H

#include "base/mutex.h"
#include "batch/batch_ports.h"
#include "batch/batch_rows.h"
#include "exec/plan_cache.h"
#include "exec/run_slots.h"

/* Most rows of a batch. */
#define SP_BATCH_ROWS 64
#define SP_BATCH_BUCKETS 16

/* Leads that must have found no batch before those that were reclaimed are created again: a burst
 * of memory use is over by then. */
#define SP_BATCH_MISSES 64u
#define SP_BATCH_MISSES_ASKED UINT32_MAX
/* Each further attempt that found no memory doubles the misses before the next one, up to 2 to this
 * power times as many: it has returned all unused memory to the device, which others have to get
 * again. */
#define SP_BATCH_DOUBLINGS 8u

typedef struct sp_batch sp_batch;

typedef struct sp_batch_bucket {
    uint32_t rows;
    sp_executable *executable;
    uint64_t run_ns;  /* of a batch */
    uint64_t lone_ns; /* of a run of one row, beside it; the builder's */
    /* It pays also where its callers are threads that must be woken: a hint, relaxed. The builder
     * sets it, when it has measured that wake-ups cost little, also after the publication. */
    sp_atomic_u32 pays_for_threads;
    /* Its missing batches are to be created: from the start, where they need no memory of their
     * own, else once a lead has looked for one, or a larger wanted bucket has no memory. Never
     * reset; relaxed: orders nothing. */
    sp_atomic_u32 is_wanted;
    sp_mutex lock;
    sp_batch *idle SP_GUARDED_BY(lock);
    /* Batches that do not exist: not yet, or not any more since they were reclaimed. */
    uint32_t missing SP_GUARDED_BY(lock);
} sp_batch_bucket;

typedef struct sp_batch_plans {
    sp_plan_extra extra;
    uint32_t input_count, output_count;
    sp_batch_port *ports; /* inputs, then outputs */
    uint64_t
        *shared_bytes; /* by input; 0: it is batched, or all plans of the key have its values */
    /* Buckets that are complete; 0: batches are not faster. Release; pairs with the acquire of
     * their users. Written by the builder. */
    sp_atomic_u32 bucket_count;
    /* A bucket pays for threads: a hint, relaxed. */
    sp_atomic_u32 pays_for_threads;
    sp_atomic_u32 holders; /* the last drop acquires what the other holder did */
    /* On a device with many run slots: those of this plan, so that requests gather while one batch
     * computes and another one is made. Else NULL: the device's. */
    sp_run_slots *own_slots;
    sp_run_group own_group; /* of requests for them */
    /* Where callers copy their rows; NULL: the lead copies them. Set before the first bucket is
     * published, as the pieces are: of the ports' rows, for the executables. */
    sp_batch_rows *rows;
    sp_row_pieces *pieces;
    /* Leads that found no idle batch of a bucket that misses some, or no rows of callers, since the
     * last that was reclaimed or created: up to SP_BATCH_MISSES. Then SP_BATCH_MISSES_ASKED until
     * the builder has tried to create the missing ones. Relaxed: orders nothing. */
    sp_atomic_u32 misses;
    /* So many times as many misses more are let pass. Written by the lead that has changed `misses`
     * to ASKED, and by the builder; a lost change is harmless. Relaxed: orders nothing. */
    sp_atomic_u32 rounds_left;
    uint32_t failures; /* attempts without memory since the last with it; the builder's */
    sp_batch_bucket buckets[SP_BATCH_BUCKETS]; /* by rows */
} sp_batch_plans;

/* Without buckets, held by the caller. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__batch_plans_create(const sp_graph_plan *single, sp_batch_plans **out);
/* The last drop destroys them. Precondition: no batch is in use. */
void sp__batch_plans_drop(sp_batch_plans *plans);
/* Attaches them to an entry in use, unless they are; false: the entry has others. */
bool sp__batch_plans_attach(sp_batch_plans *plans, sp_plan_entry *entry);

/* A bucket without batches that nobody wants yet, of which `missing` are for
 * sp__batch_bucket_refill. Takes ownership of the executable. It is the next one to be published,
 * or to be removed. */
sp_batch_bucket *sp__batch_bucket_add(sp_batch_plans *plans, uint32_t rows, uint32_t missing,
                                      sp_executable *executable);
void sp__batch_bucket_publish(sp_batch_plans *plans);
/* The published bucket pays for threads, too. */
void sp__batch_bucket_pays(sp_batch_plans *plans, uint32_t index);
void sp__batch_bucket_remove(sp_batch_plans *plans);

static inline uint32_t sp__batch_plans_count(const sp_batch_plans *plans)
{
    return sp_load_acquire(&plans->bucket_count);
}

/* Whether runs of threads are merged; a hint. */
static inline bool sp__batch_plans_pay_for_threads(const sp_batch_plans *plans)
{
    return sp_load_relaxed(&plans->pays_for_threads) != 0;
}

/* The plans of an entry that is in use; NULL: none yet. */
static inline sp_batch_plans *sp__batch_plans_of(const sp_plan_entry *entry)
{
    sp_plan_extra *extra = sp_load_acquire(&entry->extra);
    return extra != NULL ? SP_CONTAINER_OF(extra, sp_batch_plans, extra) : NULL;
}

/* Requests that wait for slots of the cache's plans themselves. */
uint32_t sp__batch_plans_waiting(sp_plan_cache *cache);

/* Creates a missing batch of the bucket, or of the smallest wanted one that misses some, from free
 * memory alone; without memory for that, of a smaller one, which is wanted then. False: none is
 * missing, or there is no memory. By the builder's thread. */
bool sp__batch_bucket_refill(sp_batch_plans *plans, sp_batch_bucket *bucket);
bool sp__batch_plans_refill(sp_batch_plans *plans);
/* Destroys the bucket's idle batches, which are missing then, and returns as much unused memory to
 * the device. */
void sp__batch_bucket_reclaim(sp_batch_bucket *bucket);
/* True for one caller once enough leads have found no batch: it asks the builder for the missing
 * ones. Misses are counted again after sp__batch_plans_forget_misses. */
bool sp__batch_plans_must_refill(sp_batch_plans *plans);
void sp__batch_plans_forget_misses(sp_batch_plans *plans);
/* The same once a refill has returned false. By the builder's thread. */
void sp__batch_plans_refill_ended(sp_batch_plans *plans);

/* An idle batch of the largest bucket with at most `rows` rows; NULL: there is none. Its user
 * releases it. */
sp_batch *sp__batch_acquire(sp_batch_plans *plans, uint32_t rows);
/* The same of a bucket that pays for threads. */
sp_batch *sp__batch_acquire_for_threads(sp_batch_plans *plans, uint32_t rows);
void sp__batch_release(sp_batch *batch);

#endif
