/* SPDX-License-Identifier: Apache-2.0 */
/* Making, reclaiming and trimming slabs, and the way to SP_OUT_OF_MEMORY. */
#include "runtime/slab.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/size.h"
#include "device/wait.h"
#include "runtime/storage.h"

/* Small classes share slabs of about this size; a block of 1 MiB or more has a slab of its own. */
#define SLAB_BYTES ((uint64_t)1 << 20)
#define MAX_BLOCKS 64

static uint32_t blocks_per_slab(uint64_t rounded)
{
    const uint64_t count = SLAB_BYTES / rounded;
    return (uint32_t)(count < 1 ? 1 : count > MAX_BLOCKS ? MAX_BLOCKS : count);
}

/* The source's own bound holds always: the system hands out more pages than it has, and ends
 * processes when they are touched. */
static uint64_t limit_of(const sp_allocator *allocator)
{
    const uint64_t own = allocator->source.limit_bytes;
    const uint64_t limit = sp_load_relaxed(&allocator->limit_bytes);
    return limit == 0 || (own > 0 && own < limit) ? own : limit;
}

/* Raises reserved_bytes unless that would exceed the limit. */
static bool reserve(sp_allocator *allocator, uint64_t bytes)
{
    const uint64_t limit = limit_of(allocator);
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

static sp_status slab_memory(sp_allocator *allocator, uint64_t bytes, sp_memory *out)
{
    if (!reserve(allocator, bytes)) {
        return sp__fail(SP_OUT_OF_MEMORY, "the %s limit of %s, %llu bytes, is reached",
                        allocator->source.what, allocator->dev->limits.name,
                        (unsigned long long)limit_of(allocator));
    }
    sp_fetch_add_relaxed(&allocator->device_allocations, (uint64_t)1);
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

/* Block objects for the whole slab, chained; NULL if there is no memory for all. */
static sp_block *make_blocks(sp_slab *slab, uint32_t size_class, uint64_t rounded)
{
    sp_block *chain = NULL;
    for (uint32_t i = slab->block_count; i-- > 0;) {
        sp_block *block = sp__storage_block_new();
        if (block == NULL) {
            while (chain != NULL) {
                sp_block *next = chain->next;
                sp__storage_block_free(chain);
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

/* A new slab's first block; the others go to the pool. */
static sp_status slab_new(sp_allocator *allocator, uint32_t size_class, uint64_t rounded,
                          sp_block **out)
{
    sp_slab *slab = sp_calloc(1, sizeof *slab);
    if (slab == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for one more slab");
    slab->block_count = blocks_per_slab(rounded);
    sp_status status = slab_memory(allocator, rounded * slab->block_count, &slab->memory);
    if (status != SP_OK) {
        sp_free(slab);
        return status;
    }
    sp_block *block = make_blocks(slab, size_class, rounded);
    if (block == NULL) {
        slab_destroy(allocator, slab);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the blocks of a slab");
    }
    *out = block;
    block = block->next;
    while (block != NULL) {
        sp_block *next = block->next;
        sp__pool_give(allocator, block);
        block = next;
    }
    return SP_OK;
}

/* ---- trimming ---- */

static bool slab_is_unused(const sp_slab *slab)
{
    if (slab->pooled_count < slab->block_count && !SP_PLANTED(trim_in_use)) return false;
    for (sp_block *block = slab->first; block != NULL; block = block->next) {
        if (!sp__block_is_ready_for(block, NULL)) return false;
    }
    return true;
}

/* Detaches one unused slab of the class at a time, so that the lock is held for moments. */
static sp_slab *detach_unused(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    sp_slab *slab = pool->first;
    while (slab != NULL && !slab_is_unused(slab)) slab = slab->next;
    if (slab != NULL) sp__pool_unlink_locked(pool, slab);
    sp_mutex_unlock(&pool->lock);
    return slab;
}

static uint64_t release_slab(sp_allocator *allocator, sp_slab *slab)
{
    const uint64_t bytes = slab->memory.bytes;
    sp_fetch_sub_relaxed(&allocator->shared.cached_bytes, (int64_t)bytes);
    for (sp_block *block = slab->first; block != NULL;) {
        sp_block *next = block->next;
        sp__storage_block_free(block);
        block = next;
    }
    slab_destroy(allocator, slab);
    return bytes;
}

uint64_t sp__allocator_trim(sp_allocator *allocator, uint64_t max_bytes, bool is_deep)
{
    uint64_t given = 0;
    if (is_deep) sp__allocator_flush_caches(allocator);
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        while (given < max_bytes) {
            sp_slab *slab = detach_unused(&allocator->pools[i]);
            if (slab == NULL) break;
            given += release_slab(allocator, slab);
        }
    }
    return given;
}

/* ---- out of memory ---- */

typedef struct pending_points {
    sp_point points[SP_MAX_WAITS];
    sp_wait_set set;
} pending_points;

static void add_pending(void *ctx, sp_point point)
{
    pending_points *pending = ctx;
    sp__wait_set_add(&pending->set, point, NULL); /* a full set is enough to wait for */
}

/* False if no free block waits for anything. Points that have passed are dropped here: so whoever
 * looks again finds fewer of them, and does not look for ever. */
static bool collect_pending(sp_allocator *allocator, pending_points *pending)
{
    bool is_any_met = false;
    pending->set = (sp_wait_set){.capacity = SP_MAX_WAITS, .points = pending->points};
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        sp_class_pool *pool = &allocator->pools[i];
        sp_mutex_lock(&pool->lock);
        for (sp_slab *slab = pool->first; slab != NULL; slab = slab->next) {
            for (sp_block *block = slab->first; block != NULL; block = block->next) {
                if (sp__frontier_is_empty(&block->frontier)) continue;
                is_any_met = true;
                if (sp__block_is_ready_for(block, NULL)) continue;
                sp__frontier_each(&block->frontier, add_pending, pending);
            }
        }
        sp_mutex_unlock(&pool->lock);
    }
    return is_any_met;
}

/* Waits until the first of the points that free blocks wait for has passed; false if there are
 * none, or if this thread must not wait. Points that have passed since the caller looked count: the
 * blocks behind them are ready now. */
static bool wait_for_pending(sp_allocator *allocator)
{
    pending_points pending;
    const bool is_any_met = collect_pending(allocator, &pending);
    if (pending.set.count == 0) return is_any_met && !SP_PLANTED(passed_is_nothing);
    sp_fetch_add_relaxed(&allocator->waits, (uint64_t)1);
    return sp__point_wait_passed(pending.points[0], SP_NO_DEADLINE) == SP_OK;
}

static sp_status fail_with_sizes(sp_allocator *allocator, uint64_t rounded)
{
    sp_memory_stats stats;
    sp__allocator_stats(allocator, &stats);
    return sp__fail_prefix(
        SP_OUT_OF_MEMORY,
        "%s: %llu bytes asked; of its %s %llu in use, %llu cached, "
        "%llu reserved, limit %llu: ",
        allocator->dev->limits.name, (unsigned long long)rounded, allocator->source.what,
        (unsigned long long)stats.in_use_bytes, (unsigned long long)stats.cached_bytes,
        (unsigned long long)stats.reserved_bytes, (unsigned long long)limit_of(allocator));
}

static SP_ATOMIC(sp_give_way_fn) give_way; /* process-wide: a layer above, which never changes.
                                              Relaxed: it names code only */

void sp__allocator_set_give_way(sp_give_way_fn fn)
{
    sp_store_relaxed(&give_way, fn);
}

/* Waits that a taker has patience for before others give way: while some stream is busy there is
 * always one more pending point. */
#define PATIENCE 4

static void end_giving(sp_allocator *allocator, bool is_given)
{
    if (is_given) sp_fetch_add_release(&allocator->gifts, (uint64_t)1);
    sp_fetch_sub_release(&allocator->givers, 1);
}

static bool trim_all(sp_allocator *allocator)
{
    sp_fetch_add_relaxed(&allocator->givers, 1);
    const bool is_given = sp__allocator_trim(allocator, UINT64_MAX, false) > 0;
    end_giving(allocator, is_given);
    return is_given;
}

static bool others_give_way(sp_allocator *allocator)
{
    const sp_give_way_fn fn = sp_load_relaxed(&give_way);
    if (fn == NULL) return false;
    sp_fetch_add_relaxed(&allocator->givers, 1);
    const bool is_given = fn(allocator->device);
    end_giving(allocator, is_given);
    return is_given;
}

/* What others are giving back while this thread looks is nowhere to be found until they have done
 * so. They wait for nobody. True if there is more now than `gifts`, before it looked. */
static bool others_have_given(sp_allocator *allocator, uint64_t gifts)
{
    while (sp_load_acquire(&allocator->givers) > 0) {
        if (sp_load_acquire(&allocator->gifts) != gifts) return true;
        sp_spin_hint();
        sp_thread_yield();
    }
    return sp_load_acquire(&allocator->gifts) != gifts;
}

/* A block from a new slab, or from what the caches held; *out is NULL if there is no memory. */
static sp_status make_or_find_block(sp_allocator *allocator, const sp_block_wish *wish,
                                    sp_block **out)
{
    do {
        const sp_status status = slab_new(allocator, wish->size_class, wish->bytes, out);
        if (status != SP_OUT_OF_MEMORY) return status;
        sp__allocator_flush_caches(allocator);
        *out = sp__pool_take(allocator, wish->size_class, wish->own);
    } while (*out == NULL && trim_all(allocator));
    return SP_OK;
}

/* Is there hope for more memory than there was when `gifts` were counted? */
static bool more_comes(sp_allocator *allocator, uint32_t *patience, uint64_t gifts)
{
    sp_delay_point();
    if (*patience > 0 && wait_for_pending(allocator)) {
        (*patience)--;
        return true;
    }
    return others_give_way(allocator) || wait_for_pending(allocator) ||
           others_have_given(allocator, gifts);
}

static sp_status take_block(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out)
{
    uint64_t gifts = sp_load_acquire(&allocator->gifts);
    SP_TRY(make_or_find_block(allocator, wish, out));
    if (*out != NULL) return SP_OK;
    if (wish->is_spare) return fail_with_sizes(allocator, wish->bytes);
    sp_status status = SP_OK;
    uint32_t patience = PATIENCE;
    sp_fetch_add_relaxed(&allocator->short_takers, 1);
    while (status == SP_OK && *out == NULL && more_comes(allocator, &patience, gifts)) {
        gifts = sp_load_acquire(&allocator->gifts);
        status = make_or_find_block(allocator, wish, out);
    }
    sp_fetch_sub_relaxed(&allocator->short_takers, 1);
    if (status != SP_OK) return status;
    return *out != NULL ? SP_OK : fail_with_sizes(allocator, wish->bytes);
}

sp_status sp__slab_block(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out)
{
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    return sp__error_settle(&scope, take_block(allocator, wish, out));
}

/* ---- the check ---- */

bool sp__allocator_check(sp_allocator *allocator)
{
    sp__allocator_flush_caches(allocator);
    uint64_t pooled_bytes = 0;
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        sp_class_pool *pool = &allocator->pools[i];
        bool is_right = true;
        uint64_t blocks = 0;
        sp_mutex_lock(&pool->lock);
        for (sp_slab *slab = pool->first; slab != NULL; slab = slab->next) {
            uint32_t count = 0;
            for (sp_block *block = slab->first; block != NULL; block = block->next) {
                pooled_bytes += block->bytes;
                count++;
            }
            if (count != slab->pooled_count) is_right = false;
            blocks += count;
        }
        if (blocks != pool->pooled_blocks) is_right = false;
        sp_mutex_unlock(&pool->lock);
        if (!is_right) {
            sp__fail(SP_INTERNAL, "size class %u: its lists hold other blocks than it counts", i);
            return false;
        }
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
