/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device_log.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/log.h"

void sp__log_opened(const sp_rt_device *device)
{
    const sp_device_limits *limits = &device->dev->limits;
    SP_LOG(SP_LOG_INFO, "device %s is open: %" PRIu64 " MiB of memory, %u streams, %u run slots",
           limits->name, limits->memory_bytes >> 20, device->pool.count, limits->run_slots);
}

static void log_stream(const sp_rt_device *device, uint32_t index, sp_queue *queue)
{
    sp_fault first;
    const uint32_t count = sp__timeline_unreported(&queue->timeline, &first);
    if (count == 0) return;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    (void)sp__fault_report(first);
    SP_LOG(SP_LOG_ERROR,
           "device %s: %u failed submissions of stream %u that no call has reported; "
           "the first: %s",
           device->dev->limits.name, count, index, sp_last_error());
    sp__error_put_back(&scope);
}

void sp__log_unreported(sp_rt_device *device)
{
    if (sp_exchange_relaxed(&device->is_unreported_logged, 1) != 0) return;
    for (uint32_t i = 0; i < device->pool.count; i++) {
        sp_queue *queue = sp__stream_queue_if_made(&device->pool.streams[i]);
        if (queue != NULL) log_stream(device, i, queue);
    }
}
