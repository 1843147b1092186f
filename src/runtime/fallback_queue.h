/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of the cpu device beside the streams of other devices: what a command sequence of such a
 * stream does on the cpu in between goes there. They are nobody's streams: no lease, no policy, and
 * nothing that users submit gets in.
 *
 * Each stream has its fallback queue, so work that is stuck in one stream holds up no other one's.
 * There are SP_FALLBACK_QUEUES; the streams of more than two devices share them, in the order in
 * which they submit. They are made before they are needed and stay. */
#ifndef SP_RUNTIME_FALLBACK_QUEUE_H
#define SP_RUNTIME_FALLBACK_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_FALLBACK_QUEUES 64

typedef struct sp_fallback_queues {
    sp_once once[SP_FALLBACK_QUEUES];
    sp_queue *queues[SP_FALLBACK_QUEUES]; /* each written by its `once`: nothing reads it before */
} sp_fallback_queues;

/* Makes those of all streams that the device has or will have. Errors: SP_CLOSED, SP_OUT_OF_MEMORY;
 * it can be asked again. */
sp_status sp__fallback_queues_open(sp_rt_device *cpu, const sp_rt_device *device);

/* The stream's, which has been made. */
sp_queue *sp__fallback_queue(sp_rt_device *cpu, const sp_rt_stream *stream);

#endif
