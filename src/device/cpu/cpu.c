/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu device: host memory, host kernels, and the software queues with workers and helpers. */
#include "device/cpu/cpu.h"

#include <stdio.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/soft/soft.h"
#include "device/soft/soft_memory.h"

#define DEFAULT_QUEUE_BYTES ((uint64_t)16 << 20)
#define NAP_NS 1000000u

static void cpu_close(sp_dev *base)
{
    sp_soft_device *device = sp__soft_device(base);
    sp__soft_device_deinit(device);
    sp_free(device);
}

static const sp_device_vtable cpu_vtable = {
    SP_SOFT_VTABLE,
    .kind = "cpu",
    .close = cpu_close,
    .memory_create = sp__soft_memory_create,
    .memory_destroy = sp__soft_memory_destroy,
};

sp_status sp__cpu_open(const sp_cpu_options *options, sp_dev **out)
{
    const uint32_t cores = sp_thread_core_count();
    uint32_t workers = options->worker_count > 0 ? options->worker_count : cores;
    if (workers > SP_SOFT_WORKERS) workers = SP_SOFT_WORKERS;
    sp_soft_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    if (device == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to open the cpu device");
    *device = (sp_soft_device){0};
    device->base.limits = (sp_device_limits){
        .memory_bytes = sp__soft_memory_total(), .width = workers, .run_slots = workers};
    snprintf(device->base.limits.name, sizeof device->base.limits.name, "cpu");
    const sp_soft_options soft = {
        .worker_count = workers,
        .can_help = true,
        .queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES,
        .max_in_flight = options->max_in_flight,
        .nap_ns = NAP_NS,
    };
    const sp_status status = sp__soft_device_init(device, &cpu_vtable, &soft);
    if (status != SP_OK) {
        sp_free(device);
        return status;
    }
    *out = &device->base;
    return SP_OK;
}
