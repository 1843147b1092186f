/* SPDX-License-Identifier: Apache-2.0 */
/* The executables of one model, by key, at most a given number of them. A hit takes no lock; a
 * miss builds once, however many threads ask for the key at the same time: the others wait for the
 * builder. A build that fails leaves nothing behind and is tried again by the next who asks.
 *
 * A plan is used between find and drop, and stays while it is used. A new plan replaces
 * the one that was not used for longest, counted in ticks, which are builds of all caches: uses
 * write nothing but the first one after a build. If all are in use, the builder waits until one is
 * not; a caller who must not wait for other runs gets a plan of its own.
 *
 *     entry->word = is_live:1 | users:63
 *
 *     is_live            the plan and its key are complete, and constant
 *     users > 0          it stays live
 *     neither, reserved  its builder's alone: `is_reserved`, under the lock
 *
 * Only the lock's holder ends a life, from users == 0; anybody may use a live plan. */
#ifndef SP_EXEC_PLAN_CACHE_H
#define SP_EXEC_PLAN_CACHE_H

#include "exec/context.h"
#include "plan/plan_key.h"

#define SP_PLAN_CACHE_MOST 4096

typedef struct sp_plan_entry {
    /* As above. Release when a life begins: pairs with the acquire of whoever uses the plan. */
    SP_CACHE_ALIGNED sp_atomic_u64 word;
    sp_atomic_u64 last_use; /* the tick then; relaxed, a hint for the choice of victims */
    bool is_reserved;       /* a build is for here; guarded by the cache's lock */
    bool is_private;        /* not in the table: it ends with its one user. Constant */
    sp_executable *executable;
    uint32_t word_count;
    uint64_t *words; /* of the key */
} sp_plan_entry;

typedef struct sp_plan_building sp_plan_building;

typedef struct sp_plan_cache {
    const sp_graph *graph;
    sp_rt_device *device;
    const sp_memory *weights;
    sp_packed_weights *packed; /* the model's; may be NULL if no plan has packings */
    uint64_t max_run_bytes;    /* no plan is kept whose run would take more; 0: any number */
    const char *cpu_ops;       /* list of op types for the fallback (op_list.h) */
    uint32_t entry_count;
    sp_plan_entry *entries;
    /* Hash of the plan in each entry, or 0. Written under the lock, by look-ups only compared:
     * relaxed, since an entry's word and key decide. */
    sp_atomic_u64 *hashes;
    sp_mutex lock;
    sp_cond changed; /* a build has ended, or a plan that somebody waits for is not used any more */
    sp_plan_building *building SP_GUARDED_BY(lock);
    /* Builders that wait for an entry. Raised, under the lock, before they look at the places'
     * words; read after a word was lowered: sequentially consistent on both sides, so one sees the
     * other. */
    sp_atomic_u32 waiting;
    sp_atomic_u32 plan_count;
    /* Of the plan that was built last, for figures. Relaxed: the entry's word decides. */
    SP_ATOMIC(sp_plan_entry *) newest;
    sp_atomic_u64 build_count; /* builds that were begun; for information */
    sp_atomic_u64 evictions;   /* plans that gave way to others; for information */
} sp_plan_cache;

/* For at most `place_count` plans, 1 to SP_PLAN_CACHE_MOST. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_cache_init(sp_plan_cache *cache, const sp_graph *graph, sp_rt_device *device,
                              const sp_memory *weights, uint32_t entry_count);
/* No plan is in use. A cache whose init failed, and a zeroed one, are fine. */
void sp__plan_cache_deinit(sp_plan_cache *cache);

/* The executable for these inputs, in use from now on. `may_wait` is false for callers that must
 * not wait for other runs. */
sp_status sp__plan_cache_acquire(sp_plan_cache *cache, const sp_plan_request *request,
                                 bool may_wait, sp_plan_entry **out);
/* The caller does not use it any more. */
void sp__plan_cache_release(sp_plan_cache *cache, sp_plan_entry *entry);

/* The plan that was built last, in use from now on; NULL if it is not kept. */
sp_plan_entry *sp__plan_cache_acquire_newest(sp_plan_cache *cache);

/* For who needs memory. The last use of the plan that was not used for longest and is not in use;
 * UINT64_MAX if there is none. */
uint64_t sp__plan_cache_oldest_use(sp_plan_cache *cache);
/* Ends that plan's life; a context that no run of a plan in use has. False: there is none. */
bool sp__plan_cache_reclaim_plan(sp_plan_cache *cache);
bool sp__plan_cache_reclaim_context(sp_plan_cache *cache);

/* contexts of all plans. */
uint32_t sp__plan_cache_context_count(sp_plan_cache *cache);

#endif
