/* SPDX-License-Identifier: Apache-2.0 */
/* Free blocks of one size class, indexed by readiness. A block is ready when all points of its
 * frontier have passed, else pending.
 *
 *     ready      in the list of its slab. The slab is in `unused` if all its blocks are ready, else
 *                in `partial`.
 *     pending    filed under one unpassed point, `pending_on`. If that is of a queue of the device,
 *                in one of the two heaps of that queue's lane, ordered by value:
 *                    alone    all points of the block are of that queue
 *                    others   the block has points of further timelines
 *                else in the list `foreign`.
 *
 * A queue advances in order, so the top of a heap passes first: polling the tops of the lanes in
 * use finds a block that has become ready, whatever the number of pending ones. A block whose
 * `pending_on` passes is filed under its next unpassed point, so it is refiled at most once for
 * each of its points. Nothing is registered with the timelines: the index changes only inside
 * calls. Blocks whose points are all foreign (of abandoned host accesses, of queues of other
 * devices) are rare; an acquire polls FOREIGN_LOOKS of them, and the next acquire continues behind
 * these.
 *
 *     ready_blocks = sum of ready_count over `partial` and `unused`
 *     a bit of lanes_in_use is set  <=>  the lane has a block
 *     is_closed  =>  nothing is pending, except inside a call */
#ifndef SP_RUNTIME_BLOCK_POOL_H
#define SP_RUNTIME_BLOCK_POOL_H

#include "base/mutex.h"
#include "device/device.h"
#include "device/waiter_heap.h"
#include "runtime/frontier.h"

/* Queues of a device with a lower index: streams, fallback queues, submit queues. Run queues, which
 * come after them, have no cache of blocks. */
#define SP_POOL_LANES 192

typedef struct sp_slab sp_slab;
typedef struct sp_block sp_block;
typedef struct sp_allocator sp_allocator;

/* Memory between two uses; stored inside a storage object. Its fields belong to the block's owner:
 * the storage while it lives, then the cache or pool. */
struct sp_block {
    sp_slab *slab;
    uint64_t offset; /* in the slab */
    uint64_t bytes;  /* of its class */
    uint32_t size_class;
    uint32_t home; /* stream whose cache receives a block without pending points */
    sp_frontier frontier;
    sp_block *next;      /* in a list */
    sp_point pending_on; /* in a pool, while pending */
    /* In a heap of the pool; outside of it, for the last uses of a released storage. */
    sp_waiter waiter;
};

struct sp_slab {
    sp_memory memory;        /* constant, as the next two */
    sp_allocator *allocator; /* the owner */
    uint32_t block_count;
    /* Guarded by the lock of its class's pool: its ready blocks, and its links in `partial` or
     * `unused`. */
    uint32_t ready_count;
    sp_block *ready;
    sp_slab *previous, *next;
};

/* The block's host address; SP_UNSUPPORTED if the host cannot reach the slab's memory. */
static inline sp_status sp__block_host(const sp_block *block, void **out)
{
    return sp__memory_host(&block->slab->memory, block->offset, out);
}

typedef struct sp_pool_lane {
    sp_waiter_heap alone, others;
} sp_pool_lane;

typedef struct sp_class_pool {
    SP_CACHE_ALIGNED sp_mutex lock;
    const sp_dev *dev; /* constant */
    bool is_closed SP_GUARDED_BY(lock);
    sp_slab *partial SP_GUARDED_BY(lock);
    sp_slab *unused SP_GUARDED_BY(lock);
    uint64_t ready_blocks SP_GUARDED_BY(lock);
    /* SP_POOL_LANES of them, created with the first slab of the class. */
    sp_pool_lane *lanes SP_GUARDED_BY(lock);
    uint64_t lanes_in_use[SP_POOL_LANES / 64] SP_GUARDED_BY(lock);
    sp_block *foreign SP_GUARDED_BY(lock); /* least recently polled first */
    sp_block **foreign_end SP_GUARDED_BY(lock);
} sp_class_pool;

void sp__class_pool_init(sp_class_pool *pool, const sp_dev *dev);
/* Frees the lanes. All blocks have been removed. */
void sp__class_pool_deinit(sp_class_pool *pool);
/* Before the first release: SP_OUT_OF_MEMORY if the lanes cannot be allocated. */
sp_status sp__class_pool_prepare(sp_class_pool *pool);

typedef enum sp_pool_release {
    SP_PUT_DONE,
    SP_PUT_CLOSED, /* done, and the pool is closed: unused slabs have to be detached */
    SP_PUT_REFUSED /* the pool is closed and the block pending: not taken over */
} sp_pool_release;

sp_pool_release sp__class_pool_release(sp_class_pool *pool, sp_block *block);

/* A block that is ready, or that has only points of `own` (may be NULL); NULL if none is found. */
sp_block *sp__class_pool_acquire(sp_class_pool *pool, const sp_timeline *own);

/* Refiles every block whose points have passed as ready, foreign blocks included. */
void sp__class_pool_settle(sp_class_pool *pool);

/* Detaches a slab of which all blocks are ready; NULL if there is none. Call settle first. */
sp_slab *sp__class_pool_detach(sp_class_pool *pool);

/* Refuses pending blocks from now on; returns the chain of those that were in the pool. */
sp_block *sp__class_pool_close(sp_class_pool *pool);

/* Calls for the point that the top of each heap, and each foreign block, is filed under: the next
 * block to become ready is behind one of these. */
void sp__class_pool_each_pending(sp_class_pool *pool, sp_point_fn fn, void *ctx);

/* Whether a block is ready, or, with `is_whole`, all blocks of a slab. */
bool sp__class_pool_has_ready(sp_class_pool *pool, bool is_whole);

/* Adds the bytes of all blocks; false if the lists contradict the equations above. Exact in any
 * case. */
bool sp__class_pool_check(sp_class_pool *pool, uint64_t *bytes);

/* The point under which a block with pending points is filed. */
sp_point sp__block_pending_point(const sp_block *block);

#endif
