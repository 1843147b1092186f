/* SPDX-License-Identifier: Apache-2.0 */
/* The executables of one model, by key, at most a given number of them. A hit takes no lock; a miss
 * builds once, however many threads request the key at the same time: the others wait for the
 * builder. A build that fails leaves nothing behind; the next request tries again.
 *
 * A plan is in use between acquire and release, and is not evicted while in use. A new plan evicts
 * the least recently used one. Time is counted in ticks, one per build of any cache, so only the
 * first use after a build writes `last_use`. If all plans are in use, the builder waits for a
 * release; a caller that must not wait for other runs gets a private plan.
 *
 *     entry->word = is_live:1 | users:63
 *
 *     is_live            the plan and its key are complete, and constant
 *     users > 0          the plan stays live
 *     neither, reserved  owned by its builder: `is_reserved`, under the lock
 *
 * is_live is cleared under the lock only, at users == 0; any thread may use a live plan. Runs on a
 * caller's thread are counted in lanes instead (lanes.h), so that they share no line that is
 * written. An eviction clears is_live, looks at the lanes, and sets it again if there are visitors;
 * a look-up that sees the gap looks again under the lock. */
#ifndef SP_EXEC_PLAN_CACHE_H
#define SP_EXEC_PLAN_CACHE_H

#include "base/lanes.h"
#include "exec/context.h"
#include "plan/plan_key.h"

#define SP_PLAN_CACHE_MOST 4096

/* What a layer above keeps with a plan. It ends with the plan. */
typedef struct sp_plan_extra sp_plan_extra;
struct sp_plan_extra {
    void (*destroy)(sp_plan_extra *extra);
    /* Frees memory of the device that can be created again; false: there is none. */
    bool (*reclaim)(sp_plan_extra *extra);
};

typedef struct sp_plan_entry {
    /* As above. Release at publication: pairs with the acquire of each use. */
    SP_CACHE_ALIGNED sp_atomic_u64 word;
    /* Of the first plan, and kept for later ones. Written by its builder, before `word`. */
    SP_ATOMIC(sp_lane *) lanes;
    sp_atomic_u64 last_use; /* in ticks; relaxed, a hint for eviction */
    bool is_reserved;       /* a builder fills the entry; guarded by the cache's lock */
    bool is_private;        /* not in the table: destroyed with its one use. Constant */
    sp_executable *executable;
    uint32_t word_count;
    uint64_t *words; /* of the key */
    /* NULL until it is attached, once. Release; pairs with the acquire of its users. */
    SP_ATOMIC(sp_plan_extra *) extra;
    sp_atomic_u32 waits; /* of runs for a slot, until there is an extra; orders nothing */
    sp_atomic_u32
        run_ns; /* expected of a run (run_estimate.h); 0 at publication. Relaxed, a hint */
} sp_plan_entry;

typedef struct sp_plan_building sp_plan_building;

typedef struct sp_plan_cache {
    const sp_graph *graph;
    sp_rt_device *device;
    const sp_memory *weights;
    sp_packed_weights *packed; /* the model's; may be NULL if no plan has packings */
    uint64_t max_run_bytes;    /* plans whose run would take more are refused; 0: no limit */
    sp_precision precision;    /* of the model's products */
    const char *cpu_ops;       /* list of op types for the fallback (op_list.h) */
    uint32_t entry_count;
    sp_plan_entry *entries;
    /* Hash of the plan in each entry, or 0. Written under the lock; look-ups only compare it:
     * relaxed, since an entry's word and key decide. */
    sp_atomic_u64 *hashes;
    sp_mutex lock;
    sp_cond changed; /* a build has ended, or a builder waits and a plan is no longer in use */
    sp_plan_building *building SP_GUARDED_BY(lock);
    /* Builders that wait for an entry. Raised, under the lock, before the builder reads the
     * entries' words; read after a word was lowered: sequentially consistent on both sides, so one
     * of the two sees the other. */
    sp_atomic_u32 waiting;
    sp_atomic_u32 plan_count;
    /* The entry of the plan that was built last, for information. Relaxed: the entry's word
     * decides. */
    SP_ATOMIC(sp_plan_entry *) newest;
    sp_atomic_u64 build_count; /* builds begun; for information */
    sp_atomic_u64 evictions;   /* evicted plans; for information */
} sp_plan_cache;

/* At most `entry_count` plans, 1 to SP_PLAN_CACHE_MOST. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_cache_init(sp_plan_cache *cache, const sp_graph *graph, sp_rt_device *device,
                              const sp_memory *weights, uint32_t entry_count);
/* Precondition: no plan is in use. Valid on a cache whose init failed, and on a zeroed one. */
void sp__plan_cache_deinit(sp_plan_cache *cache);

/* Do plans of the cache use kernels that only the CPU has? (sp_plan_request.is_blocked, is_strided)
 */
bool sp__plan_cache_is_for_cpu(const sp_plan_cache *cache);

/* The executable for the request, in use until sp__plan_cache_release. `may_wait` is false for
 * callers that must not wait for other runs. */
sp_status sp__plan_cache_acquire(sp_plan_cache *cache, const sp_plan_request *request,
                                 bool may_wait, sp_plan_entry **out);
/* The same for a caller that must not wait any more once *no_wait is nonzero, which the setter
 * follows by a wake. NULL: it may wait. */
sp_status sp__plan_cache_acquire_until(sp_plan_cache *cache, const sp_plan_request *request,
                                       const sp_atomic_u32 *no_wait, sp_plan_entry **out);
/* Wakes the threads that wait in an acquire. */
void sp__plan_cache_wake(sp_plan_cache *cache);
/* The same by a thread that may wait, counted in a lane (below SP_LANES) until
 * sp__plan_cache_leave.
 */
sp_status sp__plan_cache_visit(sp_plan_cache *cache, const sp_plan_request *request, uint32_t lane,
                               sp_plan_entry **out);
/* The same without a build and without a wait: NULL if there is no such plan now. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__plan_cache_try_visit(sp_plan_cache *cache, const sp_plan_request *request,
                                   uint32_t lane, sp_plan_entry **out);
void sp__plan_cache_leave(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane);
/* A visitor gets a use that any thread may release, and has left. */
void sp__plan_cache_keep(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane);
/* The plan of that key if it exists, in use; else NULL. */
sp_plan_entry *sp__plan_cache_find(sp_plan_cache *cache, const sp_plan_key *key);
/* Attaches `extra` to a plan in use, which owns it from now on; false: the plan has one. */
bool sp__plan_entry_attach(sp_plan_entry *entry, sp_plan_extra *extra);
/* Compiles an executable outside of the table, without contexts. */
sp_status sp__plan_cache_compile(sp_plan_cache *cache, const sp_plan_request *request,
                                 bool may_wait, sp_executable **out);
/* Ends one use of the plan. */
void sp__plan_cache_release(sp_plan_cache *cache, sp_plan_entry *entry);

/* The plan that was built last, in use until released; NULL if it is not in the cache any more. */
sp_plan_entry *sp__plan_cache_acquire_newest(sp_plan_cache *cache);

/* The plan in one of the entries, in use until released; NULL: there is none. */
sp_plan_entry *sp__plan_cache_acquire_at(sp_plan_cache *cache, uint32_t index);

/* For reclaim: the last use, in ticks, of the least recently used plan that is not in use;
 * UINT64_MAX if all are. */
uint64_t sp__plan_cache_oldest_use(sp_plan_cache *cache);
/* Reclaims memory of the extra of any plan; evicts that plan; destroys an idle context of any plan.
 * False: there is none. */
bool sp__plan_cache_reclaim_extra(sp_plan_cache *cache);
bool sp__plan_cache_reclaim_plan(sp_plan_cache *cache);
bool sp__plan_cache_reclaim_context(sp_plan_cache *cache);

/* Number of contexts of all plans. */
uint32_t sp__plan_cache_context_count(sp_plan_cache *cache);

#endif
