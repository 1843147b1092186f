/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/fallback_queue.h"

#include "runtime/runtime_state.h"

/* Two devices of the default number of streams have their own. */
#define STREAMS_APART 32

static uint32_t place_of(const sp_rt_device *device, uint32_t stream)
{
    return (device->index * STREAMS_APART + stream) % SP_FALLBACK_QUEUES;
}

typedef struct making {
    sp_rt_device *cpu;
    uint32_t place;
} making;

/* Behind the indices of the device's own streams. */
static sp_status make_queue(void *arg)
{
    const making *m = arg;
    sp_dev *dev = m->cpu->dev;
    const sp_queue_options options = {.is_batching = true};
    return dev->vtable->queue_create(dev, SP_POOL_STREAMS + m->place, &options,
                                     &m->cpu->fallback_queues.queues[m->place]);
}

sp_status sp__fallback_queues_open(sp_rt_device *cpu, const sp_rt_device *device)
{
    for (uint32_t i = 0; i < device->pool.count; i++) {
        making m = {cpu, place_of(device, i)};
        SP_TRY(sp_once_run(&cpu->fallback_queues.once[m.place], make_queue, &m));
    }
    return SP_OK;
}

sp_queue *sp__fallback_queue(sp_rt_device *cpu, const sp_rt_stream *stream)
{
    return cpu->fallback_queues.queues[place_of(stream->device, stream->index)];
}
