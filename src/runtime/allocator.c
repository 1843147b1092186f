/* SPDX-License-Identifier: Apache-2.0 */
/* Acquiring and releasing blocks: stream caches in front of class pools (block_pool.c). Slabs are
 * in slab.c. */
#include "runtime/allocator.h"

#include "base/assert.h"
#include "base/backoff.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/pages.h"
#include "base/tsan.h"
#include "device/wait.h"
#include "runtime/slab.h"
#include "runtime/storage.h"

/* Limits of one class in a stream's cache: more goes to the pool, for all streams. */
#define CACHE_BLOCKS 32
#define CACHE_BYTES_PER_CLASS ((uint64_t)8 << 20)
/* How many blocks of a class, newest first, are asked whether they are unused: older ones are more
 * often, but each costs a cache miss. */
#define UNUSED_LOOKS 4

/* ---- size classes ---- */

#define MIN_LOG2 8 /* 256 bytes */
#define MAX_LOG2 46

bool sp__size_class_of(uint64_t bytes, uint32_t *size_class, uint64_t *rounded)
{
    if (bytes <= (uint64_t)1 << MIN_LOG2) {
        *size_class = 0;
        *rounded = (uint64_t)1 << MIN_LOG2;
        return true;
    }
    if (bytes > (uint64_t)1 << MAX_LOG2) return false;
    /* Classes 2^k * (1 + q/4): k from the top bit of bytes - 1, q from the two bits below it. */
    const uint64_t last = bytes - 1;
    const uint32_t log2 = 63u - (uint32_t)__builtin_clzll(last);
    const uint32_t quarter = (uint32_t)(last >> (log2 - 2)) & 3u;
    *size_class = (log2 - MIN_LOG2) * 4 + quarter + 1;
    *rounded = ((uint64_t)1 << log2) + ((uint64_t)(quarter + 1) << (log2 - 2));
    return true;
}

/* ---- stream caches ---- */

/* process-wide: in place of each cache that a closed allocator never created; constant. */
static sp_stream_cache never_opened = {.state = {SP_CACHE_CLOSED}};

static inline sp_stream_cache *cache_of(sp_allocator *allocator, uint32_t stream)
{
    SP_ASSERT(stream < SP_ALLOCATOR_STREAMS);
    /* Pairs with the release below: the cache is zeroed. */
    sp_stream_cache *cache = sp_load_acquire(&allocator->caches[stream]);
    if (SP_LIKELY(cache != NULL)) return cache;
    sp_stream_cache *fresh = sp_aligned_malloc(SP_CACHE_LINE, sizeof *fresh);
    if (fresh == NULL) return NULL; /* the pools are used instead */
    *fresh = (sp_stream_cache){0};
    if (sp_cas_acq_rel(&allocator->caches[stream], &cache, fresh)) return fresh;
    sp_free(fresh);
    return cache;
}

/* Never waits: false if another thread is inside. */
static bool cache_enter(sp_stream_cache *cache)
{
    if (SP_PLANTED(two_in_cache)) return cache != NULL;
    uint32_t seen = SP_CACHE_FREE;
    if (cache == NULL || sp_load_relaxed(&cache->state) != SP_CACHE_FREE) return false;
    if (!sp_cas_acquire(&cache->state, &seen, SP_CACHE_BUSY)) return false;
    sp_tsan_acquire(&cache->state);
    return true;
}

static void cache_leave(sp_stream_cache *cache)
{
    sp_tsan_release(&cache->state);
    sp_store_release(&cache->state, SP_CACHE_FREE);
}

/* Waits, for the rare walks over all caches; false if the cache is closed. The holder leaves within
 * a few instructions, and wakes no sleepers. */
static bool cache_enter_slow(sp_stream_cache *cache)
{
    sp_backoff backoff = {0};
    while (!cache_enter(cache)) {
        if (sp_load_relaxed(&cache->state) == SP_CACHE_CLOSED) return false;
        sp_backoff_turn(&backoff);
    }
    return true;
}

/* One writer at a time, so a load and a store suffice. */
static inline void count_acquire(sp_allocator_counts *counts, int64_t bytes)
{
    sp_store_relaxed(&counts->in_use_bytes, sp_load_relaxed(&counts->in_use_bytes) + bytes);
    sp_store_relaxed(&counts->cached_bytes, sp_load_relaxed(&counts->cached_bytes) - bytes);
    sp_store_relaxed(&counts->allocations, sp_load_relaxed(&counts->allocations) + 1);
}

static inline void count_release(sp_allocator_counts *counts, int64_t bytes)
{
    sp_store_relaxed(&counts->in_use_bytes, sp_load_relaxed(&counts->in_use_bytes) - bytes);
    sp_store_relaxed(&counts->cached_bytes, sp_load_relaxed(&counts->cached_bytes) + bytes);
    sp_store_relaxed(&counts->frees, sp_load_relaxed(&counts->frees) + 1);
}

/* Takes the block that `link` is for out of the cache that the caller has entered. */
static void cache_remove(sp_stream_cache *cache, sp_block **link)
{
    const sp_block *block = *link;
    *link = block->next;
    cache->count[block->size_class]--;
    count_acquire(&cache->counts, (int64_t)block->bytes);
}

static sp_block *cache_acquire(sp_allocator *allocator, uint32_t stream, uint32_t size_class)
{
    sp_stream_cache *cache = cache_of(allocator, stream);
    if (!cache_enter(cache)) return NULL;
    sp_block *block = cache->first[size_class];
    if (block != NULL) cache_remove(cache, &cache->first[size_class]);
    cache_leave(cache);
    return block;
}

/* Is there no room for one more block of the class? */
static bool cache_is_full(const sp_stream_cache *cache, uint32_t size_class)
{
    const sp_block *first = cache->first[size_class];
    const uint32_t count = cache->count[size_class];
    return first != NULL &&
           (count >= CACHE_BLOCKS || count * first->bytes >= CACHE_BYTES_PER_CLASS);
}

/* The newest block whose points have passed, of the first UNUSED_LOOKS; NULL if there is none, or
 * another thread is inside. */
static sp_block *cache_acquire_unused(sp_allocator *allocator, uint32_t stream, uint32_t size_class)
{
    sp_stream_cache *cache = cache_of(allocator, stream);
    if (!cache_enter(cache)) return NULL;
    sp_block **link = &cache->first[size_class];
    for (int i = 0; i < UNUSED_LOOKS && *link != NULL; i++, link = &(*link)->next) {
        sp_block *block = *link;
        if (!sp__frontier_prune(&block->frontier)) continue;
        cache_remove(cache, link);
        cache_leave(cache);
        return block;
    }
    cache_leave(cache);
    return NULL;
}

/* The oldest block, if the cache is full of the class. */
static sp_block *cache_acquire_oldest(sp_allocator *allocator, uint32_t stream, uint32_t size_class)
{
    sp_stream_cache *cache = cache_of(allocator, stream);
    if (!cache_enter(cache)) return NULL;
    sp_block *block = NULL;
    if (cache_is_full(cache, size_class)) {
        sp_block **link = &cache->first[size_class];
        while ((*link)->next != NULL) link = &(*link)->next;
        block = *link;
        cache_remove(cache, link);
    }
    cache_leave(cache);
    return block;
}

static bool cache_release(sp_allocator *allocator, uint32_t stream, sp_block *block)
{
    sp_stream_cache *cache = cache_of(allocator, stream);
    if (!cache_enter(cache)) return false;
    const bool has_room = !cache_is_full(cache, block->size_class);
    if (has_room) {
        block->next = cache->first[block->size_class];
        cache->first[block->size_class] = block;
        cache->count[block->size_class]++;
        count_release(&cache->counts, (int64_t)block->bytes);
    }
    cache_leave(cache);
    return has_room;
}

/* ---- class pools ---- */

sp_block *sp__pool_acquire(sp_allocator *allocator, uint32_t size_class, const sp_timeline *own)
{
    sp_block *block = sp__class_pool_acquire(&allocator->pools[size_class], own);
    if (block != NULL) {
        sp_fetch_sub_relaxed(&allocator->shared.cached_bytes, (int64_t)block->bytes);
    }
    return block;
}

static void trim_class(sp_class_pool *pool)
{
    sp_slab *slab;
    while ((slab = sp__class_pool_detach(pool)) != NULL) sp__slab_release(slab);
}

static void block_release_when_passed(sp_block *block);

static void block_fire(sp_waiter *waiter)
{
    block_release_when_passed(SP_CONTAINER_OF(waiter, sp_block, waiter));
}

/* A pending block of a closed allocator: no acquire reuses it, and no pool polls it, so it waits
 * for its points one after the other. It counts as cached until then. */
static void block_release_when_passed(sp_block *block)
{
    while (!sp__frontier_prune(&block->frontier)) {
        const sp_point point = sp__block_pending_point(block);
        sp__point_flush(point);
        block->waiter = (sp_waiter){.value = point.value, .fire = block_fire};
        /* Once registered, the block belongs to the thread that fires it. */
        if (sp__timeline_register(point.timeline, &block->waiter)) return;
    }
    sp_class_pool *pool = &block->slab->allocator->pools[block->size_class];
    if (sp__class_pool_release(pool, block) == SP_PUT_CLOSED) trim_class(pool);
}

void sp__pool_release(sp_allocator *allocator, sp_block *block)
{
    sp_class_pool *pool = &allocator->pools[block->size_class];
    sp_fetch_add_relaxed(&allocator->shared.cached_bytes, (int64_t)block->bytes);
    switch (sp__class_pool_release(pool, block)) {
    case SP_PUT_DONE:
        break;
    case SP_PUT_CLOSED:
        trim_class(pool);
        break;
    case SP_PUT_REFUSED:
        block_release_when_passed(block);
        break;
    }
}

/* A block from another stream's cache, only one whose points have passed. Before a slab is
 * created. */
static sp_block *cache_steal(sp_allocator *allocator, uint32_t size_class)
{
    for (uint32_t stream = 0; stream < SP_ALLOCATOR_STREAMS; stream++) {
        sp_stream_cache *cache = sp_load_acquire(&allocator->caches[stream]);
        if (!cache_enter(cache)) continue;
        sp_block *block = cache->first[size_class];
        const bool is_ready = block != NULL && sp__frontier_prune(&block->frontier);
        if (is_ready) cache_remove(cache, &cache->first[size_class]);
        cache_leave(cache);
        if (is_ready) return block;
    }
    return NULL;
}

/* Takes all blocks of the first nonempty class from `*size_class` on out of a cache that the caller
 * has entered; NULL if there are none. */
static sp_block *cache_drain(sp_stream_cache *cache, uint32_t *size_class)
{
    uint32_t at = *size_class;
    while (at < SP_SIZE_CLASSES && cache->first[at] == NULL) at++;
    *size_class = at;
    if (at == SP_SIZE_CLASSES) return NULL;
    sp_block *block = cache->first[at];
    const int64_t bytes = (int64_t)(cache->count[at] * block->bytes);
    cache->first[at] = NULL;
    cache->count[at] = 0;
    sp_store_relaxed(&cache->counts.cached_bytes,
                     sp_load_relaxed(&cache->counts.cached_bytes) - bytes);
    return block;
}

static void chain_release(sp_allocator *allocator, sp_block *block)
{
    while (block != NULL) {
        sp_block *next = block->next;
        sp__pool_release(allocator, block);
        block = next;
    }
}

bool sp__allocator_flush_caches(sp_allocator *allocator)
{
    bool is_any = false;
    for (uint32_t stream = 0; stream < SP_ALLOCATOR_STREAMS; stream++) {
        sp_stream_cache *cache = sp_load_acquire(&allocator->caches[stream]);
        if (cache == NULL) continue;
        for (uint32_t size_class = 0; size_class < SP_SIZE_CLASSES;) {
            if (!cache_enter_slow(cache)) break;
            sp_block *block = cache_drain(cache, &size_class);
            cache_leave(cache);
            if (block != NULL) is_any = true;
            chain_release(allocator, block);
        }
    }
    return is_any;
}

/* ---- acquire and release ---- */

/* One thread at a time, on the slow path only. */
static void pools_trim(sp_allocator *allocator)
{
    const uint64_t high = sp_load_relaxed(&allocator->high_bytes);
    const int64_t cached = sp_load_relaxed(&allocator->shared.cached_bytes);
    if (SP_LIKELY(high == 0 || cached <= 0 || (uint64_t)cached <= high)) return;
    if (sp_exchange_relaxed(&allocator->is_trimming, 1) != 0) return;
    const uint64_t low = sp_load_relaxed(&allocator->low_bytes);
    if ((uint64_t)cached > low) sp__allocator_trim(allocator, (uint64_t)cached - low, false);
    sp_store_relaxed(&allocator->is_trimming, 0);
}

static void count_shared_acquire(sp_allocator *allocator, const sp_block *block)
{
    sp_fetch_add_relaxed(&allocator->shared.in_use_bytes, (int64_t)block->bytes);
    sp_fetch_add_relaxed(&allocator->shared.allocations, (uint64_t)1);
}

/* From the pools, or unused from another stream's cache; NULL if there is none. */
static sp_block *block_acquire_ready(sp_allocator *allocator, const sp_block_wish *wish)
{
    sp_block *block = sp__pool_acquire(allocator, wish->size_class, wish->own);
    if (block == NULL) return cache_steal(allocator, wish->size_class); /* which counts it */
    count_shared_acquire(allocator, block);
    pools_trim(allocator);
    return block;
}

static sp_status block_acquire_new(sp_allocator *allocator, const sp_block_wish *wish,
                                   sp_block **out)
{
    SP_TRY(sp__slab_block(allocator, wish, out));
    count_shared_acquire(allocator, *out);
    pools_trim(allocator);
    return SP_OK;
}

static SP_NOINLINE sp_status block_acquire_slow(sp_allocator *allocator, const sp_block_wish *wish,
                                                sp_block **out)
{
    *out = block_acquire_ready(allocator, wish);
    return *out != NULL ? SP_OK : block_acquire_new(allocator, wish, out);
}

static sp_status wish_set_size(uint64_t bytes, sp_block_wish *wish)
{
    if (SP_LIKELY(sp__size_class_of(bytes, &wish->size_class, &wish->bytes))) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "%llu bytes exceed the memory of any device",
                    (unsigned long long)bytes);
}

sp_status sp__allocator_acquire(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                                sp_block **out)
{
    sp_block_wish wish = {.own = queue != NULL ? &queue->timeline : NULL};
    SP_TRY(wish_set_size(bytes, &wish));
    *out = queue != NULL ? cache_acquire(allocator, queue->index, wish.size_class) : NULL;
    if (SP_UNLIKELY(*out == NULL)) SP_TRY(block_acquire_slow(allocator, &wish, out));
    sp__frontier_become_origin(&(*out)->frontier);
    (*out)->home = queue != NULL ? queue->index : 0;
    return SP_OK;
}

sp_status sp__allocator_acquire_unused(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                                       bool is_bounded, sp_block **out)
{
    sp_block_wish wish = {0};
    SP_TRY(wish_set_size(bytes, &wish));
    const uint32_t home = queue != NULL ? queue->index : 0;
    *out = queue != NULL ? cache_acquire_unused(allocator, home, wish.size_class) : NULL;
    if (*out == NULL) *out = block_acquire_ready(allocator, &wish);
    if (*out == NULL && queue != NULL && is_bounded) {
        *out = cache_acquire_oldest(allocator, home, wish.size_class);
    }
    if (*out == NULL) SP_TRY(block_acquire_new(allocator, &wish, out));
    sp__frontier_become_origin(&(*out)->frontier);
    (*out)->home = home;
    return SP_OK;
}

sp_status sp__allocator_acquire_any(sp_allocator *allocator, uint64_t bytes, bool is_spare,
                                    sp_block **out)
{
    sp_block_wish wish = {.is_spare = is_spare};
    SP_TRY(wish_set_size(bytes, &wish));
    if (is_spare && sp_load_relaxed(&allocator->short_takers) > 0) {
        return sp__fail(SP_OUT_OF_MEMORY, "an optional request backs off: %s is short of memory",
                        allocator->dev->limits.name);
    }
    SP_TRY(block_acquire_slow(allocator, &wish, out));
    sp__frontier_become_origin(&(*out)->frontier);
    (*out)->home = 0;
    return SP_OK;
}

void sp__allocator_release(sp_allocator *allocator, sp_block *block)
{
    (void)sp__frontier_prune(&block->frontier);
    if (SP_PLANTED(early_reuse)) sp__frontier_clear(&block->frontier);
    sp_delay_point();
    uint32_t home = block->home;
    bool is_one_stream = true;
    if (!sp__frontier_is_empty(&block->frontier)) {
        const sp_timeline *only = sp__frontier_only_timeline(&block->frontier);
        is_one_stream = only != NULL && only->owner != NULL &&
                        only->owner->device == allocator->dev &&
                        only->owner->index < SP_ALLOCATOR_STREAMS; /* a stream */
        if (is_one_stream) home = only->owner->index;
    }
    if (SP_LIKELY(is_one_stream) && cache_release(allocator, home, block)) return;
    sp_fetch_sub_relaxed(&allocator->shared.in_use_bytes, (int64_t)block->bytes);
    sp_fetch_add_relaxed(&allocator->shared.frees, (uint64_t)1);
    sp__pool_release(allocator, block);
    pools_trim(allocator);
}

/* ---- init, deinit, statistics ---- */

static void allocator_init(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev)
{
    allocator->device = device;
    allocator->dev = dev;
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) sp__class_pool_init(&allocator->pools[i], dev);
}

void sp__allocator_init(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev)
{
    allocator_init(allocator, device, dev);
    allocator->source = (sp_slab_source){.what = "memory",
                                         .limit_bytes = dev->limits.memory_bytes,
                                         .create = dev->vtable->memory_create,
                                         .destroy = dev->vtable->memory_destroy};
}

void sp__allocator_init_staging(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev)
{
    allocator_init(allocator, device, dev);
    allocator->source = (sp_slab_source){.what = "pinned memory",
                                         .limit_bytes = sp_pages_total_bytes(),
                                         .create = dev->vtable->staging_create,
                                         .destroy = dev->vtable->staging_destroy};
}

void sp__allocator_deinit(sp_allocator *allocator)
{
    sp__allocator_trim(allocator, UINT64_MAX, true);
    for (uint32_t i = 0; i < SP_ALLOCATOR_STREAMS; i++) {
        sp_stream_cache *cache = sp_load_relaxed(&allocator->caches[i]);
        if (cache != &never_opened) sp_free(cache);
    }
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) sp__class_pool_deinit(&allocator->pools[i]);
}

/* Moves the cache's blocks to the pools; later ones are refused. */
static void cache_close(sp_allocator *allocator, uint32_t stream)
{
    sp_stream_cache *cache = NULL;
    if (sp_cas_acquire(&allocator->caches[stream], &cache, &never_opened)) return;
    sp_block *block;
    do {
        if (!cache_enter_slow(cache)) return;
        uint32_t size_class = 0;
        block = cache_drain(cache, &size_class);
        const bool is_last = block == NULL && !SP_PLANTED(cache_stays_open);
        sp_store_release(&cache->state, is_last ? SP_CACHE_CLOSED : SP_CACHE_FREE);
        chain_release(allocator, block);
    } while (block != NULL);
}

void sp__allocator_close(sp_allocator *allocator)
{
    for (uint32_t i = 0; i < SP_ALLOCATOR_STREAMS; i++) cache_close(allocator, i);
    for (uint32_t i = 0; i < SP_SIZE_CLASSES; i++) {
        sp_class_pool *pool = &allocator->pools[i];
        sp_block *block = sp__class_pool_close(pool);
        while (block != NULL) {
            sp_block *next = block->next;
            block_release_when_passed(block);
            block = next;
        }
        trim_class(pool);
    }
}

static void add_counts(const sp_allocator_counts *counts, int64_t *in_use, int64_t *cached,
                       sp_memory_stats *out)
{
    *in_use += sp_load_relaxed(&counts->in_use_bytes);
    *cached += sp_load_relaxed(&counts->cached_bytes);
    out->allocations += sp_load_relaxed(&counts->allocations);
    out->frees += sp_load_relaxed(&counts->frees);
}

void sp__allocator_stats(sp_allocator *allocator, sp_memory_stats *out)
{
    *out = (sp_memory_stats){0};
    int64_t in_use = 0;
    int64_t cached = 0;
    for (uint32_t i = 0; i < SP_ALLOCATOR_STREAMS; i++) {
        const sp_stream_cache *cache = sp_load_acquire(&allocator->caches[i]);
        if (cache != NULL) add_counts(&cache->counts, &in_use, &cached, out);
    }
    add_counts(&allocator->shared, &in_use, &cached, out);
    out->in_use_bytes = in_use > 0 ? (uint64_t)in_use : 0;
    out->cached_bytes = cached > 0 ? (uint64_t)cached : 0;
    out->reserved_bytes = sp_load_relaxed(&allocator->reserved_bytes);
    out->peak_bytes = sp_load_relaxed(&allocator->peak_bytes);
    out->device_allocations = sp_load_relaxed(&allocator->device_allocations);
    out->waits = sp_load_relaxed(&allocator->waits);
}

void sp__allocator_reset_peak(sp_allocator *allocator)
{
    sp_store_relaxed(&allocator->peak_bytes, sp_load_relaxed(&allocator->reserved_bytes));
}

void sp__allocator_set_limit(sp_allocator *allocator, uint64_t bytes)
{
    sp_store_relaxed(&allocator->limit_bytes, bytes);
}

void sp__allocator_set_watermarks(sp_allocator *allocator, uint64_t low_bytes, uint64_t high_bytes)
{
    sp_store_relaxed(&allocator->low_bytes, low_bytes);
    sp_store_relaxed(&allocator->high_bytes, high_bytes);
}
