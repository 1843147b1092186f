/* SPDX-License-Identifier: Apache-2.0 */
/* The device interface: what a device kind fills in and everything above src/device calls.
 *
 * Contract of every kind:
 * - Progress: every submitted command completes without any further call by anyone. `flush` is a
 *   hint about latency.
 * - Order: a queue runs its submissions in the order of their values, each one whole.
 * - Points exist once their submission is accepted; an unmet wait stays in the runtime, no driver
 *   ever sees a wait before its signal.
 * - A failed command skips the rest of its submission, poisons what it would have written, and
 *   fails its point. Only a lost device stops a queue.
 * - submit never blocks on work; a full queue is SP_BUSY.
 * Every function may be called from any thread, except where a line says otherwise. */
#ifndef SP_DEVICE_DEVICE_H
#define SP_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <streampool/status.h>

#include "device/command.h"
#include "device/host_executor.h"
#include "device/kind.h"
#include "device/lease_faults.h"
#include "device/timeline.h"

/* What is unsafe in a vendor's library, and what we do about it. */
typedef struct sp_quirk {
    const char *name;
    const char *since;   /* the version in which it was seen */
    const char *measure; /* "serialised", "handle per stream" or "other path" */
    uint32_t limit;      /* how many commands with this quirk may run at once; 0: any number */
} sp_quirk;

typedef struct sp_device_limits {
    char name[64];
    uint32_t ordinal; /* of kinds by ordinal; 0 elsewhere */
    uint64_t memory_bytes;
    uint32_t width;                  /* streams that really run at the same time */
    uint32_t run_slots;              /* runs that admission lets in at once */
    uint32_t max_commands_in_flight; /* 0: no limit but the queues' own */
    uint32_t quirk_count;
    const sp_quirk *quirks;
} sp_device_limits;

typedef struct sp_queue_stats {
    uint64_t submissions;
    uint64_t commits;      /* times that gathered submissions were handed over */
    uint64_t by_workers;   /* commands run by the device's own threads */
    uint64_t by_helpers;   /* commands run by threads that wait */
    uint64_t by_host;      /* host functions run by the host executor */
    uint64_t tiles_shared; /* tiles run by others than the dispatch's executor */
} sp_queue_stats;

typedef struct sp_queue_options {
    bool is_batching; /* gather submissions; off: every submit flushes */
} sp_queue_options;

/* A stream of the device. Each kind's queue starts with this. */
struct sp_queue {
    sp_timeline timeline;
    sp_dev *device;
    uint32_t index;
    sp_lease_faults lease_faults; /* why commands with untracked bindings fail */
};

typedef struct sp_device_vtable {
    const sp_device_kind *kind;
    /* Stops accepting (SP_CLOSED from then on), completes what was accepted, ends the device's
     * threads. Everything else still works: points, memory, stale pointers to queues. */
    void (*stop)(sp_dev *device);
    /* Stops and frees everything; only when nobody can call any more. */
    void (*close)(sp_dev *device);

    sp_status (*memory_create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*memory_destroy)(sp_memory *memory);
    /* Memory of the host, with host pointers, that the device reaches fast, for what goes in and
     * out; NULL: that is all of the device's memory, and commands may name any memory of the host.
     */
    sp_status (*staging_create)(sp_dev *device, uint64_t bytes, sp_memory *out);
    void (*staging_destroy)(sp_memory *memory);

    sp_status (*queue_create)(sp_dev *device, uint32_t index, const sp_queue_options *options,
                              sp_queue **out);
    /* The queue is empty and nobody submits. */
    void (*queue_destroy)(sp_queue *queue);
    void (*queue_set_batching)(sp_queue *queue, bool is_batching);
    void (*queue_stats)(sp_queue *queue, sp_queue_stats *out);

    /* SP_BUSY when the queue is full, SP_DEVICE_LOST once the device is; else *out is the point. */
    sp_status (*submit)(sp_queue *queue, const sp_submission *submission, sp_point *out);
    /* NULL, or: belongs to each submit, after it, on the same thread, once that holds no lock (a
     * submit may stand inside a hazard step): a device whose commands are issued by those who
     * submit them gets them now. Several submits may share one. */
    void (*kick)(sp_queue *queue);
    /* NULL, or: somebody sleeps until a point of the queue passes, so the device has to look for it
     * by itself from now on. Any thread, no lock held. */
    void (*watch)(sp_queue *queue);
    /* What was submitted gets going soon rather than late. */
    void (*flush)(sp_queue *queue);
    /* The calling thread is about to wait for `value`: it may lend itself to the device. */
    void (*help)(sp_queue *queue, uint64_t value);
    /* Newest accepted value: the point of everything submitted so far. */
    uint64_t (*last_value)(sp_queue *queue);
    /* Calls `visit` for the points that submissions after `after`, up to `value`, still wait for.
     */
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
    /* The fault that lost the device, or SP_NO_FAULT. Written once, relaxed: its message is behind
     * the lock of the ring. */
    SP_ATOMIC(sp_fault) lost;
    sp_host_job lost_job; /* logs that; posted by whoever wrote `lost` */
    /* 1 while the job may run: the device is not freed then. Release by the job, its last access;
     * acquire in sp__device_deinit. */
    sp_atomic_u32 is_logging;
};

/* How many commands with the quirk may run at once: its limit, or 1 under FORCE_SAFE_PATHS. */
uint32_t sp__quirk_limit(const sp_quirk *quirk);

/* SP_OK, or the latched fault of a lost device as this thread's error. */
sp_status sp__device_check(sp_dev *device);

/* Latches `fault`: the first one wins, and is logged by the host executor, since the log's callback
 * may call the library. Any thread, no lock held. */
void sp__device_lose(sp_dev *device, sp_fault fault);

/* Before the memory of a stopped device goes. */
void sp__device_deinit(sp_dev *device);

#endif
