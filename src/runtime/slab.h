/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: memory from the device, cut into blocks of one class, and given back when all are free.
 * Also what slab.c needs of allocator.c. */
#ifndef SP_RUNTIME_SLAB_H
#define SP_RUNTIME_SLAB_H

#include "runtime/allocator.h"

typedef struct sp_block_wish {
    uint32_t size_class;
    bool is_spare;          /* its user can do without */
    uint64_t bytes;         /* of the class */
    const sp_timeline *own; /* of the stream that will use it; NULL: anybody at once */
} sp_block_wish;

/* A block from a new slab. Without memory: gives unused slabs back; for who needs the block, waits
 * for pending points and lets others give way, and takes what that frees; then SP_OUT_OF_MEMORY. */
sp_status sp__slab_block(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out);

/* A pooled block of the class that `own` may use without waiting, or NULL. */
sp_block *sp__pool_take(sp_allocator *allocator, uint32_t size_class, const sp_timeline *own);
void sp__pool_give(sp_allocator *allocator, sp_block *block);
/* Takes a slab with all its pooled blocks out of the pool. */
void sp__pool_unlink_locked(sp_class_pool *pool, sp_slab *slab) SP_REQUIRES(&pool->lock);
/* Every stream cache empties into the pools. */
void sp__allocator_flush_caches(sp_allocator *allocator);
/* May `own` (NULL: anybody) use a free block without waiting? Drops points that have passed. */
bool sp__block_is_ready_for(sp_block *block, const sp_timeline *own);

#endif
