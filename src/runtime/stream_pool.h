/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of one device and their leases.
 *
 * Stream 0 is the default stream, the main thread's. The others are leased: an acquire pops a free
 * one from a lock-free list; if there is none, the policy decides. A lease is an object with its
 * own handle, so of two lessees that share a stream each releases only its share, and a handle
 * released twice is stale.
 *
 *     stream->holders == number of its leases;  0  <=>  it is in the list or being pushed to it
 *
 * FIFO: a released stream goes to the oldest waiter. The list is used only while no thread waits.
 * Waiters that may share exist only while every stream is being pushed back to the list; the
 * release or the next acquire serves them.
 *
 * Streams are created on first use and never destroyed before the pool; everything here may be
 * called from any thread. */
#ifndef SP_RUNTIME_STREAM_POOL_H
#define SP_RUNTIME_STREAM_POOL_H

#include <streampool/stream.h>

#include "base/handle.h"
#include "base/option.h"
#include "base/tagged_stack.h"
#include "base/thread.h"
#include "base/wait.h"
#include "device/device.h"

#define SP_POOL_STREAMS 64

typedef struct sp_stream_pool sp_stream_pool;
typedef struct sp_rt_device sp_rt_device;

typedef struct sp_rt_stream {
    sp_rt_device *device; /* constant, like the index */
    uint32_t index;
    sp_once once;                /* creates the queue at the first lease */
    SP_ATOMIC(sp_queue *) queue; /* written once, by `once`, with release */
    SP_CACHE_ALIGNED sp_atomic_u32 holders;
    sp_atomic_u32 next_free;
} sp_rt_stream;

/* One reference to a stream. */
typedef struct sp_lease {
    SP_CACHE_ALIGNED sp_object object;
    SP_ATOMIC(sp_rt_stream *) stream;
    /* 1: a thread has the lease as its own stream, and no other thread has made it current.
     * Relaxed: a thread reads it in calls of its own, and who makes the stream of another thread
     * current has been told of the handle. */
    sp_atomic_u32 is_own;
} sp_lease;

/* A thread that waits for a stream; stored on its stack. */
typedef struct sp_stream_waiter {
    struct sp_stream_waiter *next; /* guarded by the pool's lock */
    sp_parker *parker;
    bool may_share;
    sp_rt_stream *stream; /* the result; NULL: the pool was closed */
    /* 1 once answered: the last access to the node. Release pairs with the acquire in
     * stream_wait. */
    sp_atomic_u32 is_answered;
} sp_stream_waiter;

#define SP_POOL_CLOSED 0x80000000u

struct sp_stream_pool {
    uint32_t count; /* streams, the default one included; constant */
    sp_option_policy policy;
    int64_t wait_ns;
    sp_stream default_stream; /* constant: a lease that is never released */
    sp_tagged_stack free;
    sp_atomic_u32 share_turn; /* round robin of the policy share */
    /* Number of waiters, and SP_POOL_CLOSED; written under the lock. A waiter counts itself, then
     * checks the list and the holders; a releaser pushes, then reads this, and so does an acquirer
     * after it has written the holders: all sequentially consistent. */
    sp_atomic_u32 waiting;
    sp_mutex lock;
    sp_stream_waiter *first SP_GUARDED_BY(lock); /* oldest first */
    sp_stream_waiter **end SP_GUARDED_BY(lock);
    uint32_t sharer_count SP_GUARDED_BY(lock); /* waiters that may share */
    sp_rt_stream streams[SP_POOL_STREAMS];
};

typedef struct sp_stream_pool_options {
    uint32_t count;
    sp_option_policy policy;
    int64_t wait_ns; /* of the policy wait; negative: no limit */
} sp_stream_pool_options;

sp_status sp__stream_pool_init(sp_stream_pool *pool, sp_rt_device *device,
                               const sp_stream_pool_options *options);
void sp__stream_pool_deinit(sp_stream_pool *pool);

/* Waiting and later acquires return SP_CLOSED. May be called again. */
void sp__stream_pool_close(sp_stream_pool *pool);

/* A lease by the pool's policy. SP_CLOSED once the pool is closed. */
sp_status sp__stream_pool_acquire(sp_stream_pool *pool, sp_stream *out);

/* Ends a lease of any pool; the zero handle is ignored. */
sp_status sp__stream_lease_release(sp_stream stream);

/* What a stream handle resolves to during one call. */
typedef struct sp_stream_ref {
    sp_rt_stream *stream;
    sp_queue *queue;
    uint64_t lease; /* the handle; 0: not of a lease */
    bool is_own;    /* of the calling thread alone: see sp_lease */
} sp_stream_ref;

/* The lease is the calling thread's own from now on, or is not any more. */
void sp__stream_lease_set_own(sp_stream stream, bool is_own);

/* Looks a handle up; streams themselves are never destroyed. */
sp_status sp__stream_find(sp_stream stream, sp_stream_ref *out);

/* The stream's queue, or NULL if the stream was never leased. */
static inline sp_queue *sp__stream_queue_if_made(sp_rt_stream *stream)
{
    return sp_load_acquire(&stream->queue);
}

/* Several leases have the stream: the policy of the pool has shared it. */
static inline bool sp__stream_is_shared(const sp_rt_stream *stream)
{
    return sp_load_relaxed(&stream->holders) > 1;
}

/* The newest point that a run on the stream must follow: the runs of other threads, which wait for
 * them, do not count. */
static inline sp_point sp__queue_followed_point(sp_queue *queue)
{
    return (sp_point){&queue->timeline, sp_load_relaxed(&queue->followed)};
}

/* The point of everything submitted to the queue so far. */
static inline sp_point sp__queue_last_point(sp_queue *queue)
{
    return (sp_point){&queue->timeline, queue->device->vtable->last_value(queue)};
}

/* Nothing that a run on the stream must follow is left: a run that is computed elsewhere, by a
 * batch or on the calling thread, may leave the stream. */
static inline bool sp__stream_is_idle(const sp_stream_ref *stream)
{
    return sp__point_has_passed(stream->is_own ? sp__queue_followed_point(stream->queue)
                                               : sp__queue_last_point(stream->queue));
}

/* Of the device that a stream belongs to; runtime_state.c. */
sp_dev *sp__rt_device_dev(sp_rt_device *device);
sp_stream_pool *sp__rt_device_pool(sp_rt_device *device);

/* Frees the table of leases. For tests and the controlled scheduler, when no handle is left. */
void sp__stream_leases_deinit(void);

#endif
