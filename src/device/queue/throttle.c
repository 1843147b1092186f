/* SPDX-License-Identifier: Apache-2.0 */
/* Throttles: limit the number of kernels with a quirk that run at once. FIFO: a queue without a
 * permit is parked, and a finishing command passes its permit to the oldest parked queue, so the
 * number of running commands never exceeds the limit. */
#include "device/queue/queue.h"

#include "base/error.h"
#include "base/heap.h"

sp_status sp__queue_throttles_init(sp_queue_device *device)
{
    const uint32_t count = device->base.limits.quirk_count;
    if (count == 0) return SP_OK;
    sp_throttle *throttles = sp_calloc(count, sizeof *throttles);
    if (throttles == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for %u quirks", count);
    for (uint32_t i = 0; i < count; i++) {
        sp_throttle *throttle = &throttles[i];
        sp_mutex_init(&throttle->lock, SP_LOCK_THROTTLE);
        throttle->limit = sp__quirk_limit(&device->base.limits.quirks[i]);
        sp_mutex_lock(&throttle->lock);
        throttle->end = &throttle->first;
        sp_mutex_unlock(&throttle->lock);
    }
    device->throttles = throttles;
    return SP_OK;
}

void sp__queue_throttles_deinit(sp_queue_device *device)
{
    for (uint32_t i = 0; i < device->base.limits.quirk_count && device->throttles != NULL; i++) {
        sp_mutex_deinit(&device->throttles[i].lock);
    }
    sp_free(device->throttles);
    device->throttles = NULL;
}

bool sp__queue_throttle_enter(sp_command_queue *queue, uint32_t quirk)
{
    sp_throttle *throttle = &sp__queue_device_of(queue)->throttles[quirk - 1];
    sp_mutex_lock(&throttle->lock);
    const bool is_in = throttle->limit == 0 || throttle->running < throttle->limit;
    if (is_in) {
        throttle->running++;
    } else {
        /* Parked before it is in the list. Relaxed: it is removed from the list under this lock. */
        sp_store_relaxed(&queue->parked_on, NULL);
        queue->next_throttled = NULL;
        sp_fetch_add_relaxed(&queue->word, (uint64_t)(SP_PARKED - SP_RUNNING));
        *throttle->end = queue;
        throttle->end = &queue->next_throttled;
    }
    sp_mutex_unlock(&throttle->lock);
    return is_in;
}

void sp__queue_throttle_leave(sp_queue_device *device, uint32_t quirk)
{
    sp_throttle *throttle = &device->throttles[quirk - 1];
    sp_mutex_lock(&throttle->lock);
    sp_command_queue *next = SP_PLANTED(permit_is_lost) ? NULL : throttle->first;
    if (next != NULL) {
        throttle->first = next->next_throttled;
        if (throttle->first == NULL) throttle->end = &throttle->first;
    } else {
        throttle->running--;
    }
    sp_mutex_unlock(&throttle->lock);
    if (next == NULL) return;
    next->cursor.has_permit = true; /* published by the unpark */
    sp__queue_unpark(next);
}
