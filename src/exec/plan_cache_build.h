/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the plan cache share: plan_cache.c finds plans, plan_build.c compiles them,
 * plan_evict.c ends them. */
#ifndef SP_EXEC_PLAN_CACHE_BUILD_H
#define SP_EXEC_PLAN_CACHE_BUILD_H

#include "exec/plan_cache.h"

#define SP_PLAN_IS_LIVE ((uint64_t)1 << 63)

/* Begins a use of the entry's plan, whatever its key; false if it has none. */
bool sp__plan_entry_acquire(sp_plan_entry *entry);

/* Without any lock, since a build takes long; other keys are built in parallel. Fills in the entry,
 * which only the builder accesses. Errors: as sp__plan_compile; SP_EXHAUSTED if a run would exceed
 * max_run_bytes. */
sp_status sp__plan_cache_build(sp_plan_cache *cache, const sp_plan_request *request,
                               const sp_plan_key *key, bool may_wait, sp_plan_entry *entry);

/* The contents of an evicted entry, destroyed without the lock. */
typedef struct sp_evicted_plan {
    sp_executable *executable;
    uint64_t *words;
    sp_plan_extra *extra;
} sp_evicted_plan;

void sp__evicted_plan_destroy(const sp_evicted_plan *evicted);

/* Evicts the least recently used idle plan and returns its entry, or NULL. */
sp_plan_entry *sp__plan_evict_oldest_locked(sp_plan_cache *cache, sp_evicted_plan *evicted)
    SP_REQUIRES(&cache->lock);

#endif
