/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fallback_queue.h"

#include "runtime/runtime_state.h"

/* Two devices with the default number of streams do not share queues. */
#define STREAMS_APART 32

static uint32_t queue_index(const sp_rt_device *device, uint32_t stream)
{
    return (device->index * STREAMS_APART + stream) % SP_FALLBACK_QUEUES;
}

typedef struct queue_request {
    sp_rt_device *cpu;
    uint32_t index;
} queue_request;

/* Its index follows those of the device's own streams. */
static sp_status make_queue(void *arg)
{
    const queue_request *request = arg;
    sp_dev *dev = request->cpu->dev;
    const sp_queue_options options = {.is_batching = true, .is_internal = true};
    return dev->vtable->queue_create(dev, SP_POOL_STREAMS + request->index, &options,
                                     &request->cpu->fallback_queues.queues[request->index]);
}

sp_status sp__fallback_queues_open(sp_rt_device *cpu, const sp_rt_device *device)
{
    for (uint32_t i = 0; i < device->pool.count; i++) {
        queue_request request = {cpu, queue_index(device, i)};
        SP_TRY(sp_once_run(&cpu->fallback_queues.once[request.index], make_queue, &request));
    }
    return SP_OK;
}

sp_queue *sp__fallback_queue(sp_rt_device *cpu, const sp_rt_stream *stream)
{
    return cpu->fallback_queues.queues[queue_index(stream->device, stream->index)];
}
