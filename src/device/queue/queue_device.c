/* SPDX-License-Identifier: Apache-2.0 */
/* Life cycle of a queue device: stop accepting, drain, end the workers, destroy. */
#include "device/queue/queue.h"

#include "base/backoff.h"
#include "base/error.h"
#include "base/heap.h"
#include "device/wait.h"

sp_status sp__queue_device_init(sp_queue_device *device, const sp_device_vtable *vtable,
                                const sp_queue_device_options *options)
{
    device->base.vtable = vtable;
    device->options = *options;
    SP_TRY(sp__host_executor_start());
    SP_TRY(sp__queue_throttles_init(device));
    sp_mutex_init(&device->lock, SP_LOCK_QUEUE_DEVICE);
    const sp_status status = sp__queue_workers_start(device);
    if (status == SP_OK) return SP_OK;
    sp_mutex_deinit(&device->lock);
    sp__queue_throttles_deinit(device);
    return status;
}

static void queue_drain(sp_command_queue *queue)
{
    const sp_point last = {&queue->base.timeline, sp__command_queue_close(queue)};
    sp_backoff backoff = {0};
    /* Fails only without memory for this thread's record; the workers still drain the queue. */
    while (!sp__point_has_passed(last)) {
        if (sp__point_wait_passed(last, SP_NO_DEADLINE) != SP_OK) sp_backoff_turn(&backoff);
    }
    backoff = (sp_backoff){0};
    /* A helper that has completed the last submission may still fire waiters, which may post to the
     * host executor. Bounded: the helper is past its last command. */
    while (!SP_PLANTED(close_before_firing) && sp__queue_is_claimed(queue)) {
        sp_backoff_turn(&backoff);
    }
}

void sp__queue_device_stop(sp_dev *base)
{
    sp_queue_device *device = sp__queue_device(base);
    sp_mutex_lock(&device->lock);
    device->is_closed = true; /* no queue is published later; the lock orders earlier ones */
    sp_mutex_unlock(&device->lock);
    const uint32_t count = sp_load_relaxed(&device->queue_count);
    for (uint32_t i = 0; i < count; i++) {
        sp_command_queue *queue = sp_load_relaxed(&device->queues[i]);
        if (queue != NULL) queue_drain(queue);
    }
    /* A thread that unparked a queue of the device may still wake a worker. Bounded: it is past its
     * last wait. */
    sp_backoff backoff = {0};
    while (!SP_PLANTED(close_before_visitors) && sp_load_acquire(&device->visitors) != 0) {
        sp_backoff_turn(&backoff);
    }
    sp__queue_workers_stop(device);
}

void sp__queue_device_deinit(sp_queue_device *device)
{
    sp__queue_device_stop(&device->base);
    sp__device_deinit(&device->base);
    const uint32_t count = sp_load_relaxed(&device->queue_count);
    for (uint32_t i = 0; i < count; i++) {
        sp_command_queue *queue = sp_load_relaxed(&device->queues[i]);
        sp_store_relaxed(&device->queues[i], NULL);
        if (queue != NULL) sp__command_queue_destroy(&queue->base);
    }
    sp__queue_throttles_deinit(device);
    sp_mutex_deinit(&device->lock);
    sp_free(device->workers);
}
