/* SPDX-License-Identifier: Apache-2.0 */
/* Eviction of plans that are not in use, and what a device reclaims from a cache. */
#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/tsan.h"
#include "exec/plan_cache_build.h"

/* ---- eviction ---- */

void sp__evicted_plan_destroy(const sp_evicted_plan *evicted)
{
    if (evicted->extra != NULL) evicted->extra->destroy(evicted->extra);
    if (evicted->executable != NULL) sp__executable_destroy(evicted->executable);
    sp_free(evicted->words);
}

static bool entry_is_idle(const sp_plan_entry *entry)
{
    /* Sequentially consistent: see `waiting`. */
    const uint64_t word = sp_load_seq_cst(&entry->word);
    if (SP_PLANTED(evict_in_use)) return word != 0;
    return word == SP_PLAN_IS_LIVE && sp_lanes_are_empty(sp_load_relaxed(&entry->lanes));
}

/* Whether a plan that is not live any more is in use: visitors that came before, and uses that they
 * have kept. */
static bool entry_has_visitors(const sp_plan_entry *entry)
{
    if (SP_PLANTED(visitors_evicted)) return false;
    if (!sp_lanes_are_empty(sp_load_relaxed(&entry->lanes))) return true;
    /* No visitor can keep the plan any more. Acquire: pairs with the release of such a use. */
    return !SP_PLANTED(kept_evicted) && sp_load_acquire(&entry->word) != 0;
}

/* Evicts the plan unless it is in use again. */
static bool entry_evict_locked(sp_plan_cache *cache, sp_plan_entry *entry, sp_evicted_plan *evicted)
    SP_REQUIRES(&cache->lock)
{
    uint64_t word = SP_PLANTED(evict_in_use) ? sp_load_relaxed(&entry->word) : SP_PLAN_IS_LIVE;
    /* Acquire: pairs with the release of the last use. Sequentially consistent: see lanes.h. */
    if (!sp_cas_seq_cst(&entry->word, &word, 0)) return false;
    if (entry_has_visitors(entry)) {
        sp_fetch_or_seq_cst(&entry->word, SP_PLAN_IS_LIVE);
        return false;
    }
    sp_tsan_acquire(&entry->word);
    *evicted = (sp_evicted_plan){entry->executable, entry->words, sp_load_relaxed(&entry->extra)};
    entry->executable = NULL;
    entry->words = NULL;
    if (!SP_PLANTED(extra_stays)) sp_store_relaxed(&entry->extra, NULL);
    sp_store_relaxed(&entry->waits, 0);
    sp_store_relaxed(&cache->hashes[entry - cache->entries], 0);
    sp_fetch_sub_relaxed(&cache->plan_count, 1);
    sp_fetch_add_relaxed(&cache->evictions, (uint64_t)1);
    return true;
}

static sp_plan_entry *entry_oldest_idle_locked(sp_plan_cache *cache) SP_REQUIRES(&cache->lock)
{
    sp_plan_entry *oldest = NULL;
    uint64_t oldest_use = UINT64_MAX;
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        sp_plan_entry *entry = &cache->entries[i];
        const uint64_t use = sp_load_relaxed(&entry->last_use);
        if (entry->is_reserved || use >= oldest_use || !entry_is_idle(entry)) continue;
        oldest = entry;
        oldest_use = use;
    }
    return oldest;
}

sp_plan_entry *sp__plan_evict_oldest_locked(sp_plan_cache *cache, sp_evicted_plan *evicted)
{
    for (;;) {
        sp_plan_entry *entry = entry_oldest_idle_locked(cache);
        if (entry == NULL || entry_evict_locked(cache, entry, evicted)) return entry;
    }
}

/* ---- reclaim ---- */

uint64_t sp__plan_cache_oldest_use(sp_plan_cache *cache)
{
    sp_mutex_lock(&cache->lock);
    const sp_plan_entry *entry = entry_oldest_idle_locked(cache);
    const uint64_t use = entry != NULL ? sp_load_relaxed(&entry->last_use) : UINT64_MAX;
    sp_mutex_unlock(&cache->lock);
    return use;
}

bool sp__plan_cache_reclaim_plan(sp_plan_cache *cache)
{
    sp_evicted_plan evicted = {0};
    sp_mutex_lock(&cache->lock);
    const bool is_reclaimed = sp__plan_evict_oldest_locked(cache, &evicted) != NULL;
    sp_mutex_unlock(&cache->lock);
    sp__evicted_plan_destroy(&evicted);
    if (is_reclaimed) {
        SP_LOG(SP_LOG_INFO, "plan evicted: %s needs its memory", cache->device->dev->limits.name);
    }
    return is_reclaimed;
}

bool sp__plan_cache_reclaim_extra(sp_plan_cache *cache)
{
    bool is_reclaimed = false;
    for (uint32_t i = 0; i < cache->entry_count && !is_reclaimed; i++) {
        sp_plan_entry *entry = &cache->entries[i];
        if (!sp__plan_entry_acquire(entry)) continue;
        sp_plan_extra *extra = sp_load_acquire(&entry->extra);
        is_reclaimed = extra != NULL && extra->reclaim(extra);
        sp__plan_cache_release(cache, entry);
    }
    return is_reclaimed;
}

bool sp__plan_cache_reclaim_context(sp_plan_cache *cache)
{
    bool is_reclaimed = false;
    for (uint32_t i = 0; i < cache->entry_count && !is_reclaimed; i++) {
        sp_plan_entry *entry = &cache->entries[i];
        if (!sp__plan_entry_acquire(entry)) continue;
        is_reclaimed = sp__executable_reclaim_context(entry->executable);
        sp__plan_cache_release(cache, entry);
    }
    return is_reclaimed;
}
