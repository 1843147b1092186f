/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/submit_queue.h"

#include "base/error.h"
#include "runtime/runtime_state.h"

/* After the indices of the streams and of the fallback queues. */
#define FIRST_INDEX (SP_POOL_STREAMS + SP_FALLBACK_QUEUES)

/* Added to the index of a queue that has a run already: it is not the taker's to release. */
#define SHARED SP_SUBMIT_QUEUES

/* ---- creation ---- */

static uint32_t queues_most(const sp_rt_device *device)
{
    const uint32_t slots = device->dev->limits.run_slots;
    return slots < SP_SUBMIT_QUEUES ? slots : SP_SUBMIT_QUEUES;
}

/* By one thread at a time. */
static sp_status queue_add(sp_rt_device *device)
{
    sp_submit_queues *queues = &device->submit_queues;
    const uint32_t index = sp_load_relaxed(&queues->count);
    const sp_queue_options options = {.is_batching = true, .is_internal = true};
    SP_TRY(device->dev->vtable->queue_create(device->dev, FIRST_INDEX + index, &options,
                                             &queues->queues[index]));
    if (SP_PLANTED(relaxed_submit_queue)) {
        sp_store_relaxed(&queues->count, index + 1);
        sp_fetch_or_relaxed(&queues->free, (uint64_t)1 << index);
        return SP_OK;
    }
    sp_store_release(&queues->count, index + 1);
    sp_fetch_or_release(&queues->free, (uint64_t)1 << index);
    return SP_OK;
}

static sp_status first_add(void *arg)
{
    return queue_add(arg);
}

/* Runs can share the queues that exist: so errors are dropped, and a thread that finds another one
 * creating a queue does not wait for it. */
static SP_NOINLINE void queues_grow(sp_rt_device *device, uint32_t least)
{
    sp_submit_queues *queues = &device->submit_queues;
    const uint32_t most = queues_most(device);
    sp_error_scope scope;
    /* Pairs with the release below: `count` is that of the last thread that was here. */
    if (sp_exchange_acquire(&queues->is_growing, 1) != 0 && !SP_PLANTED(two_growers)) return;
    sp__error_set_aside(&scope);
    sp_status status = SP_OK;
    while (status == SP_OK && sp_load_relaxed(&queues->count) < most &&
           (sp_load_relaxed(&queues->count) < least || sp_load_relaxed(&queues->free) == 0)) {
        status = queue_add(device);
    }
    sp__error_put_back(&scope);
    sp_store_release(&queues->is_growing, 0);
}

sp_status sp__submit_queues_open(sp_rt_device *device, uint32_t least)
{
    sp_submit_queues *queues = &device->submit_queues;
    SP_TRY(sp_once_run(&queues->once, first_add, device));
    const uint32_t count = sp_load_relaxed(&queues->count);
    const bool is_enough = count >= least && sp_load_relaxed(&queues->free) != 0;
    if (SP_UNLIKELY(!is_enough) && count < queues_most(device)) queues_grow(device, least);
    return SP_OK;
}

uint32_t sp__submit_queues_count(const sp_rt_device *device)
{
    return sp_load_acquire(&device->submit_queues.count);
}

/* ---- use ---- */

uint32_t sp__submit_queue_acquire(sp_rt_device *device)
{
    sp_submit_queues *queues = &device->submit_queues;
    uint64_t free = sp_load_relaxed(&queues->free);
    while (free != 0) {
        const uint32_t index = (uint32_t)__builtin_ctzll(free);
        /* Acquire: the queue was created. */
        if (sp_cas_acquire(&queues->free, &free, free & (free - 1))) return index;
    }
    return SHARED + sp_fetch_add_relaxed(&queues->turn, 1) % sp__submit_queues_count(device);
}

void sp__submit_queue_release(sp_rt_device *device, uint32_t index)
{
    if (index >= SHARED && !SP_PLANTED(sharer_frees)) return;
    sp_fetch_or_relaxed(&device->submit_queues.free, (uint64_t)1 << index % SHARED);
}

sp_queue *sp__submit_queue_at(sp_rt_device *device, uint32_t index)
{
    return device->submit_queues.queues[index % SHARED % sp__submit_queues_count(device)];
}
