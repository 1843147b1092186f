/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of ready blocks and the heaps of pending ones. */
#include "runtime/block_pool.h"

#include "base/assert.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/heap.h"

#define FOREIGN_LOOKS 8
#define NO_LANE UINT32_MAX

/* ---- heaps, by the value that a block is filed under ---- */

static void heap_push(sp_waiter_heap *heap, sp_block *block)
{
    block->waiter.value = block->pending_on.value;
    sp__waiter_heap_add(heap, &block->waiter);
}

/* NULL if the heap is empty. */
static sp_block *heap_first(const sp_waiter_heap *heap)
{
    return heap->first != NULL ? SP_CONTAINER_OF(heap->first, sp_block, waiter) : NULL;
}

static sp_block *heap_pop(sp_waiter_heap *heap)
{
    sp_block *block = heap_first(heap);
    if (block != NULL) sp__waiter_heap_remove(heap, &block->waiter);
    return block;
}

/* ---- ready blocks ---- */

static void slab_link(sp_slab **list, sp_slab *slab)
{
    slab->previous = NULL;
    slab->next = *list;
    if (*list != NULL) (*list)->previous = slab;
    *list = slab;
}

static void slab_unlink(sp_slab **list, sp_slab *slab)
{
    if (slab->previous != NULL) slab->previous->next = slab->next;
    if (slab->next != NULL) slab->next->previous = slab->previous;
    if (*list == slab) *list = slab->next;
}

/* The list for a slab with `ready_count` ready blocks, one or more. */
static sp_slab **list_of_locked(sp_class_pool *pool, const sp_slab *slab) SP_REQUIRES(&pool->lock)
{
    return slab->ready_count == slab->block_count ? &pool->unused : &pool->partial;
}

static void ready_push_locked(sp_class_pool *pool, sp_block *block) SP_REQUIRES(&pool->lock)
{
    sp_slab *slab = block->slab;
    if (slab->ready_count > 0) slab_unlink(list_of_locked(pool, slab), slab);
    block->next = slab->ready;
    slab->ready = block;
    slab->ready_count++;
    pool->ready_blocks++;
    slab_link(list_of_locked(pool, slab), slab);
}

/* Prefers a slab that is partly in use: a slab of ready blocks can be returned to the device. */
static sp_block *ready_pop_locked(sp_class_pool *pool) SP_REQUIRES(&pool->lock)
{
    sp_slab *slab = pool->partial != NULL ? pool->partial : pool->unused;
    if (slab == NULL) return NULL;
    sp_block *block = slab->ready;
    slab_unlink(list_of_locked(pool, slab), slab);
    slab->ready = block->next;
    slab->ready_count--;
    pool->ready_blocks--;
    if (slab->ready_count > 0) slab_link(list_of_locked(pool, slab), slab);
    return block;
}

/* ---- pending blocks ---- */

static uint32_t lane_of(const sp_class_pool *pool, const sp_timeline *timeline)
{
    const sp_queue *owner = timeline->owner;
    if (owner == NULL || owner->device != pool->dev || owner->index >= SP_POOL_LANES) {
        return NO_LANE;
    }
    return owner->index;
}

typedef struct filing {
    const sp_class_pool *pool;
    sp_point point; /* a foreign one only if all are */
    uint32_t lane;
} filing;

static void choose_point(void *ctx, sp_point point)
{
    filing *chosen = ctx;
    if (chosen->lane != NO_LANE) return;
    chosen->point = point;
    if (chosen->pool != NULL) chosen->lane = lane_of(chosen->pool, point.timeline);
}

sp_point sp__block_pending_point(const sp_block *block)
{
    filing chosen = {.lane = NO_LANE};
    sp__frontier_each(&block->frontier, choose_point, &chosen);
    return chosen.point;
}

static void foreign_push_locked(sp_class_pool *pool, sp_block *block) SP_REQUIRES(&pool->lock)
{
    block->next = NULL;
    if (pool->foreign == NULL) pool->foreign_end = &pool->foreign;
    *pool->foreign_end = block;
    pool->foreign_end = &block->next;
}

static sp_block *foreign_pop_locked(sp_class_pool *pool) SP_REQUIRES(&pool->lock)
{
    sp_block *block = pool->foreign;
    pool->foreign = block->next;
    return block;
}

/* Files the block by its frontier. */
static void block_file_locked(sp_class_pool *pool, sp_block *block) SP_REQUIRES(&pool->lock)
{
    if (sp__frontier_prune(&block->frontier)) {
        ready_push_locked(pool, block);
        return;
    }
    filing chosen = {.pool = pool, .lane = NO_LANE};
    sp__frontier_each(&block->frontier, choose_point, &chosen);
    block->pending_on = chosen.point;
    if (chosen.lane == NO_LANE) {
        foreign_push_locked(pool, block);
        return;
    }
    sp_pool_lane *lane = &pool->lanes[chosen.lane];
    const bool is_alone = sp__frontier_only_timeline(&block->frontier) == chosen.point.timeline;
    heap_push(is_alone ? &lane->alone : &lane->others, block);
    pool->lanes_in_use[chosen.lane / 64] |= (uint64_t)1 << chosen.lane % 64;
}

static sp_block *lane_pop_locked(sp_class_pool *pool, uint32_t index, sp_waiter_heap *heap)
    SP_REQUIRES(&pool->lock)
{
    sp_block *block = heap_pop(heap);
    const sp_pool_lane *lane = &pool->lanes[index];
    if (lane->alone.first == NULL && lane->others.first == NULL) {
        pool->lanes_in_use[index / 64] &= ~((uint64_t)1 << index % 64);
    }
    return block;
}

/* Files a block whose `pending_on` has passed anew. */
static void block_refile_locked(sp_class_pool *pool, sp_block *block) SP_REQUIRES(&pool->lock)
{
    if (SP_PLANTED(first_point_only)) sp__frontier_clear(&block->frontier);
    block_file_locked(pool, block);
}

/* Refiles the blocks of one lane whose point has passed; with `is_one_enough`, until one is
 * ready. */
static void settle_lane_locked(sp_class_pool *pool, uint32_t index, bool is_one_enough)
    SP_REQUIRES(&pool->lock)
{
    sp_waiter_heap *heaps[] = {&pool->lanes[index].alone, &pool->lanes[index].others};
    for (int i = 0; i < 2; i++) {
        const sp_block *first;
        while ((first = heap_first(heaps[i])) != NULL && sp__point_has_passed(first->pending_on)) {
            block_refile_locked(pool, lane_pop_locked(pool, index, heaps[i]));
            if (is_one_enough && pool->ready_blocks > 0) return;
        }
    }
}

static void settle_lanes_locked(sp_class_pool *pool, bool is_one_enough) SP_REQUIRES(&pool->lock)
{
    for (uint32_t word = 0; word < SP_POOL_LANES / 64; word++) {
        for (uint64_t left = pool->lanes_in_use[word]; left != 0; left &= left - 1) {
            const uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(left);
            settle_lane_locked(pool, index, is_one_enough);
            if (is_one_enough && pool->ready_blocks > 0) return;
        }
    }
}

static void settle_foreign_locked(sp_class_pool *pool, uint32_t looks) SP_REQUIRES(&pool->lock)
{
    sp_block *const newest =
        pool->foreign != NULL ? SP_CONTAINER_OF(pool->foreign_end, sp_block, next) : NULL;
    for (uint32_t i = 0; i < looks && pool->foreign != NULL; i++) {
        sp_block *block = foreign_pop_locked(pool);
        block_refile_locked(pool, block);
        if (block == newest) break; /* all were polled once */
    }
}

static sp_block *own_pop_locked(sp_class_pool *pool, const sp_timeline *own)
    SP_REQUIRES(&pool->lock)
{
    const uint32_t index = own != NULL ? lane_of(pool, own) : NO_LANE;
    if (index == NO_LANE || pool->lanes == NULL) return NULL;
    if (pool->lanes[index].alone.first == NULL) return NULL;
    return lane_pop_locked(pool, index, &pool->lanes[index].alone);
}

/* ---- release and acquire ---- */

sp_pool_release sp__class_pool_release(sp_class_pool *pool, sp_block *block)
{
    sp_pool_release done = SP_PUT_DONE;
    sp_mutex_lock(&pool->lock);
    if (SP_UNLIKELY(pool->is_closed)) {
        done = sp__frontier_prune(&block->frontier) ? SP_PUT_CLOSED : SP_PUT_REFUSED;
    }
    if (done != SP_PUT_REFUSED) block_file_locked(pool, block);
    sp_mutex_unlock(&pool->lock);
    return done;
}

sp_block *sp__class_pool_acquire(sp_class_pool *pool, const sp_timeline *own)
{
    sp_mutex_lock(&pool->lock);
    sp_block *block = ready_pop_locked(pool);
    if (block == NULL) block = own_pop_locked(pool, own);
    if (block == NULL && !SP_PLANTED(ready_blocks_only)) {
        settle_lanes_locked(pool, true);
        if (pool->ready_blocks == 0) settle_foreign_locked(pool, FOREIGN_LOOKS);
        block = ready_pop_locked(pool);
    }
    sp_mutex_unlock(&pool->lock);
    return block;
}

void sp__class_pool_settle(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    settle_foreign_locked(pool, UINT32_MAX);
    settle_lanes_locked(pool, false);
    sp_mutex_unlock(&pool->lock);
}

sp_slab *sp__class_pool_detach(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    sp_slab **list =
        SP_PLANTED(trim_in_use) && pool->unused == NULL ? &pool->partial : &pool->unused;
    sp_slab *slab = *list;
    if (slab != NULL) {
        slab_unlink(list, slab);
        pool->ready_blocks -= slab->ready_count;
    }
    sp_mutex_unlock(&pool->lock);
    return slab;
}

/* Takes all pending blocks out, in any order. */
static sp_block *drain_pending_locked(sp_class_pool *pool) SP_REQUIRES(&pool->lock)
{
    sp_block *chain = NULL;
    while (pool->foreign != NULL) {
        sp_block *block = foreign_pop_locked(pool);
        block->next = chain;
        chain = block;
    }
    for (uint32_t i = 0; pool->lanes != NULL && i < SP_POOL_LANES; i++) {
        sp_waiter_heap *heaps[] = {&pool->lanes[i].alone, &pool->lanes[i].others};
        for (int k = 0; k < 2; k++) {
            while (heaps[k]->first != NULL) {
                sp_block *block = lane_pop_locked(pool, i, heaps[k]);
                block->next = chain;
                chain = block;
            }
        }
    }
    return chain;
}

sp_block *sp__class_pool_close(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    pool->is_closed = true;
    sp_block *chain = drain_pending_locked(pool);
    sp_mutex_unlock(&pool->lock);
    return chain;
}

void sp__class_pool_each_pending(sp_class_pool *pool, sp_point_fn fn, void *ctx)
{
    sp_mutex_lock(&pool->lock);
    for (uint32_t word = 0; word < SP_POOL_LANES / 64; word++) {
        for (uint64_t left = pool->lanes_in_use[word]; left != 0; left &= left - 1) {
            const sp_pool_lane *lane = &pool->lanes[word * 64 + (uint32_t)__builtin_ctzll(left)];
            const sp_block *alone = heap_first(&lane->alone);
            const sp_block *other = heap_first(&lane->others);
            if (alone != NULL) fn(ctx, alone->pending_on);
            if (other != NULL) fn(ctx, other->pending_on);
        }
    }
    for (const sp_block *block = pool->foreign; block != NULL; block = block->next) {
        fn(ctx, block->pending_on);
    }
    sp_mutex_unlock(&pool->lock);
}

bool sp__class_pool_has_ready(sp_class_pool *pool, bool is_whole)
{
    sp_mutex_lock(&pool->lock);
    const bool has_ready = is_whole ? pool->unused != NULL : pool->ready_blocks > 0;
    sp_mutex_unlock(&pool->lock);
    return has_ready;
}

/* ---- init and deinit ---- */

void sp__class_pool_init(sp_class_pool *pool, const sp_dev *dev)
{
    sp_mutex_init(&pool->lock, SP_LOCK_CLASS_POOL);
    pool->dev = dev;
}

void sp__class_pool_deinit(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    sp_free(pool->lanes);
    sp_mutex_unlock(&pool->lock);
    sp_mutex_deinit(&pool->lock);
}

sp_status sp__class_pool_prepare(sp_class_pool *pool)
{
    sp_mutex_lock(&pool->lock);
    if (pool->lanes == NULL) pool->lanes = sp_calloc(SP_POOL_LANES, sizeof *pool->lanes);
    const bool is_ready = pool->lanes != NULL;
    sp_mutex_unlock(&pool->lock);
    if (is_ready) return SP_OK;
    return sp__fail(SP_OUT_OF_MEMORY, "no memory for the lanes of a size class");
}

/* ---- the check ---- */

static bool check_slabs_locked(const sp_slab *slab, bool is_unused, uint64_t *blocks,
                               uint64_t *bytes)
{
    bool is_right = true;
    for (const sp_slab *before = NULL; slab != NULL; before = slab, slab = slab->next) {
        uint32_t count = 0;
        for (const sp_block *block = slab->ready; block != NULL; block = block->next) {
            if (!sp__frontier_is_empty(&block->frontier)) is_right = false;
            *bytes += block->bytes;
            count++;
        }
        if (slab->previous != before || count != slab->ready_count || count == 0) is_right = false;
        if ((count == slab->block_count) != is_unused) is_right = false;
        *blocks += count;
    }
    return is_right;
}

static bool check_lanes_locked(sp_class_pool *pool) SP_REQUIRES(&pool->lock)
{
    for (uint32_t i = 0; pool->lanes != NULL && i < SP_POOL_LANES; i++) {
        const sp_pool_lane *lane = &pool->lanes[i];
        const bool is_used = (pool->lanes_in_use[i / 64] >> i % 64 & 1) != 0;
        const sp_block *alone = heap_first(&lane->alone);
        if (is_used != (alone != NULL || lane->others.first != NULL)) return false;
        if (alone != NULL &&
            sp__frontier_only_timeline(&alone->frontier) != alone->pending_on.timeline) {
            return false;
        }
    }
    return true;
}

bool sp__class_pool_check(sp_class_pool *pool, uint64_t *bytes)
{
    uint64_t ready = 0;
    sp_mutex_lock(&pool->lock);
    bool is_right = check_slabs_locked(pool->partial, false, &ready, bytes);
    is_right = check_slabs_locked(pool->unused, true, &ready, bytes) && is_right;
    is_right = check_lanes_locked(pool) && ready == pool->ready_blocks && is_right;
    sp_block *pending = drain_pending_locked(pool);
    while (pending != NULL) {
        sp_block *next = pending->next;
        *bytes += pending->bytes;
        block_file_locked(pool, pending);
        pending = next;
    }
    sp_mutex_unlock(&pool->lock);
    return is_right;
}
