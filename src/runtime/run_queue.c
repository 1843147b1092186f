/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run_queue.h"

#include "base/assert.h"
#include "runtime/runtime_state.h"

/* Behind the indices of the streams, and of what stands beside other devices' streams. */
#define FIRST_INDEX (SP_POOL_STREAMS + SP_SIDE_QUEUES)

static sp_status make_queues(void *arg)
{
    sp_rt_device *device = arg;
    sp_run_queues *runs = &device->runs;
    const uint32_t slots = device->dev->limits.run_slots;
    const uint32_t count = slots < SP_RUN_QUEUES ? slots : SP_RUN_QUEUES;
    SP_ASSERT(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        if (runs->queues[i] != NULL) continue; /* by an attempt that failed */
        const sp_queue_options options = {.is_batching = true};
        SP_TRY(device->dev->vtable->queue_create(device->dev, FIRST_INDEX + i, &options,
                                                 &runs->queues[i]));
    }
    runs->count = count;
    sp_store_relaxed(&runs->free, UINT64_MAX >> (SP_RUN_QUEUES - count));
    return SP_OK;
}

sp_status sp__run_queues_make(sp_rt_device *device)
{
    return sp_once_run(&device->runs.once, make_queues, device);
}

uint32_t sp__run_queue_take(sp_rt_device *device)
{
    sp_run_queues *runs = &device->runs;
    uint64_t free = sp_load_relaxed(&runs->free);
    while (free != 0) {
        const uint32_t place = (uint32_t)__builtin_ctzll(free);
        if (sp_cas_relaxed(&runs->free, &free, free & (free - 1))) return place;
    }
    return sp_fetch_add_relaxed(&runs->turn, 1) % runs->count;
}

void sp__run_queue_give(sp_rt_device *device, uint32_t place)
{
    sp_fetch_or_relaxed(&device->runs.free, (uint64_t)1 << place);
}

sp_queue *sp__run_queue_at(sp_rt_device *device, uint32_t place)
{
    return device->runs.queues[place % device->runs.count];
}
