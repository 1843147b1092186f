/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/run_queue.h"

#include "base/error.h"
#include "runtime/runtime_state.h"

/* After the indices of the streams, of the fallback queues and of the submit queues. */
#define FIRST_INDEX (SP_POOL_STREAMS + SP_FALLBACK_QUEUES + SP_SUBMIT_QUEUES)

static uint32_t queues_most(const sp_dev *dev)
{
    if (dev->vtable->staging_create != NULL) return 0;
    return dev->limits.run_slots < SP_RUN_QUEUES ? dev->limits.run_slots : SP_RUN_QUEUES;
}

static sp_status queues_create(void *arg)
{
    sp_rt_device *device = arg;
    sp_run_queues *all = &device->run_queues;
    const uint32_t most = queues_most(device->dev);
    const sp_queue_options options = {.is_batching = true, .is_internal = true};
    uint32_t count = 0;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    while (count < most &&
           device->dev->vtable->queue_create(device->dev, FIRST_INDEX + count, &options,
                                             &all->queues[count].queue) == SP_OK) {
        count++;
    }
    sp__error_put_back(&scope);
    if (SP_PLANTED(relaxed_run_queue)) {
        sp_store_relaxed(&all->count, count);
    } else {
        sp_store_release(&all->count, count);
    }
    return SP_OK;
}

void sp__run_queues_open(sp_rt_device *device)
{
    (void)sp_once_run(&device->run_queues.once, queues_create, device);
}

uint32_t sp__run_queue_acquire(sp_rt_device *device, uint32_t hint)
{
    sp_run_queues *all = &device->run_queues;
    const uint32_t count = sp_load_acquire(&all->count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t index = (hint + i) % count;
        sp_atomic_u32 *is_taken = &all->queues[index].is_taken;
        uint32_t free = 0;
        if (sp_load_relaxed(is_taken) == 0 && sp_cas_acquire(is_taken, &free, 1)) return index;
        if (SP_PLANTED(takes_hint)) return index;
    }
    return SP_NO_RUN_QUEUE;
}

void sp__run_queue_release(sp_rt_device *device, uint32_t index, bool has_failed)
{
    if (has_failed) sp__timeline_forget_failures(&sp__run_queue_at(device, index)->timeline);
    sp_store_release(&device->run_queues.queues[index].is_taken, 0);
}

sp_queue *sp__run_queue_at(const sp_rt_device *device, uint32_t index)
{
    return device->run_queues.queues[index].queue;
}
