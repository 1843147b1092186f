/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, trimming and reclaiming slabs, and the steps before SP_OUT_OF_MEMORY. */
#include "runtime/slab.h"

#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "base/wait.h"
#include "device/wait.h"
#include "runtime/runtime_state.h"
#include "runtime/storage.h"

/* Small classes share slabs of about this size; a block of 1 MiB or more has a slab of its own. */
#define SLAB_BYTES ((uint64_t)1 << 20)
#define MAX_BLOCKS 64

static uint32_t blocks_per_slab(uint64_t rounded)
{
    const uint64_t count = SLAB_BYTES / rounded;
    return (uint32_t)(count < 1 ? 1 : count > MAX_BLOCKS ? MAX_BLOCKS : count);
}

/* The source's own bound always holds: the system grants more pages than it has, and kills
 * processes when they are touched. */
static uint64_t allocator_limit(const sp_allocator *allocator)
{
    const uint64_t own = allocator->source.limit_bytes;
    const uint64_t limit = sp_load_relaxed(&allocator->limit_bytes);
    return limit == 0 || (own > 0 && own < limit) ? own : limit;
}

/* Raises reserved_bytes unless that would exceed the limit. */
static bool bytes_reserve(sp_allocator *allocator, uint64_t bytes)
{
    const uint64_t limit = allocator_limit(allocator);
    uint64_t reserved = sp_load_relaxed(&allocator->reserved_bytes);
    uint64_t next;
    do {
        if (!sp_size_add(reserved, bytes, &next) || (limit > 0 && next > limit)) return false;
    } while (!sp_cas_relaxed(&allocator->reserved_bytes, &reserved, next));
    uint64_t peak = sp_load_relaxed(&allocator->peak_bytes);
    while (peak < next && !sp_cas_relaxed(&allocator->peak_bytes, &peak, next)) {
    }
    return true;
}

/* Counts what the device is asked for next, unless that is too much. */
static sp_status bytes_count(sp_allocator *allocator, uint64_t bytes)
{
    if (!bytes_reserve(allocator, bytes)) {
        return sp__fail(SP_OUT_OF_MEMORY, "the %s limit of %s, %llu bytes, is reached",
                        allocator->source.what, allocator->dev->limits.name,
                        (unsigned long long)allocator_limit(allocator));
    }
    sp_fetch_add_relaxed(&allocator->device_allocations, (uint64_t)1);
    return SP_OK;
}

static sp_status slab_memory(sp_allocator *allocator, uint64_t bytes, sp_memory *out)
{
    SP_TRY(bytes_count(allocator, bytes));
    const sp_status status = allocator->source.create(allocator->dev, bytes, out);
    if (status != SP_OK) sp_fetch_sub_relaxed(&allocator->reserved_bytes, bytes);
    return status;
}

static void slab_destroy(sp_allocator *allocator, sp_slab *slab)
{
    const uint64_t bytes = slab->memory.bytes;
    allocator->source.destroy(&slab->memory);
    sp_fetch_sub_relaxed(&allocator->reserved_bytes, bytes);
    sp_free(slab);
}

/* Block objects for the whole slab, chained; NULL if not all can be allocated. */
static sp_block *blocks_create(sp_slab *slab, uint32_t size_class, uint64_t rounded)
{
    sp_block *chain = NULL;
    for (uint32_t i = slab->block_count; i-- > 0;) {
        sp_block *block = sp__storage_block_create();
        if (block == NULL) {
            while (chain != NULL) {
                sp_block *next = chain->next;
                sp__storage_block_destroy(chain);
                chain = next;
            }
            return NULL;
        }
        block->slab = slab;
        block->offset = i * rounded;
        block->bytes = rounded;
        block->size_class = size_class;
        block->next = chain;
        chain = block;
    }
    return chain;
}

/* ---- givers: threads that hold free memory for a moment, outside of the pools ---- */

void sp__allocator_giver_begin(sp_allocator *allocator)
{
    if (!SP_PLANTED(uncounted_giver)) sp_fetch_add_relaxed(&allocator->givers, 1);
}

void sp__allocator_giver_end(sp_allocator *allocator, bool is_given)
{
    if (SP_PLANTED(uncounted_giver)) return;
    if (is_given) sp_fetch_add_relaxed(&allocator->gifts, (uint64_t)1);
    if (SP_PLANTED(relaxed_giver)) {
        sp_fetch_sub_relaxed(&allocator->givers, 1);
    } else {
        /* Release: a thread that reads zero givers sees the memory they gave, which is behind a
         * pool's lock. */
        sp_fetch_sub_release(&allocator->givers, 1);
    }
    sp_word_wake(&allocator->givers, SP_WAKE_ALL);
}

/* A new slab's first block; the others go to the pool. */
static sp_status slab_create(sp_allocator *allocator, uint32_t size_class, uint64_t rounded,
                             sp_block **out)
{
    SP_TRY(sp__class_pool_prepare(&allocator->pools[size_class]));
    sp_slab *slab = sp_calloc(1, sizeof *slab);
    if (slab == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more slab");
    slab->allocator = allocator;
    slab->block_count = blocks_per_slab(rounded);
    sp_status status = slab_memory(allocator, rounded * slab->block_count, &slab->memory);
    if (status != SP_OK) {
        sp_free(slab);
        return status;
    }
    sp_block *block = blocks_create(slab, size_class, rounded);
    if (block == NULL) {
        slab_destroy(allocator, slab);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the blocks of a slab");
    }
    *out = block;
    block = block->next;
    while (block != NULL) {
        sp_block *next = block->next;
        sp__pool_release(allocator, block);
        block = next;
    }
    return SP_OK;
}

/* A thread that creates a slab counts as a giver until the other blocks are in their pool. */
static sp_status slab_create_as_giver(sp_allocator *allocator, uint32_t size_class,
                                      uint64_t rounded, sp_block **out)
{
    sp__allocator_giver_begin(allocator);
    const sp_status status = slab_create(allocator, size_class, rounded, out);
    sp__allocator_giver_end(allocator, status == SP_OK);
    return status;
}

/* ---- trimming ---- */

uint64_t sp__slab_release(sp_slab *slab)
{
    const uint64_t bytes = slab->memory.bytes;
    sp_fetch_sub_relaxed(&slab->allocator->shared.cached_bytes, (int64_t)bytes);
    for (sp_block *block = slab->ready; block != NULL;) {
        sp_block *next = block->next;
        sp__storage_block_destroy(block);
        block = next;
    }
    slab_destroy(slab->allocator, slab);
    return bytes;
}

/* Detaches one unused slab at a time, so that the lock is held briefly. */
uint64_t sp__allocator_trim(sp_allocator *allocator, uint64_t max_bytes, bool is_deep)
{
    uint64_t given = 0;
    sp__allocator_giver_begin(allocator);
    if (is_deep) sp__allocator_flush_caches(allocator);
    for (uint32_t i = 0; i < SP_SIZE_CLASSES && given < max_bytes; i++) {
        sp_class_pool *pool = &allocator->pools[i];
        sp__class_pool_settle(pool);
        while (given < max_bytes) {
            sp_slab *slab = sp__class_pool_detach(pool);
            if (slab == NULL) break;
            given += sp__slab_release(slab);
        }
    }
    sp__allocator_giver_end(allocator, given > 0);
    return given;
}

/* ---- out of memory ---- */

/* The points to wait for: the first of each queue, and those of the host. */
typedef struct pending_points {
    bool is_any_passed; /* a block may be ready by now */
    uint32_t count;
    uint32_t capacity;
    sp_point *points; /* inline_points, or an allocation */
    sp_point inline_points[SP_POOL_LANES];
} pending_points;

static void pending_init(pending_points *pending)
{
    *pending = (pending_points){.capacity = SP_COUNT_OF(pending->inline_points),
                                .points = pending->inline_points};
}

static void pending_deinit(pending_points *pending)
{
    if (pending->points != pending->inline_points) sp_free(pending->points);
}

static bool pending_grow(pending_points *pending)
{
    sp_point *grown = sp_malloc((size_t)2 * pending->capacity * sizeof *grown);
    if (grown == NULL) return false;
    memcpy(grown, pending->points, pending->count * sizeof *grown);
    pending_deinit(pending);
    pending->points = grown;
    pending->capacity *= 2;
    return true;
}

/* The point of the same timeline that was added before, or NULL. Queues are few; of host accesses,
 * which may be very many, only the last is compared: a duplicate is harmless. */
static sp_point *find_timeline(pending_points *pending, const sp_timeline *timeline)
{
    const uint32_t first = timeline->owner == NULL && pending->count > 0 ? pending->count - 1 : 0;
    for (uint32_t i = first; i < pending->count; i++) {
        if (pending->points[i].timeline == timeline) return &pending->points[i];
    }
    return NULL;
}

static void add_pending(void *ctx, sp_point point)
{
    pending_points *pending = ctx;
    if (sp__point_has_passed(point)) {
        pending->is_any_passed = true;
        return;
    }
    sp_point *known = find_timeline(pending, point.timeline);
    if (known != NULL) {
        if (known->value > point.value) known->value = point.value;
        return;
    }
    if (pending->count == pending->capacity && !pending_grow(pending)) return;
    pending->points[pending->count++] = point;
}

/* False if none of the points will pass while this thread waits: all are behind host accesses that
 * it began itself, or behind the host function that it runs; or if its check ends the wait, whose
 * status *ended is then. */
static bool pending_wait_any(const pending_points *pending, sp_status *ended)
{
    bool is_ended;
    const uint32_t count = SP_PLANTED(wait_for_first) ? 1 : pending->count;
    const sp_status status = sp__point_wait_any_passed(pending->points, count, &is_ended);
    if (is_ended) *ended = status;
    return status == SP_OK;
}

/* Waits until the first of the points that free blocks are filed under has passed; false if there
 * are none, or if none will pass. What has become ready since the caller's last attempt counts,
 * whichever thread has noticed it: a block behind a point that has passed, a ready block of the
 * requested class, a slab that can be returned. The caller consumes these, so the number of
 * attempts is bounded. */
static bool wait_for_pending(sp_allocator *allocator, const sp_block_wish *wish, sp_status *ended)
{
    pending_points pending;
    pending_init(&pending);
    bool is_any_ready = false;
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        /* In this order: what stops being pending in between is ready for the second check. */
        sp__class_pool_each_pending(&allocator->pools[i], add_pending, &pending);
        if (sp__class_pool_has_ready(&allocator->pools[i], i != wish->size_class)) {
            is_any_ready = true;
        }
    }
    bool may_succeed = false;
    if (pending.is_any_passed || is_any_ready) {
        may_succeed = !SP_PLANTED(passed_is_nothing);
    } else if (pending.count > 0) {
        sp_fetch_add_relaxed(&allocator->waits, (uint64_t)1);
        may_succeed = pending_wait_any(&pending, ended);
    }
    pending_deinit(&pending);
    return may_succeed;
}

static sp_status fail_with_sizes(sp_allocator *allocator, uint64_t rounded)
{
    sp_memory_stats stats;
    sp__allocator_stats(allocator, &stats);
    return sp__fail_prefix(
        SP_OUT_OF_MEMORY,
        "%s: %llu bytes requested; of its %s %llu in use, %llu cached, "
        "%llu reserved, limit %llu: ",
        allocator->dev->limits.name, (unsigned long long)rounded, allocator->source.what,
        (unsigned long long)stats.in_use_bytes, (unsigned long long)stats.cached_bytes,
        (unsigned long long)stats.reserved_bytes, (unsigned long long)allocator_limit(allocator));
}

static SP_ATOMIC(sp_reclaim_fn) reclaim_fn; /* process-wide: set by a layer above, constant
                                             * afterwards. Relaxed: it names code only */

void sp__allocator_set_reclaim(sp_reclaim_fn fn)
{
    sp_store_relaxed(&reclaim_fn, fn);
}

/* Waits for pending blocks before others are reclaimed: while some stream is busy there is always
 * one more pending point. */
#define WAITS_BEFORE_RECLAIM 4

static void flush_caches(sp_allocator *allocator)
{
    sp__allocator_giver_begin(allocator);
    sp__allocator_giver_end(allocator, sp__allocator_flush_caches(allocator));
}

static bool reclaim_others(sp_allocator *allocator)
{
    const sp_reclaim_fn fn = sp_load_relaxed(&reclaim_fn);
    if (fn == NULL) return false;
    sp__allocator_giver_begin(allocator);
    const bool is_given = fn(allocator->device);
    sp__allocator_giver_end(allocator, is_given);
    return is_given;
}

/* Memory that other threads are returning while this thread searches is found nowhere until they
 * are done. They wait for no thread that acquires. True if `gifts` has changed since the search
 * began. */
static bool wait_for_givers(sp_allocator *allocator, uint64_t gifts)
{
    for (;;) {
        const uint32_t givers = sp_load_acquire(&allocator->givers);
        if (sp_load_relaxed(&allocator->gifts) != gifts) return true;
        if (givers == 0) return false;
        sp_word_wait(&allocator->givers, givers, SP_NO_DEADLINE);
    }
}

static sp_status uncut_count_and_create(sp_allocator *allocator, const sp_block_wish *wish)
{
    SP_TRY(bytes_count(allocator, wish->bytes));
    const sp_status status = wish->create(wish->ctx);
    if (status != SP_OK) {
        sp_fetch_sub_relaxed(&allocator->reserved_bytes, wish->bytes);
        return status;
    }
    sp_fetch_add_relaxed(&allocator->shared.in_use_bytes, (int64_t)wish->bytes);
    sp_fetch_add_relaxed(&allocator->shared.allocations, (uint64_t)1);
    return SP_OK;
}

/* Memory that is no block. What is counted, and then not created, is missed by others meanwhile.
 * Without memory there is none to give. */
static sp_status uncut_create(sp_allocator *allocator, const sp_block_wish *wish)
{
    sp__allocator_giver_begin(allocator);
    const sp_status status = uncut_count_and_create(allocator, wish);
    sp__allocator_giver_end(allocator, status != SP_OK && status != SP_OUT_OF_MEMORY);
    return status;
}

static sp_status wish_create(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out)
{
    if (wish->create != NULL) return uncut_create(allocator, wish);
    return slab_create_as_giver(allocator, wish->size_class, wish->bytes, out);
}

/* Of blocks that have been cached. */
static sp_block *wish_find(sp_allocator *allocator, const sp_block_wish *wish)
{
    flush_caches(allocator);
    if (wish->create != NULL) return NULL;
    sp__class_pool_settle(&allocator->pools[wish->size_class]);
    return sp__pool_acquire(allocator, wish->size_class, wish->own);
}

/* A block from a new slab, or from the caches; *is_met is false if there is no memory. */
static sp_status block_create_or_find(sp_allocator *allocator, const sp_block_wish *wish,
                                      sp_block **out, bool *is_met)
{
    do {
        const sp_status status = wish_create(allocator, wish, out);
        *is_met = status == SP_OK;
        if (status != SP_OUT_OF_MEMORY) return status;
        *out = wish_find(allocator, wish);
        *is_met = *out != NULL;
    } while (!*is_met && sp__allocator_trim(allocator, UINT64_MAX, false) > 0);
    return SP_OK;
}

/* Of a workspace that is spare, and that no run uses now. */
static bool reclaim_workspace(sp_allocator *allocator)
{
    sp_workspaces *workspaces = &allocator->device->workspaces;
    return workspaces->allocator == allocator && sp__workspaces_trim_one(workspaces);
}

/* Waits or reclaims; true if there may be more memory than when `gifts` were counted. *ended: see
 * pending_wait_any. */
static bool wait_for_memory(sp_allocator *allocator, const sp_block_wish *wish,
                            uint32_t *waits_left, uint64_t gifts, sp_status *ended)
{
    sp_delay_point();
    /* It takes no wait, and what is pending may be behind a host function. */
    if (reclaim_workspace(allocator)) return true;
    if (*waits_left > 0 && wait_for_pending(allocator, wish, ended)) {
        (*waits_left)--;
        return true;
    }
    if (*ended != SP_OK) return false;
    if (reclaim_others(allocator) || wait_for_pending(allocator, wish, ended)) return true;
    return *ended == SP_OK && wait_for_givers(allocator, gifts);
}

static sp_status block_acquire(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out)
{
    uint64_t gifts = sp_load_acquire(&allocator->gifts);
    bool is_met;
    SP_TRY(block_create_or_find(allocator, wish, out, &is_met));
    if (is_met) return SP_OK;
    if (wish->is_spare) return fail_with_sizes(allocator, wish->bytes);
    sp_status status = SP_OK;
    uint32_t waits_left = WAITS_BEFORE_RECLAIM;
    sp_fetch_add_relaxed(&allocator->short_takers, 1);
    while (status == SP_OK && !is_met &&
           wait_for_memory(allocator, wish, &waits_left, gifts, &status)) {
        gifts = sp_load_acquire(&allocator->gifts);
        status = block_create_or_find(allocator, wish, out, &is_met);
    }
    sp_fetch_sub_relaxed(&allocator->short_takers, 1);
    if (status != SP_OK) return status;
    return is_met ? SP_OK : fail_with_sizes(allocator, wish->bytes);
}

sp_status sp__slab_block(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    return sp__error_settle(&scope, block_acquire(allocator, wish, out));
}

/* ---- memory that is not cut into blocks ---- */

sp_status sp__allocator_create_uncut(sp_allocator *allocator, uint64_t bytes,
                                     sp_uncut_request request, sp_status (*create)(void *ctx),
                                     void *ctx)
{
    const sp_block_wish wish = {.size_class = SP_SIZE_CLASSES,
                                .is_spare = request != SP_UNCUT_NEEDED,
                                .bytes = bytes,
                                .create = create,
                                .ctx = ctx};
    sp_block *none = NULL;
    if (request == SP_UNCUT_SPARE && sp_load_relaxed(&allocator->short_takers) > 0) {
        return sp__fail(SP_OUT_OF_MEMORY, "an optional request backs off: %s is short of memory",
                        allocator->dev->limits.name);
    }
    return sp__slab_block(allocator, &wish, &none);
}

void sp__allocator_note_uncut_destroyed(sp_allocator *allocator, uint64_t bytes)
{
    sp_fetch_sub_relaxed(&allocator->shared.in_use_bytes, (int64_t)bytes);
    sp_fetch_add_relaxed(&allocator->shared.frees, (uint64_t)1);
    sp_fetch_sub_relaxed(&allocator->reserved_bytes, bytes);
}

/* ---- the check ---- */

bool sp__allocator_check(sp_allocator *allocator)
{
    sp__allocator_flush_caches(allocator);
    uint64_t pooled_bytes = 0;
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        if (sp__class_pool_check(&allocator->pools[i], &pooled_bytes)) continue;
        sp__fail(SP_INTERNAL, "size class %u: its lists contradict each other", i);
        return false;
    }
    sp_memory_stats stats;
    sp__allocator_stats(allocator, &stats);
    if (stats.cached_bytes == pooled_bytes &&
        stats.in_use_bytes + stats.cached_bytes == stats.reserved_bytes) {
        return true;
    }
    sp__fail(SP_INTERNAL, "in use %llu + cached %llu, reserved %llu, found in pools %llu",
             (unsigned long long)stats.in_use_bytes, (unsigned long long)stats.cached_bytes,
             (unsigned long long)stats.reserved_bytes, (unsigned long long)pooled_bytes);
    return false;
}
