/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/submit_queue.h"

#include "base/assert.h"
#include "runtime/runtime_state.h"

/* After the indices of the streams and of the fallback queues. */
#define FIRST_INDEX (SP_POOL_STREAMS + SP_FALLBACK_QUEUES)

static sp_status make_queues(void *arg)
{
    sp_rt_device *device = arg;
    sp_submit_queues *queues = &device->submit_queues;
    const uint32_t slots = device->dev->limits.run_slots;
    const uint32_t count = slots < SP_SUBMIT_QUEUES ? slots : SP_SUBMIT_QUEUES;
    SP_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        if (queues->queues[i] != NULL) continue; /* created by an attempt that failed later */
        const sp_queue_options options = {.is_batching = true};
        SP_TRY(device->dev->vtable->queue_create(device->dev, FIRST_INDEX + i, &options,
                                                 &queues->queues[i]));
    }
    queues->count = count;
    sp_store_relaxed(&queues->free, UINT64_MAX >> (SP_SUBMIT_QUEUES - count));
    return SP_OK;
}

sp_status sp__submit_queues_open(sp_rt_device *device)
{
    return sp_once_run(&device->submit_queues.once, make_queues, device);
}

uint32_t sp__submit_queue_acquire(sp_rt_device *device)
{
    sp_submit_queues *queues = &device->submit_queues;
    uint64_t free = sp_load_relaxed(&queues->free);
    while (free != 0) {
        const uint32_t index = (uint32_t)__builtin_ctzll(free);
        if (sp_cas_relaxed(&queues->free, &free, free & (free - 1))) return index;
    }
    return sp_fetch_add_relaxed(&queues->turn, 1) % queues->count;
}

void sp__submit_queue_release(sp_rt_device *device, uint32_t index)
{
    sp_fetch_or_relaxed(&device->submit_queues.free, (uint64_t)1 << index);
}

sp_queue *sp__submit_queue_at(sp_rt_device *device, uint32_t index)
{
    return device->submit_queues.queues[index % device->submit_queues.count];
}
