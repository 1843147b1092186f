/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/plan_cache_build.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/tsan.h"

/* A build in progress; lives on its builder's stack. */
struct sp_plan_building {
    sp_plan_building *next;
    const sp_plan_key *key;
};

/* ---- use ---- */

/* Begins a use of the entry's plan, whatever its key; false if it has none. */
bool sp__plan_entry_acquire(sp_plan_entry *entry)
{
    uint64_t word = sp_load_relaxed(&entry->word);
    do {
        if ((word & SP_PLAN_IS_LIVE) == 0) return false;
        /* Pairs with the release in entry_publish_locked: the plan and its key are complete. */
    } while (!sp_cas_acquire(&entry->word, &word, word + 1));
    sp_tsan_acquire(&entry->word);
    return true;
}

/* The same in a lane. */
static bool entry_enter(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane)
{
    /* Pairs with the release in lanes_create: the lanes are zero. */
    sp_lane *lanes = sp_load_acquire(&entry->lanes);
    if (lanes == NULL) return false;
    sp_lane_enter(&lanes[lane]);
    /* Also pairs with the release in entry_publish_locked. */
    if (SP_UNLIKELY((sp_load_seq_cst(&entry->word) & SP_PLAN_IS_LIVE) == 0)) {
        sp__plan_cache_leave(cache, entry, lane);
        return false;
    }
    sp_tsan_acquire(&entry->word);
    return true;
}

static void private_entry_destroy(sp_plan_entry *entry)
{
    if (entry->executable != NULL) sp__executable_destroy(entry->executable);
    sp_free(entry->words);
    sp_free(entry);
}

/* After a use has ended: a builder may wait for the entry. */
static void builders_wake(sp_plan_cache *cache)
{
    if (SP_LIKELY(sp_load_seq_cst(&cache->waiting) == 0) || SP_PLANTED(quiet_drop)) return;
    /* A waiting builder reads the words under the lock, so it cannot miss the signal. */
    sp__plan_cache_wake(cache);
}

void sp__plan_cache_release(sp_plan_cache *cache, sp_plan_entry *entry)
{
    if (SP_UNLIKELY(entry->is_private)) {
        private_entry_destroy(entry);
        return;
    }
    sp_tsan_release(&entry->word);
    /* Publishes what the user did with the plan to the thread that evicts it; see also
     * `waiting`. */
    const uint64_t before = sp_fetch_sub_seq_cst(&entry->word, (uint64_t)1);
    if ((before & ~SP_PLAN_IS_LIVE) == 1) builders_wake(cache);
}

void sp__plan_cache_leave(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane)
{
    sp_tsan_release(&entry->word);
    sp_lane_leave(&sp_load_relaxed(&entry->lanes)[lane]);
    builders_wake(cache);
}

void sp__plan_cache_keep(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane)
{
    sp_fetch_add_relaxed(&entry->word, (uint64_t)1); /* live, since there is a visitor */
    sp__plan_cache_leave(cache, entry, lane);
}

/* Plans published so far; relaxed, see last_use. process-wide: plans of all models are compared by
 * last use. */
static sp_atomic_u64 newest_tick;

/* At most one write per tick, so threads do not contend for the cache line. */
static void entry_note_use(sp_plan_entry *entry)
{
    const uint64_t tick = sp_load_relaxed(&newest_tick);
    if (sp_load_relaxed(&entry->last_use) != tick) sp_store_relaxed(&entry->last_use, tick);
}

/* Index of the entry at step `step` of a linear probe that begins at the key's hash. */
static uint32_t entry_index(const sp_plan_cache *cache, const sp_plan_key *key, uint32_t step)
{
    return (uint32_t)((key->hash + step) % cache->entry_count);
}

/* The key's plan, in use by the caller, or NULL. */
static sp_plan_entry *plan_look_up(sp_plan_cache *cache, const sp_plan_key *key)
{
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const uint32_t at = entry_index(cache, key, i);
        sp_plan_entry *entry = &cache->entries[at];
        if (sp_load_relaxed(&cache->hashes[at]) != key->hash || !sp__plan_entry_acquire(entry))
            continue;
        if (sp__plan_key_is(key, entry->words, entry->word_count)) {
            entry_note_use(entry);
            return entry;
        }
        sp__plan_cache_release(cache, entry); /* replaced since, or another key with this hash */
    }
    return NULL;
}

/* The same in a lane. */
static sp_plan_entry *plan_visit(sp_plan_cache *cache, const sp_plan_key *key, uint32_t lane)
{
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const uint32_t at = entry_index(cache, key, i);
        sp_plan_entry *entry = &cache->entries[at];
        if (sp_load_relaxed(&cache->hashes[at]) != key->hash) continue;
        if (!entry_enter(cache, entry, lane)) continue;
        if (sp__plan_key_is(key, entry->words, entry->word_count)) {
            entry_note_use(entry);
            return entry;
        }
        sp__plan_cache_leave(cache, entry, lane);
    }
    return NULL;
}

/* The same under the lock, where no plan is evicted: the key is compared first, so no other plan is
 * acquired, whose release could take the lock. */
static sp_plan_entry *plan_look_up_locked(sp_plan_cache *cache, const sp_plan_key *key)
    SP_REQUIRES(&cache->lock)
{
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const uint32_t at = entry_index(cache, key, i);
        sp_plan_entry *entry = &cache->entries[at];
        if (sp_load_relaxed(&cache->hashes[at]) != key->hash) continue;
        if ((sp_load_relaxed(&entry->word) & SP_PLAN_IS_LIVE) == 0) continue;
        if (!sp__plan_key_is(key, entry->words, entry->word_count)) continue;
        (void)sp__plan_entry_acquire(entry); /* it is live */
        entry_note_use(entry);
        return entry;
    }
    return NULL;
}

/* ---- entries ---- */

static sp_plan_entry *entry_find_free_locked(sp_plan_cache *cache, const sp_plan_key *key)
    SP_REQUIRES(&cache->lock)
{
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        sp_plan_entry *entry = &cache->entries[entry_index(cache, key, i)];
        if (!entry->is_reserved && sp_load_relaxed(&entry->word) == 0) return entry;
    }
    return NULL;
}

static sp_plan_entry *entry_reserve_locked(sp_plan_cache *cache, const sp_plan_key *key,
                                           sp_evicted_plan *evicted) SP_REQUIRES(&cache->lock)
{
    sp_plan_entry *entry = entry_find_free_locked(cache, key);
    if (entry == NULL) entry = sp__plan_evict_oldest_locked(cache, evicted);
    if (entry != NULL) entry->is_reserved = true;
    return entry;
}

/* ---- builds ---- */

static bool building_exists_locked(sp_plan_cache *cache, const sp_plan_key *key)
    SP_REQUIRES(&cache->lock)
{
    const sp_plan_building *other = cache->building;
    while (other != NULL && !sp__plan_key_is(key, other->key->words, other->key->count)) {
        other = other->next;
    }
    return other != NULL;
}

static void end_building_locked(sp_plan_cache *cache, const sp_plan_building *mine)
    SP_REQUIRES(&cache->lock)
{
    sp_plan_building **entry = &cache->building;
    while (*entry != mine) entry = &(*entry)->next;
    *entry = mine->next;
}

/* A failed build leaves the entry empty. */
static sp_status plan_build_or_clear(sp_plan_cache *cache, const sp_plan_request *request,
                                     const sp_plan_key *key, bool may_wait, sp_plan_entry *entry)
{
    const sp_status status = sp__plan_cache_build(cache, request, key, may_wait, entry);
    if (status == SP_OK) return SP_OK;
    const sp_evicted_plan evicted = {entry->executable, entry->words, NULL};
    entry->executable = NULL;
    entry->words = NULL;
    sp__evicted_plan_destroy(&evicted);
    return status;
}

static void entry_publish_locked(sp_plan_cache *cache, sp_plan_entry *entry, const sp_plan_key *key)
    SP_REQUIRES(&cache->lock)
{
    sp_store_relaxed(&entry->last_use, sp_fetch_add_relaxed(&newest_tick, (uint64_t)1));
    sp_store_relaxed(&cache->hashes[entry - cache->entries], key->hash);
    sp_store_relaxed(&entry->run_ns, 0);
    sp_tsan_release(&entry->word);
    sp_store_release(&entry->word, SP_PLAN_IS_LIVE | 1); /* in use by its builder */
    sp_store_relaxed(&cache->newest, entry);
    sp_fetch_add_relaxed(&cache->plan_count, 1);
}

static sp_status plan_build_private(sp_plan_cache *cache, const sp_plan_request *request,
                                    const sp_plan_key *key, sp_plan_entry **out)
{
    sp_plan_entry *entry = sp_aligned_malloc(_Alignof(sp_plan_entry), sizeof *entry);
    if (entry == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    memset(entry, 0, sizeof *entry);
    entry->is_private = true;
    const sp_status status = plan_build_or_clear(cache, request, key, false, entry);
    if (status != SP_OK) {
        private_entry_destroy(entry);
        return status;
    }
    *out = entry;
    return SP_OK;
}

/* ---- acquire ---- */

/* `no_wait` of an acquire: NULL, or the caller must not wait once it is nonzero. */
static const sp_atomic_u32 at_once = {1};

static bool is_wait_allowed(const sp_atomic_u32 *no_wait)
{
    return no_wait == NULL || sp_load_acquire(no_wait) == 0;
}

/* Waits until the key's plan exists, which is returned, or the caller is to build it in the
 * reserved *entry. Both are NULL if the caller must not wait. */
static sp_plan_entry *plan_find_locked(sp_plan_cache *cache, const sp_plan_key *key,
                                       const sp_atomic_u32 *no_wait, sp_plan_entry **entry,
                                       sp_evicted_plan *evicted) SP_REQUIRES(&cache->lock)
{
    sp_plan_entry *found = NULL;
    *entry = NULL;
    for (;;) {
        if (!SP_PLANTED(build_twice)) {
            found = plan_look_up_locked(cache, key);
            if (found != NULL) break;
            if (building_exists_locked(cache, key)) {
                if (!is_wait_allowed(no_wait)) break; /* the builder may wait for the caller */
                sp_cond_wait(&cache->changed, &cache->lock);
                continue;
            }
        }
        *entry = entry_reserve_locked(cache, key, evicted);
        if (*entry != NULL || !is_wait_allowed(no_wait)) break;
        sp_fetch_add_seq_cst(&cache->waiting, 1);
        *entry = entry_reserve_locked(cache, key, evicted);
        if (*entry == NULL) sp_cond_wait(&cache->changed, &cache->lock);
        sp_fetch_sub_relaxed(&cache->waiting, 1);
        if (*entry != NULL) break;
    }
    return found;
}

/* What the log tells of a build. */
typedef struct build_note {
    bool is_built, has_evicted;
    uint32_t step_count;
    uint64_t arena_bytes;
} build_note;

static sp_status plan_obtain(sp_plan_cache *cache, const sp_plan_request *request,
                             const sp_plan_key *key, const sp_atomic_u32 *no_wait, build_note *note,
                             sp_plan_entry **out)
{
    sp_plan_building mine = {.key = key};
    sp_evicted_plan evicted = {0};
    sp_plan_entry *entry;
    sp_mutex_lock(&cache->lock);
    *out = plan_find_locked(cache, key, no_wait, &entry, &evicted);
    if (entry != NULL) {
        mine.next = cache->building;
        cache->building = &mine;
    }
    sp_mutex_unlock(&cache->lock);
    if (*out != NULL) return SP_OK;
    if (entry == NULL) return plan_build_private(cache, request, key, out);

    const bool has_evicted = evicted.executable != NULL;
    sp__evicted_plan_destroy(&evicted);
    sp_delay_point();
    const sp_status status = plan_build_or_clear(cache, request, key, no_wait == NULL, entry);

    sp_mutex_lock(&cache->lock);
    end_building_locked(cache, &mine);
    entry->is_reserved = false;
    if (status == SP_OK) entry_publish_locked(cache, entry, key);
    if (status == SP_OK || !SP_PLANTED(quiet_failure)) sp_cond_broadcast(&cache->changed);
    sp_mutex_unlock(&cache->lock);
    if (status != SP_OK) return status;
    sp__executable_preallocate(entry->executable); /* published: may be reclaimed */
    *out = entry;
    const sp_graph_plan *plan = entry->executable->plan;
    *note = (build_note){true, has_evicted, plan->step_count, plan->arena_bytes};
    return SP_OK;
}

/* The log's callback may run the model, and need the plan's entry for another one: so the plan is
 * not in use during the call. If it was evicted it is built again, which is not told. */
static SP_NOINLINE sp_status plan_find_or_build(sp_plan_cache *cache,
                                                const sp_plan_request *request,
                                                const sp_plan_key *key,
                                                const sp_atomic_u32 *no_wait, sp_plan_entry **out)
{
    build_note note = {0};
    SP_TRY(plan_obtain(cache, request, key, no_wait, &note, out));
    if (!note.is_built || !sp__log_is_on(SP_LOG_INFO)) return SP_OK;
    sp__plan_cache_release(cache, *out);
    SP_LOG(SP_LOG_INFO, "plan built for %s: %u steps, an arena of %" PRIu64 " bytes%s",
           cache->device->dev->limits.name, note.step_count, note.arena_bytes,
           note.has_evicted ? "; another plan was evicted" : "");
    *out = plan_look_up(cache, key);
    return *out != NULL ? SP_OK : plan_obtain(cache, request, key, no_wait, &note, out);
}

sp_status sp__plan_cache_acquire_until(sp_plan_cache *cache, const sp_plan_request *request,
                                       const sp_atomic_u32 *no_wait, sp_plan_entry **out)
{
    sp_plan_key key;
    SP_TRY(sp__plan_key_init(&key, request));
    sp_status status = SP_OK;
    *out = plan_look_up(cache, &key);
    if (SP_UNLIKELY(*out == NULL)) status = plan_find_or_build(cache, request, &key, no_wait, out);
    sp__plan_key_deinit(&key);
    return status;
}

sp_status sp__plan_cache_acquire(sp_plan_cache *cache, const sp_plan_request *request,
                                 bool may_wait, sp_plan_entry **out)
{
    return sp__plan_cache_acquire_until(cache, request, may_wait ? NULL : &at_once, out);
}

void sp__plan_cache_wake(sp_plan_cache *cache)
{
    sp_mutex_lock(&cache->lock);
    sp_cond_broadcast(&cache->changed);
    sp_mutex_unlock(&cache->lock);
}

/* A use becomes a visit. */
static void plan_move_to_lane(sp_plan_cache *cache, sp_plan_entry *entry, uint32_t lane)
{
    sp_lane_enter(&sp_load_relaxed(&entry->lanes)[lane]);
    sp__plan_cache_release(cache, entry);
}

sp_status sp__plan_cache_visit(sp_plan_cache *cache, const sp_plan_request *request, uint32_t lane,
                               sp_plan_entry **out)
{
    sp_plan_key key;
    SP_TRY(sp__plan_key_init(&key, request));
    sp_status status = SP_OK;
    *out = plan_visit(cache, &key, lane);
    if (SP_UNLIKELY(*out == NULL)) {
        status = plan_find_or_build(cache, request, &key, NULL, out);
        if (status == SP_OK) plan_move_to_lane(cache, *out, lane);
    }
    sp__plan_key_deinit(&key);
    return status;
}

sp_status sp__plan_cache_try_visit(sp_plan_cache *cache, const sp_plan_request *request,
                                   uint32_t lane, sp_plan_entry **out)
{
    sp_plan_key key;
    SP_TRY(sp__plan_key_init(&key, request));
    *out = plan_visit(cache, &key, lane);
    sp__plan_key_deinit(&key);
    return SP_OK;
}

sp_plan_entry *sp__plan_cache_find(sp_plan_cache *cache, const sp_plan_key *key)
{
    sp_mutex_lock(&cache->lock);
    sp_plan_entry *entry = plan_look_up_locked(cache, key);
    sp_mutex_unlock(&cache->lock);
    return entry;
}

bool sp__plan_entry_attach(sp_plan_entry *entry, sp_plan_extra *extra)
{
    sp_plan_extra *none = NULL;
    if (SP_PLANTED(relaxed_attach)) return sp_cas_relaxed(&entry->extra, &none, extra);
    return sp_cas_release(&entry->extra, &none, extra);
}

/* ---- init and deinit ---- */

sp_status sp__plan_cache_init(sp_plan_cache *cache, const sp_graph *graph, sp_rt_device *device,
                              const sp_memory *weights, uint32_t entry_count)
{
    cache->graph = graph;
    cache->device = device;
    cache->weights = weights;
    cache->entry_count = entry_count;
    sp_mutex_init(&cache->lock, SP_LOCK_PLAN_CACHE);
    sp_cond_init(&cache->changed);
    const size_t bytes = entry_count * sizeof *cache->entries;
    cache->entries = sp_aligned_malloc(_Alignof(sp_plan_entry), bytes);
    cache->hashes = sp_calloc(entry_count, sizeof *cache->hashes);
    if (cache->entries == NULL || cache->hashes == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model's plans");
    }
    memset(cache->entries, 0, bytes);
    return SP_OK;
}

void sp__plan_cache_deinit(sp_plan_cache *cache)
{
    /* Without entries or hashes, no plan was ever built. */
    const uint32_t count = cache->hashes != NULL && cache->entries != NULL ? cache->entry_count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const sp_plan_entry *entry = &cache->entries[i];
        SP_ASSERT((sp_load_relaxed(&entry->word) & ~SP_PLAN_IS_LIVE) == 0);
        sp__evicted_plan_destroy(
            &(sp_evicted_plan){entry->executable, entry->words, sp_load_relaxed(&entry->extra)});
        sp_free(sp_load_relaxed(&entry->lanes));
    }
    sp_free(cache->entries);
    sp_free(cache->hashes);
    if (cache->graph == NULL) return; /* never initialised */
    sp_cond_deinit(&cache->changed);
    sp_mutex_deinit(&cache->lock);
}

sp_plan_entry *sp__plan_cache_acquire_newest(sp_plan_cache *cache)
{
    sp_plan_entry *entry = sp_load_relaxed(&cache->newest);
    return entry != NULL && sp__plan_entry_acquire(entry) ? entry : NULL;
}

sp_plan_entry *sp__plan_cache_acquire_at(sp_plan_cache *cache, uint32_t index)
{
    sp_plan_entry *entry = &cache->entries[index];
    return sp__plan_entry_acquire(entry) ? entry : NULL;
}

uint32_t sp__plan_cache_context_count(sp_plan_cache *cache)
{
    uint32_t count = 0;
    /* Acquires no plan, since plans in use cannot be evicted. */
    sp_mutex_lock(&cache->lock);
    for (uint32_t i = 0; i < cache->entry_count; i++) {
        const sp_plan_entry *entry = &cache->entries[i];
        if ((sp_load_relaxed(&entry->word) & SP_PLAN_IS_LIVE) == 0) continue;
        count += sp_load_relaxed(&entry->executable->context_count);
    }
    sp_mutex_unlock(&cache->lock);
    return count;
}
