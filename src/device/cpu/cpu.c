/* SPDX-License-Identifier: Apache-2.0 */
/* The cpu device: host memory, host kernels, and command queues with workers and helpers. */
#include "device/cpu/cpu.h"

#include <streampool/dlpack.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/thread.h"
#include "device/queue/engine.h"
#include "device/queue/page_memory.h"

#define DEFAULT_QUEUE_BYTES ((uint64_t)16 << 20)
#define NAP_NS 1000000u
/* Below this, threads that share a dispatch wait for each other and for each other's caches longer
 * than they save (docs/decisions/0059-short-dispatches.md). */
#define SHARE_NS 15000u
/* The same where a worker spins already (docs/decisions/0075-very-short-dispatches.md). */
#define READY_NS 3000u
/* The thread that a slot was left for may sleep: another one keeps the core busy until it is awake.
 */
#define SLOTS_PER_WORKER 2u

static sp_status cpu_open_kind(const sp_device_open_options *options, sp_dev **out)
{
    return sp__cpu_open(&(sp_cpu_options){.worker_count = options->worker_count}, out);
}

const sp_device_kind sp__cpu_kind = {
    .name = "cpu",
    .numbering = SP_DEVICE_SINGLE,
    .kernel_form = SP_KERNEL_FORM_HOST,
    .dlpack_type = SP_DLPACK_CPU,
    .is_fallback = true,
    .open = cpu_open_kind,
};

static void cpu_close(sp_dev *base)
{
    sp_queue_device *device = sp__queue_device(base);
    sp__queue_device_deinit(device);
    sp_free(device);
}

static const sp_device_vtable cpu_vtable = {
    SP_QUEUE_VTABLE,
    .submit_and_run = sp__queue_submit_and_run,
    .kind = &sp__cpu_kind,
    .close = cpu_close,
    .memory_create = sp__page_memory_create,
    .memory_destroy = sp__page_memory_destroy,
};

sp_status sp__cpu_open(const sp_cpu_options *options, sp_dev **out)
{
    const uint32_t cores = sp_thread_core_count();
    uint32_t workers = options->worker_count > 0 ? options->worker_count : cores;
    if (workers > SP_DEVICE_WORKERS) workers = SP_DEVICE_WORKERS;
    sp_queue_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    if (device == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to open the cpu device");
    *device = (sp_queue_device){0};
    device->base.limits = (sp_device_limits){.memory_bytes = sp__page_memory_total(),
                                             .width = workers,
                                             .run_slots = SLOTS_PER_WORKER * workers};
    sp__device_kind_name(&sp__cpu_kind, 0, device->base.limits.name,
                         sizeof device->base.limits.name);
    const sp_queue_device_options queues = {
        .worker_count = workers,
        .engine = &sp__host_engine,
        .can_help = true,
        .queue_bytes = options->queue_bytes > 0 ? options->queue_bytes : DEFAULT_QUEUE_BYTES,
        .max_in_flight = options->max_in_flight,
        .share_ns = SHARE_NS,
        .ready_ns = READY_NS,
        .nap_ns = NAP_NS,
    };
    const sp_status status = sp__queue_device_init(device, &cpu_vtable, &queues);
    if (status != SP_OK) {
        sp_free(device);
        return status;
    }
    *out = &device->base;
    return SP_OK;
}
