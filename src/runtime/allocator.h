/* SPDX-License-Identifier: Apache-2.0 */
/* The stream-ordered caching allocator: one for the memory of each device, and one for the host
 * memory that a device wants for transfers.
 *
 * Memory comes from its source in slabs, each cut at once into blocks of one size class (four
 * classes a doubling, so at most a quarter is slack). Blocks are neither split nor merged. A freed
 * block keeps its frontier. It goes to a stream's cache if only points of that stream are left in
 * it, where that stream can reuse it at once; else to its class's pool (block_pool.h), which finds
 * it again once its points have passed.
 *
 *     stream cache   no lock: a flag that is never waited for; if busy, the pool is used
 *     class pool     a lock each
 *     slabs          only when the caches and pools have nothing
 * What the pools hold beyond a high watermark is trimmed to a low one by one of the threads that
 * acquire or release blocks, a slab at a time, while the others allocate.
 *
 * Out of memory: return unused slabs, then memory of spare workspaces, then wait until some pending
 * blocks are ready, then reclaim what can be recreated (sp__allocator_set_reclaim), then wait for
 * the rest, then fail with the sizes. Each wait is for the first to pass of the points that pending
 * blocks are filed under. A closed allocator keeps nothing: a slab returns to its source when its
 * last block is ready. Invariant when no call is inside:  in use + cached = reserved
 * (sp__allocator_check). */
#ifndef SP_RUNTIME_ALLOCATOR_H
#define SP_RUNTIME_ALLOCATOR_H

#include <streampool/storage.h>

#include "device/device.h"
#include "runtime/block_pool.h"

#define SP_SIZE_CLASSES 160
#define SP_ALLOCATOR_STREAMS 64

typedef struct sp_rt_device sp_rt_device;

/* Counters with one writer at a time and any number of readers, which sum them up. */
typedef struct sp_allocator_counts {
    sp_atomic_i64 in_use_bytes; /* may be negative here: the sum over all caches counts */
    sp_atomic_i64 cached_bytes;
    sp_atomic_u64 allocations;
    sp_atomic_u64 frees;
} sp_allocator_counts;

/* Blocks that the stream can reuse at once. */
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
    /* By stream index; created with the first block, or closed without one. Published by
     * release. */
    SP_ATOMIC(sp_stream_cache *) caches[SP_ALLOCATOR_STREAMS];
    SP_CACHE_ALIGNED sp_atomic_u64 reserved_bytes; /* raised before the device is asked */
    sp_atomic_u64 peak_bytes;
    sp_atomic_u64 limit_bytes; /* 0: none but the source's own */
    /* When the pools hold more than `high`, they are trimmed to `low`. 0: never. */
    sp_atomic_u64 low_bytes;
    sp_atomic_u64 high_bytes;
    sp_atomic_u32 is_trimming; /* 1 while a thread trims; other threads do not */
    sp_atomic_u64 device_allocations;
    sp_atomic_u64 waits;
    /* Threads that found no memory and try to get some. Relaxed. Hint: optional requests back off
     * while nonzero. */
    sp_atomic_u32 short_takers;
    /* Threads that hold free memory outside of the pools: they trim, empty caches, create a slab,
     * or reclaim; and how often memory came of it. They never wait for a thread that acquires. */
    sp_atomic_u32 givers;
    sp_atomic_u64 gifts;
    /* Counts of what bypassed the stream caches. Any thread, relaxed. */
    SP_CACHE_ALIGNED sp_allocator_counts shared;
};

/* For the device's memory; for pinned memory of the host, if the device has staging_create. */
void sp__allocator_init(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
void sp__allocator_init_staging(sp_allocator *allocator, sp_rt_device *device, sp_dev *dev);
/* All blocks have been released. */
void sp__allocator_deinit(sp_allocator *allocator);
/* Once, when the device has stopped: returns free memory to its source, now and from now on. A
 * block that is pending behind points of other devices or of the host is returned when these have
 * passed. */
void sp__allocator_close(sp_allocator *allocator);

/* A block of at least `bytes` for use on stream `queue`. Its frontier holds at most one point, of
 * that stream. NULL: for use anywhere at once, with an empty frontier. */
sp_status sp__allocator_acquire(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                                sp_block **out);
/* The same, and all points of the block have passed: memory to use now. `queue`: the stream whose
 * cache is looked into and receives the block afterwards; may be NULL. With `is_bounded`, if that
 * cache is full of used blocks of the class, and there is no unused one, the oldest of them: its
 * point passes first. */
sp_status sp__allocator_acquire_unused(sp_allocator *allocator, uint64_t bytes, sp_queue *queue,
                                       bool is_bounded, sp_block **out);
/* The same for use anywhere. `is_spare`: an optional request, for which nothing is waited for and
 * nothing is reclaimed. */
sp_status sp__allocator_acquire_any(sp_allocator *allocator, uint64_t bytes, bool is_spare,
                                    sp_block **out);
/* Returns a block with the frontier of its last life. Never fails, never waits. */
void sp__allocator_release(sp_allocator *allocator, sp_block *block);

typedef enum sp_uncut_request {
    SP_UNCUT_NEEDED, /* other memory is waited for and reclaimed */
    SP_UNCUT_FREE,   /* of free memory alone */
    SP_UNCUT_SPARE   /* the same, and none while others are short of it */
} sp_uncut_request;

/* Memory of the device that is no block: `create` asks the device for `bytes`, as often as there
 * may be memory, and returns SP_OUT_OF_MEMORY if there is none. The bytes count as in use until the
 * caller has returned them to the device, and says so. */
sp_status sp__allocator_create_uncut(sp_allocator *allocator, uint64_t bytes,
                                     sp_uncut_request request, sp_status (*create)(void *ctx),
                                     void *ctx);
/* Between the calls below if others could have found the memory before, or had it reclaimed. */
void sp__allocator_note_uncut_destroyed(sp_allocator *allocator, uint64_t bytes);

/* The calling thread has memory for a moment that others find nowhere; they wait for it before they
 * are out of memory. It waits for no thread that acquires. */
void sp__allocator_giver_begin(sp_allocator *allocator);
void sp__allocator_giver_end(sp_allocator *allocator, bool is_given);

/* Destroys something that holds memory of the device and can be recreated; false if there is no
 * such thing. Called without locks, by the thread that found no memory. */
typedef bool (*sp_reclaim_fn)(sp_rt_device *device);
/* The function to call, for all devices; NULL: none. */
void sp__allocator_set_reclaim(sp_reclaim_fn fn);

/* Returns unused slabs to their source until `max_bytes` are reached or exceeded; how many bytes.
 * `is_deep` empties the streams' caches first. */
uint64_t sp__allocator_trim(sp_allocator *allocator, uint64_t max_bytes, bool is_deep);

void sp__allocator_stats(sp_allocator *allocator, sp_memory_stats *out);
/* The peak is what is reserved now. */
void sp__allocator_reset_peak(sp_allocator *allocator);
void sp__allocator_set_limit(sp_allocator *allocator, uint64_t bytes);
void sp__allocator_set_watermarks(sp_allocator *allocator, uint64_t low_bytes, uint64_t high_bytes);

/* Walks all slabs, pool by pool, and compares with the counters; false, with a message in the last
 * error, if they disagree. Exact only when no other thread allocates. */
bool sp__allocator_check(sp_allocator *allocator);

/* Rounded size and class of a request; false if it is larger than the largest class. */
bool sp__size_class_of(uint64_t bytes, uint32_t *size_class, uint64_t *rounded);

#endif
