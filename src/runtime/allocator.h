/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered caching allocator: one for the memory of each device, and one for the memory
 * of the host that a device wants for what goes in and out.
 *
 * Memory comes from its source in slabs, each cut at once into blocks of one size class (four
 * classes a doubling, so at most a quarter is slack). There is no splitting and no merging. A freed
 * block keeps its frontier: it goes to the cache of the stream that is alone left in it, where it
 * can be used again at once, else to its class's pool (block_pool.h), which finds it again once its
 * points have passed.
 *
 *     stream cache   no lock: a flag that is never waited for; busy means use the pool
 *     class pool     a lock each
 *     slabs          only when the caches and pools have nothing
 * What the pools hold beyond a high watermark is trimmed to a low one by whoever passes, a slab at
 * a time, while the others allocate.
 *
 * Out of memory: give unused slabs back, then wait until some pending blocks have become ready,
 * then let what can be made again give way (sp__allocator_set_reclaim), then wait for the rest,
 * then fail with the sizes. Each wait is for the first of the points that pending blocks are
 * behind. A closed allocator keeps nothing: a slab goes back to its source when its last block is
 * ready. Invariant when no call is inside:  in use + cached = reserved  (sp__allocator_check). */
#ifndef SP_RUNTIME_ALLOCATOR_H
#define SP_RUNTIME_ALLOCATOR_H

#include <streampool/storage.h>

#include "device/device.h"
#include "runtime/block_pool.h"

#define SP_SIZE_CLASSES 160
#define SP_ALLOCATOR_STREAMS 64

typedef struct sp_rt_device sp_rt_device;

/* Counters that one writer at a time changes and anyone sums up. */
typedef struct sp_allocator_counts {
    sp_atomic_i64 in_use_bytes; /* may be negative here: the sum over all caches counts */
    sp_atomic_i64 cached_bytes;
    sp_atomic_u64 allocations;
    sp_atomic_u64 frees;
} sp_allocator_counts;

/* Blocks that the stream can use again at once. */
typedef struct sp_stream_cache {
    /* FREE, BUSY while a thread is inside, or CLOSED, which is final: compare-and-swap (acquire) to
     * enter, store (release) to leave or close; orders all fields below. */
    SP_CACHE_ALIGNED sp_atomic_u32 state;
    sp_allocator_counts counts;
    sp_block *first[SP_SIZE_CLASSES];
    uint16_t count[SP_SIZE_CLASSES];
} sp_stream_cache;

enum { SP_CACHE_FREE = 0, SP_CACHE_BUSY = 1, SP_CACHE_CLOSED = 2 };

/* Where an allocator's slabs come from. */
typedef struct sp_slab_source {
    const char *what;     /* in messages: "memory", "pinned memory" */
    uint64_t limit_bytes; /* 0: none */
    sp_status (*create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*destroy)(sp_memory *memory);
} sp_slab_source;

struct sp_allocator {
    sp_rt_device *device;
    sp_dev *dev;
    sp_slab_source source;
    sp_class_pool pools[SP_SIZE_CLASSES];
    /* By stream index; made with the first block, or closed without one. Published by release. */
    SP_ATOMIC(sp_stream_cache *) caches[SP_ALLOCATOR_STREAMS];
    SP_CACHE_ALIGNED sp_atomic_u64 reserved_bytes; /* raised before the device is asked */
    sp_atomic_u64 peak_bytes;
    sp_atomic_u64 limit_bytes; /* 0: none but the source's own */
    /* When the pools hold more than `high`, whoever passes trims them to `low`. 0: never. */
    sp_atomic_u64 low_bytes;
    sp_atomic_u64 high_bytes;
    sp_atomic_u32 is_trimming; /* 1 while somebody does: the others go on */
    sp_atomic_u64 device_allocations;
    sp_atomic_u64 waits;
    /* Takers that found no memory and look for some. Relaxed: advice to those who can do without,
     * not to be quicker. */
    sp_atomic_u32 short_takers;
    /* Threads that have free memory in their hands, in no pool: they trim, empty caches, make a
     * slab, or give way; and how often memory came of it. They wait for no taker. */
    sp_atomic_u32 givers;
    sp_atomic_u64 gifts;
    /* Counts of what went past the stream caches. Any thread, relaxed. */
    SP_CACHE_ALIGNED sp_allocator_counts shared;
};

/* Of the device's memory; of pinned memory of the host, if the device has staging_create. */
void sp__allocator_init(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
void sp__allocator_init_staging(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
/* All blocks are back. */
void sp__allocator_deinit(sp_allocator *allocator);
/* Once, when the device has stopped: gives free memory back to its source, now and from now on. A
 * block that is pending behind points of other devices or of the host goes when these have passed.
 */
void sp__allocator_close(sp_allocator *allocator);

/* A block of at least `bytes` for use on stream `queue`. Its frontier holds at most one point, of
 * that stream. NULL: for use anywhere at once, with an empty frontier. */
sp_status sp__allocator_acquire(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                                sp_block **out);
/* The same for use anywhere. `is_spare`: for what its user can do without, so that it waits for
 * nothing, and nothing gives way for it. */
sp_status sp__allocator_acquire_any(sp_allocator *allocator, uint64_t bytes, bool is_spare,
                                    sp_block **out);
/* Gives a block back with the frontier of its last life. Never fails, never waits. */
void sp__allocator_release(sp_allocator *allocator, sp_block *block);

/* Ends something that holds memory of the device and can be made again, if need be; false if there
 * is nothing of that kind. Called without locks, by whoever found no memory. */
typedef bool (*sp_reclaim_fn)(sp_rt_device *device);
/* Who is asked, of all devices; NULL: nobody. */
void sp__allocator_set_reclaim(sp_reclaim_fn fn);

/* Gives slabs back of which nothing is used, at most `max_bytes` of them and one more; how many
 * bytes. `is_deep` empties the streams' caches first. */
uint64_t sp__allocator_trim(sp_allocator *allocator, uint64_t max_bytes, bool is_deep);

void sp__allocator_stats(sp_allocator *allocator, sp_memory_stats *out);
void sp__allocator_set_limit(sp_allocator *allocator, uint64_t bytes);
void sp__allocator_set_watermarks(sp_allocator *allocator, uint64_t low_bytes, uint64_t high_bytes);

/* Walks all slabs, pool by pool, and compares with the counters; false and a message in the last
 * error if they disagree. Exact only when no other thread allocates. */
bool sp__allocator_check(sp_allocator *allocator);

/* Rounded size and class of a request; false if it is absurd. */
bool sp__size_class_of(uint64_t bytes, uint32_t *size_class, uint64_t *rounded);

#endif
