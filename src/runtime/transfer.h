/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between pinned host memory and the memory of a device that the host cannot reach, beside
 * the device's streams: a copy waits for nothing but the copies before it, so work that blocks a
 * stream never delays one. */
#ifndef SP_RUNTIME_TRANSFER_H
#define SP_RUNTIME_TRANSFER_H

#include "base/thread.h"
#include "device/command.h"
#include "runtime/stream_pool.h"

typedef enum sp_transfer_direction {
    SP_TRANSFER_TO_HOST,
    SP_TRANSFER_TO_DEVICE,
    SP_TRANSFER_NONE, /* no copies: what follows streams of other code (foreign_stream.h) */
    SP_TRANSFER_DIRECTIONS
} sp_transfer_direction;

/* A queue for each direction, since a GPU copies both ways at once, and one that may wait for as
 * long as other code likes. Created when they are needed, and never destroyed. */
typedef struct sp_transfer_queues {
    sp_once once[SP_TRANSFER_DIRECTIONS];
    sp_queue *queues[SP_TRANSFER_DIRECTIONS]; /* each written by its `once`: not read before */
} sp_transfer_queues;

/* The queue, which is created if needed. Errors: SP_CLOSED, SP_OUT_OF_MEMORY. */
sp_status sp__transfer_queue(sp_rt_device *device, sp_transfer_direction direction, sp_queue **out);

/* Submits a copy of equal numbers of bytes. Everything it must follow has passed. Waits for room in
 * a full queue; the device's limit of commands in flight does not apply, for all of them may wait
 * for the copy. No lock may be held. */
sp_status sp__transfer_submit(sp_rt_device *device, sp_transfer_direction direction, sp_binding to,
                              sp_binding from, sp_point *out);
/* Waits for such a copy, also where other waits fail for lack of memory or threads, since it uses
 * the memory of both sides. Returns the status and message of its fault. No lock may be held. */
sp_status sp__transfer_wait(sp_point copied);

#endif
