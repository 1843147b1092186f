/* SPDX-License-Identifier: Apache-2.0 */
/* The device interface: implemented by each device kind, called by all layers above src/device.
 *
 * Contract of every kind:
 * - Progress: every submitted command completes without further calls. `flush` is a hint about
 *   latency.
 * - Order: a queue runs its submissions in the order of their values, each one whole.
 * - Points exist once their submission is accepted; an unmet wait is kept in the library, so no
 *   driver ever sees a wait before its signal.
 * - A failed command skips the rest of its submission, poisons what it would have written, and
 *   fails its point. Only a lost device stops a queue.
 * - submit never blocks on work; a full queue is SP_BUSY.
 * Every function may be called from any thread unless stated otherwise. */
#ifndef SP_DEVICE_DEVICE_H
#define SP_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "device/command.h"
#include "device/free_slots.h"
#include "device/host_executor.h"
#include "device/kind.h"
#include "device/lease_faults.h"
#include "device/timeline.h"

/* A function of a vendor's library that is not thread-safe, and the workaround. */
typedef struct sp_quirk {
    const char *name;
    const char *since;   /* the vendor's version in which it was observed */
    const char *measure; /* "serialised", "handle per stream" or "other path" */
    uint32_t limit;      /* commands with this quirk that may run at once; 0: no limit */
} sp_quirk;

typedef struct sp_device_limits {
    char name[64];
    uint32_t ordinal; /* of kinds by ordinal, else 0 */
    uint64_t memory_bytes;
    uint32_t width;                  /* streams that execute at the same time */
    uint32_t run_slots;              /* model runs admitted at the same time: `width` or more */
    bool has_tensor_cores;           /* with kernels for them: narrow products */
    uint64_t range_unit;             /* of ranges; 0: the device has none */
    uint32_t max_commands_in_flight; /* 0: no limit except those of the queues */
    uint32_t quirk_count;
    const sp_quirk *quirks;
} sp_device_limits;

typedef struct sp_queue_stats {
    uint64_t submissions;
    uint64_t commits;      /* batches of submissions passed to the workers */
    uint64_t by_workers;   /* commands run by the device's own threads */
    uint64_t by_helpers;   /* commands run by waiting threads */
    uint64_t by_host;      /* host functions run by the host executor */
    uint64_t tiles_shared; /* tiles run by other threads than the dispatch's executor */
} sp_queue_stats;

typedef struct sp_queue_options {
    bool is_batching;  /* submissions are batched; off: every submit flushes */
    bool is_internal;  /* not a stream that a program knows: messages do not name it */
    bool is_unlimited; /* the device's limit of commands in flight does not apply to it */
} sp_queue_options;

/* A stream of the device. First member of each kind's queue. */
struct sp_queue {
    sp_timeline timeline;
    sp_dev *device;
    uint32_t index;
    bool is_internal;  /* see sp_queue_options */
    bool is_unlimited; /* likewise */
    /* Value of the newest submission that later work of other threads may have to follow: all but
     * those that are awaited. Written under the queue's lock, before the submit returns; relaxed:
     * who must follow a submission has been told of it. */
    sp_atomic_u64 followed;
    sp_lease_faults lease_faults; /* failures that make commands with untracked bindings fail */
};

typedef struct sp_device_vtable {
    const sp_device_kind *kind;
    /* Stops accepting (SP_CLOSED from then on), completes accepted work, ends the device's threads.
     * Everything else still works: points, memory, stale pointers to queues. */
    void (*stop)(sp_dev *device);
    /* Stops and frees everything; no other call may run or follow. A device whose queues waited for
     * points of this one has been stopped before: its threads may still look at them. */
    void (*close)(sp_dev *device);

    sp_status (*memory_create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*memory_destroy)(sp_memory *memory);
    /* Describes memory of another owner; its destruction is not the device's. NULL: it may be any
     * host memory. Errors: SP_UNSUPPORTED for memory that the device cannot use, SP_INVALID for
     * bytes that are not there. */
    sp_status (*memory_adopt)(sp_dev *device, void *data, uint64_t bytes, sp_memory *out);
    /* Host memory, with host pointers, that the device accesses fast, for inputs and outputs. NULL:
     * all of the device's memory is such memory, and commands may name any host memory. */
    sp_status (*staging_create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*staging_destroy)(sp_memory *memory);
    /* Of a device with limits.range_unit; sizes and offsets are multiples of it. A range of the
     * device's addresses without memory, which the host cannot access; memory for a part of it,
     * which has none, and which keeps the addresses of the others; and back. A part is taken away
     * whole, when no command uses it any more. Errors: SP_OUT_OF_MEMORY. */
    sp_status (*range_create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*range_destroy)(sp_memory *range);
    sp_status (*range_map)(const sp_memory *range, uint64_t offset, uint64_t bytes);
    void (*range_unmap)(const sp_memory *range, uint64_t offset, uint64_t bytes);
    /* Whether copies on the device's queues may name memory of `other`, a device of the same kind,
     * that has no host pointer: from now on they may. NULL: never. */
    bool (*reaches)(sp_dev *device, sp_dev *other);
    /* Makes whole pages of the host's such memory, and undoes it. NULL: nothing is to be done. */
    sp_status (*host_register)(sp_dev *device, void *data, uint64_t bytes);
    void (*host_unregister)(sp_dev *device, void *data);

    sp_status (*queue_create)(sp_dev *device, uint32_t index, const sp_queue_options *options,
                              sp_queue **out);
    /* The queue must be empty, without concurrent submits. */
    void (*queue_destroy)(sp_queue *queue);
    void (*queue_set_batching)(sp_queue *queue, bool is_batching);
    void (*queue_stats)(sp_queue *queue, sp_queue_stats *out);
    /* The driver's stream behind the queue, and order with such a stream of other code. Follow:
     * what is issued to the queue from now on is behind what the stream `native` has now. Native:
     * what that stream gets from now on is behind the submission `value`; SP_BUSY if that has not
     * been issued yet. Wait: until that stream has done what it has now, on the host. NULL: the
     * driver has no streams. No lock may be held. */
    void *(*queue_native)(sp_queue *queue);
    sp_status (*queue_follow)(sp_queue *queue, void *native);
    sp_status (*native_follow)(sp_queue *queue, uint64_t value, void *native);
    sp_status (*native_wait)(sp_dev *device, void *native);

    /* SP_BUSY when the queue is full, SP_DEVICE_LOST once the device is; else *out is the point. */
    sp_status (*submit)(sp_queue *queue, const sp_submission *submission, sp_point *out);
    /* May be NULL. Like submit, for a caller that waits for the point next and holds no lock: if
     * nothing is ahead in the queue, the calling thread runs the commands before the return, as far
     * as they wait for nothing, and no thread of the device is woken. */
    sp_status (*submit_and_run)(sp_queue *queue, const sp_submission *submission, sp_point *out);
    /* May be NULL. Must follow each submit on the same thread, once that holds no lock (a submit
     * may be inside a hazard step): on a device whose submitters issue the commands, issues them.
     * One call may follow several submits. */
    void (*kick)(sp_queue *queue);
    /* May be NULL. A thread sleeps until a point of the queue passes, so the device must detect
     * completion by itself from now on. Any thread, no lock held. */
    void (*watch)(sp_queue *queue);
    /* Hint: start submitted work soon. */
    void (*flush)(sp_queue *queue);
    /* The calling thread is about to wait for `value`: it may run commands of the device. */
    void (*help)(sp_queue *queue, uint64_t value);
    /* Whether a submission waits for nothing but work of the device. NULL: it cannot be told. */
    bool (*is_issued)(sp_queue *queue, uint64_t value);
    /* Newest accepted value: the point of everything submitted so far. */
    uint64_t (*last_value)(sp_queue *queue);
    /* Calls `visit` for the unmet waits of the submissions after `after`, up to `value`. */
    void (*each_wait)(sp_queue *queue, uint64_t after, uint64_t value, sp_point_visitor visit,
                      void *ctx);

    /* Command lists: recorded once, replayed many times, on any queue of the device. No host
     * functions inside. Retained by each submission until it has completed. */
    sp_status (*list_create)(sp_dev *device, const sp_command *commands, uint32_t command_count,
                             uint32_t slot_count, sp_list **out);
    void (*list_retain)(sp_list *list);
    void (*list_release)(sp_list *list);
} sp_device_vtable;

struct sp_dev {
    const sp_device_vtable *vtable;
    sp_device_limits limits;
    /* NULL: no model has run. Never freed. Release, acquire: they are initialised. */
    SP_ATOMIC(const sp_free_slots *) run_slots;
    /* The fault that lost the device, or SP_NO_FAULT. Written once, relaxed: its message is behind
     * the lock of the ring. */
    SP_ATOMIC(sp_fault) lost;
    sp_host_job lost_job; /* logs the loss; posted by the thread that wrote `lost` */
    /* 1 while the job may run: the device must not be freed. Release by the job, its last access;
     * acquire in sp__device_deinit. */
    sp_atomic_u32 is_logging;
};

/* Commands with the quirk that may run at once: its limit, or 1 under FORCE_SAFE_PATHS. */
uint32_t sp__quirk_limit(const sp_quirk *quirk);

/* SP_OK, or the latched fault of a lost device as this thread's error. */
sp_status sp__device_check(sp_dev *device);

/* Latches `fault`: the first one is kept, and logged by the host executor, since the log's callback
 * may call the library. Any thread, no lock held. */
void sp__device_lose(sp_dev *device, sp_fault fault);

/* What no admitted run needs of the width, if none waits to begin; a hint. */
static inline uint32_t sp__device_free_width(const sp_dev *device)
{
    const sp_free_slots *slots = sp_load_acquire(&device->run_slots);
    if (slots == NULL) return UINT32_MAX;
    const uint32_t free = sp__free_slots_count(slots);
    const uint32_t extra = device->limits.run_slots - device->limits.width;
    return free > extra ? free - extra : 0;
}

/* Called before the memory of a stopped device is freed. */
void sp__device_deinit(sp_dev *device);

#endif
