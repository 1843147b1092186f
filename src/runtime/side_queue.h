/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of the cpu device beside the streams of other devices: what a command sequence of such a
 * stream does on the cpu in between goes there. They are nobody's streams: no lease, no policy, and
 * nothing that users submit gets in.
 *
 * Each stream has its side queue, so work that is stuck in one stream holds up no other one's.
 * There are SP_SIDE_QUEUES; the streams of more than two devices share them, in the order in which
 * they submit. They are made before they are needed and stay. */
#ifndef SP_RUNTIME_SIDE_QUEUE_H
#define SP_RUNTIME_SIDE_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_SIDE_QUEUES 64

typedef struct sp_side_queues {
    sp_once once[SP_SIDE_QUEUES];
    sp_queue *queues[SP_SIDE_QUEUES]; /* each written by its `once`: nothing reads it before */
} sp_side_queues;

/* Makes those of all streams that the device has or will have. Errors: SP_CLOSED, SP_OUT_OF_MEMORY;
 * it can be asked again. */
sp_status sp__side_queues_make(sp_rt_device *cpu, const sp_rt_device *device);

/* The stream's, which has been made. */
sp_queue *sp__side_queue(sp_rt_device *cpu, const sp_rt_stream *stream);

#endif
