/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of the cpu device for the cpu segments of other devices' streams. They are not streams:
 * they have no lease and no policy, and users cannot submit to them.
 *
 * Each stream has its fallback queue, so blocked work of one stream delays no other stream. There
 * are SP_FALLBACK_QUEUES; the streams of more than two devices share them, in order of submission.
 * They are created before they are needed and never destroyed. */
#ifndef SP_RUNTIME_FALLBACK_QUEUE_H
#define SP_RUNTIME_FALLBACK_QUEUE_H

#include "base/thread.h"
#include "runtime/stream_pool.h"

#define SP_FALLBACK_QUEUES 64

typedef struct sp_fallback_queues {
    sp_once once[SP_FALLBACK_QUEUES];
    sp_queue *queues[SP_FALLBACK_QUEUES]; /* each written by its `once`: not read before */
} sp_fallback_queues;

/* Creates those of all streams that the device has or will have. Errors: SP_CLOSED,
 * SP_OUT_OF_MEMORY; may be called again. */
sp_status sp__fallback_queues_open(sp_rt_device *cpu, const sp_rt_device *device);

/* The stream's queue. Requires sp__fallback_queues_open. */
sp_queue *sp__fallback_queue(sp_rt_device *cpu, const sp_rt_stream *stream);

#endif
