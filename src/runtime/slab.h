/* SPDX-License-Identifier: Apache-2.0 */
/* Slabs: memory from the device, cut into blocks of one class, and returned when all are free. Also
 * what slab.c needs of allocator.c. */
#ifndef SP_RUNTIME_SLAB_H
#define SP_RUNTIME_SLAB_H

#include "runtime/allocator.h"

typedef struct sp_block_wish {
    uint32_t size_class;
    bool is_spare;          /* an optional request */
    uint64_t bytes;         /* of the class */
    const sp_timeline *own; /* of the stream that will use it; NULL: for use anywhere at once */
    /* Instead of a block (NULL): asks the device for the bytes; size_class is SP_SIZE_CLASSES. */
    sp_status (*create)(void *ctx);
    void *ctx;
} sp_block_wish;

/* A block from a new slab. Without memory: returns unused slabs; for a request that is not
 * optional, waits for pending points, reclaims, and uses what that frees; then SP_OUT_OF_MEMORY. */
sp_status sp__slab_block(sp_allocator *allocator, const sp_block_wish *wish, sp_block **out);

/* Returns the memory of a slab that was detached from its pool. How many bytes. */
uint64_t sp__slab_release(sp_slab *slab);

/* A pooled block of the class that `own` may use without waiting, or NULL. */
sp_block *sp__pool_acquire(sp_allocator *allocator, uint32_t size_class, const sp_timeline *own);

void sp__pool_release(sp_allocator *allocator, sp_block *block);
/* Empties every stream cache into the pools; false if all were empty. */
bool sp__allocator_flush_caches(sp_allocator *allocator);

#endif
