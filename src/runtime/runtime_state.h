/* SPDX-License-Identifier: Apache-2.0 */
/* The process-wide runtime: whether it is up, and the open devices. Up on first use, down with
 * sp_shutdown, never up again. Its objects stay mapped after it is down, so that a late call finds
 * closed queues rather than freed ones. */
#ifndef SP_RUNTIME_STATE_H
#define SP_RUNTIME_STATE_H

#include <streampool/device.h>

#include "base/atomic.h"
#include "runtime/allocator.h"
#include "runtime/fallback_queue.h"
#include "runtime/run_queue.h"
#include "runtime/stream_pool.h"
#include "runtime/submit_queue.h"
#include "runtime/transfer.h"
#include "runtime/workspace.h"

#define SP_MAX_DEVICES 64 /* bits of sp__closed_devices */

typedef enum sp_runtime_phase {
    SP_RUNTIME_NEW,       /* no thread holds a lock of the library: a forked child may use it */
    SP_RUNTIME_COMING_UP, /* a thread is bringing it up; also after a failed attempt */
    SP_RUNTIME_UP,
    SP_RUNTIME_DOWN,
    SP_RUNTIME_FORKED
} sp_runtime_phase;

/* A device with the runtime's state for it. */
struct sp_rt_device {
    sp_dev *dev;
    uint32_t index;
    sp_once stopped;                    /* sp_device_close and sp_shutdown may run concurrently */
    sp_atomic_u32 is_unreported_logged; /* 1 once logged; see device_log.h */
    sp_stream_pool pool;
    sp_allocator allocator;
    sp_allocator staging;               /* used where dev->vtable has staging_create */
    sp_fallback_queues fallback_queues; /* of cpu: see fallback_queue.h */
    sp_submit_queues submit_queues;     /* see submit_queue.h */
    sp_run_queues run_queues;           /* see run_queue.h */
    sp_transfer_queues transfer_queues; /* see transfer.h */
    sp_workspaces workspaces;           /* used where dev->limits has range_unit */
    sp_atomic_u64 kept_mirror_bytes;    /* see mirror.h; relaxed: a count */
};

/* Written by the thread that brings the runtime up or down, and by the fork handler, which turns
 * every phase but NEW into FORKED; so COMING_UP is written before the first lock is taken. UP is
 * published by release, so that a reader that sees it sees the devices. */
extern sp_atomic_u32 sp__runtime_phase;

/* A bit for each device that was closed, by index: for messages and lists, since queues refuse
 * submissions themselves. Written by the closing thread, read by calls; orders nothing. */
extern sp_atomic_u64 sp__closed_devices;

static inline bool sp__rt_device_is_closed(uint64_t index)
{
    return (sp_load_relaxed(&sp__closed_devices) >> index & 1) != 0;
}

sp_status sp__runtime_enter_slow(void);

/* First line of every public call: SP_OK, or why there is no runtime. */
static inline sp_status sp__runtime_enter(void)
{
    return SP_LIKELY(sp_load_acquire(&sp__runtime_phase) == SP_RUNTIME_UP)
               ? SP_OK
               : sp__runtime_enter_slow();
}

/* In a forked child, releases and destructors do nothing. */
static inline bool sp__runtime_is_forked(void)
{
    return sp_load_relaxed(&sp__runtime_phase) == SP_RUNTIME_FORKED;
}

/* The device a handle names; the zero handle is cpu. Includes sp__runtime_enter. */
sp_status sp__rt_device_find(sp_device handle, sp_rt_device **out);
/* The same for calls that submit work or create something: the fault of a lost device is an
 * error. */
sp_status sp__rt_device_find_working(sp_device handle, sp_rt_device **out);
sp_device sp__rt_device_handle(const sp_rt_device *device);

/* The stream a handle names. Includes sp__runtime_enter. */
static inline sp_status sp__rt_stream_find(sp_stream handle, sp_stream_ref *out)
{
    SP_TRY(sp__runtime_enter());
    return sp__stream_find(handle, out);
}

/* Device handles have one generation: a slot is never reused. */
#define SP_FIRST_DEVICE_HANDLE ((uint64_t)SP_KIND_DEVICE << 56 | (uint64_t)1 << 28)

/* Index that `handle` names, whether or not such a device was opened; SP_MAX_DEVICES or more if it
 * is not a device handle. */
static inline uint64_t sp__rt_device_index(sp_device handle)
{
    return handle.bits == 0 ? 0 : handle.bits - SP_FIRST_DEVICE_HANDLE;
}

/* Threads of layers above, in the order in which a shutdown stops them. */
typedef enum sp_runtime_threads {
    SP_PARTIAL_THREADS, /* batch/partial_threads.c */
    SP_BATCH_BUILDER,   /* batch/batch_builder.c */
    SP_BATCH_TIMER,     /* batch/batch_queue_timer.c */
    SP_RUNTIME_THREADS
} sp_runtime_threads;

/* The function that stops these threads, called by a shutdown before it closes anything. Always the
 * same. Its owner sets it, then starts a thread only if the phase, read sequentially consistently,
 * is UP; the shutdown changes the phase, then reads the functions: one of the two sees the other.
 */
typedef void (*sp_runtime_stop_fn)(void);
void sp__runtime_set_stop(sp_runtime_threads threads, sp_runtime_stop_fn fn);

/* Registers an open device. For tests that open kinds themselves. */
sp_status sp__runtime_add_device(sp_dev *dev, sp_rt_device **out);

/* Calls `fn` for each device until it fails. */
sp_status sp__runtime_each_device(sp_status (*fn)(sp_rt_device *device, void *ctx), void *ctx);

/* Shuts everything down and frees it, ready to come up anew. For tests, when no other thread is
 * inside the library. */
void sp__runtime_reset(void);

#endif
