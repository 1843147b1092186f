/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered caching allocator: one for the memory of each device, and one for the memory
 * of the host that a device wants for what goes in and out.
 *
 * Memory comes from its source in slabs, each cut at once into blocks of one size class (four
 * classes a doubling, so at most a quarter is slack). There is no splitting and no merging. A freed
 * block keeps its frontier: it goes to the cache of the stream that is alone left in it, where it
 * can be used again at once, else to its class's pool, where it waits until its points have passed.
 *
 *     stream cache   no lock: a flag that is never waited for; busy means use the pool
 *     class pool     a lock each
 *     slabs          only when the caches and pools have nothing
 * What the pools hold beyond a high watermark is trimmed to a low one by whoever passes, a slab at
 * a time, while the others allocate.
 *
 * Out of memory: give unused slabs back, then wait for some pending points, then let what can be
 * made again give way (sp__allocator_set_give_way), then wait for all, then fail with the sizes.
 * Invariant when no call is inside:  in use + cached = reserved  (sp__allocator_check). */
#ifndef SP_RUNTIME_ALLOCATOR_H
#define SP_RUNTIME_ALLOCATOR_H

#include <streampool/storage.h>

#include "base/mutex.h"
#include "device/device.h"
#include "runtime/frontier.h"

#define SP_SIZE_CLASSES 160
#define SP_ALLOCATOR_STREAMS 64

typedef struct sp_slab sp_slab;
typedef struct sp_block sp_block;
typedef struct sp_rt_device sp_rt_device;

/* Memory between two uses; lives inside a storage object. Fields belong to the block's owner: the
 * storage while it lives, then the cache or pool. */
struct sp_block {
    sp_slab *slab;
    uint64_t offset; /* in the slab */
    uint64_t bytes;  /* of its class */
    uint32_t size_class;
    uint32_t home; /* stream whose cache a block without pending points goes to */
    sp_frontier frontier;
    sp_block *next;
};

struct sp_slab {
    sp_memory memory;     /* constant */
    uint32_t block_count; /* constant */
    /* Guarded by the lock of its class's pool: its blocks that are in the pool, oldest first, and
     * its place among the slabs that have some. */
    uint32_t pooled_count;
    sp_block *first;
    sp_block **end;
    sp_slab *previous, *next;
};

typedef struct sp_class_pool {
    SP_CACHE_ALIGNED sp_mutex lock;
    /* Slabs with pooled blocks, the one that got its first block longest ago in front. */
    sp_slab *first SP_GUARDED_BY(lock);
    sp_slab *last SP_GUARDED_BY(lock);
    uint64_t pooled_blocks SP_GUARDED_BY(lock);
} sp_class_pool;

/* Counters that one writer at a time changes and anyone sums up. */
typedef struct sp_allocator_counts {
    sp_atomic_i64 in_use_bytes; /* may be negative here: the sum over all caches counts */
    sp_atomic_i64 cached_bytes;
    sp_atomic_u64 allocations;
    sp_atomic_u64 frees;
} sp_allocator_counts;

/* Blocks that the stream can use again at once. */
typedef struct sp_stream_cache {
    /* 1 while a thread is inside: exchange (acquire) to enter, store (release) to leave; orders all
     * fields below. */
    SP_CACHE_ALIGNED sp_atomic_u32 is_busy;
    sp_allocator_counts counts;
    sp_block *first[SP_SIZE_CLASSES];
    uint16_t count[SP_SIZE_CLASSES];
} sp_stream_cache;

/* Where an allocator's slabs come from. */
typedef struct sp_slab_source {
    const char *what;     /* in messages: "memory", "pinned memory" */
    uint64_t limit_bytes; /* 0: none */
    sp_status (*create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*destroy)(sp_memory *memory);
} sp_slab_source;

typedef struct sp_allocator {
    sp_rt_device *device;
    sp_dev *dev;
    sp_slab_source source;
    sp_class_pool pools[SP_SIZE_CLASSES];
    /* By stream index; made with the first block. Published by release. */
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
    /* Threads that are giving memory back, and how often some came of it. Release: what was given
     * is there; pairs with the acquire of who looks for some. */
    sp_atomic_u32 givers;
    sp_atomic_u64 gifts;
    /* Counts of what went past the stream caches. Any thread, relaxed. */
    SP_CACHE_ALIGNED sp_allocator_counts shared;
} sp_allocator;

/* Of the device's memory; of pinned memory of the host, if the device has staging_create. */
void sp__allocator_init(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
void sp__allocator_init_staging(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
/* All blocks are back. */
void sp__allocator_deinit(sp_allocator *allocator);

/* A block of at least `bytes` for use on stream `queue`. Its frontier holds at most one point, of
 * that stream. NULL: for use anywhere at once, with an empty frontier. */
sp_status sp__allocator_take(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                             sp_block **out);
/* The same for use anywhere. `is_spare`: for what its user can do without, so that it waits for
 * nothing, and nothing gives way for it. */
sp_status sp__allocator_take_any(sp_allocator *allocator, uint64_t bytes, bool is_spare,
                                 sp_block **out);
/* Gives a block back with the frontier of its last life. Never fails, never waits. */
void sp__allocator_give(sp_allocator *allocator, sp_block *block);

/* Ends something that holds memory of the device and can be made again, if need be; false if there
 * is nothing of that kind. Called without locks, by whoever found no memory. */
typedef bool (*sp_give_way_fn)(sp_rt_device *device);
/* Who is asked, of all devices; NULL: nobody. */
void sp__allocator_set_give_way(sp_give_way_fn fn);

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
