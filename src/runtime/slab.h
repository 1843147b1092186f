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

/* Gives the slab's memory back; it was detached from its pool. How many bytes. */
uint64_t sp__slab_release(sp_slab *slab);

/* A pooled block of the class that `own` may use without waiting, or NULL. */
sp_block *sp__pool_acquire(sp_allocator *allocator, uint32_t size_class, const sp_timeline *own);

void sp__pool_release(sp_allocator *allocator, sp_block *block);
/* Every stream cache empties into the pools; false if there was nothing in them. */
bool sp__allocator_flush_caches(sp_allocator *allocator);

#endif
