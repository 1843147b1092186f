/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled plans of one model, by key. A hit takes no lock; a miss builds once, however many
 * threads ask for the key at the same time: the others wait for the builder. A build that fails
 * leaves nothing behind and is tried again by the next who asks. */
#ifndef SP_MODEL_PLAN_CACHE_H
#define SP_MODEL_PLAN_CACHE_H

#include "model/session.h"

/* Most inputs, overridden initializers and outputs of a run, each. */
#define SP_MODEL_MAX_PORTS 64

#define SP_PLAN_CACHE_BUCKETS 64

typedef struct sp_plan_entry sp_plan_entry;
typedef struct sp_plan_building sp_plan_building;

typedef struct sp_plan_cache {
    const sp_graph *graph;
    sp_rt_device *device;
    const sp_memory *weights;
    /* Lists that only grow at their heads: written under the lock with release, read with acquire.
     */
    SP_ATOMIC(sp_plan_entry *) buckets[SP_PLAN_CACHE_BUCKETS];
    sp_mutex lock;
    sp_cond built; /* some build has ended */
    sp_plan_building *building SP_GUARDED_BY(lock);
    sp_atomic_u32 plan_count;
    /* The plan that was built last, for figures. Released when it is in its bucket. */
    SP_ATOMIC(sp_compiled *) newest;
    sp_atomic_u64 build_count; /* builds that were begun; for information */
} sp_plan_cache;

void sp__plan_cache_init(sp_plan_cache *cache, const sp_graph *graph, sp_rt_device *device,
                         const sp_memory *weights);
/* No run is going on. */
void sp__plan_cache_deinit(sp_plan_cache *cache);

/* The compiled plan for these inputs; lives as long as the cache. */
sp_status sp__plan_cache_find(sp_plan_cache *cache, const sp_plan_request *request,
                              sp_compiled **out);

/* Sessions of all plans. */
uint32_t sp__plan_cache_sessions(sp_plan_cache *cache);

#endif
