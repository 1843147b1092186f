/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a GPU, and its memory. */
#include "device/cuda/cuda.h"

#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_device.h"

#define QUEUE_BYTES ((uint64_t)16 << 20)
#define NAP_NS 1000000u
/* Concurrent runs: the driver's throughput grows up to about this many threads. */
#define RUN_SLOTS 32

/* ---- memory ---- */

/* Managed memory prefers the GPU; pages migrate to the host when it accesses them. So one address
 * is valid for both, and host access needs no explicit copy. */
static sp_status memory_alloc_managed(const sp_cuda_device *device, uint64_t bytes, void **address)
{
    CUdeviceptr pointer = 0;
    SP_CUDA_TRY(cuMemAllocManaged, &pointer, bytes, CU_MEM_ATTACH_GLOBAL);
    /* A hint, so its result is ignored. */
    SP_CUDA(cuMemAdvise)(pointer, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device->ordinal);
    *address = (void *)(uintptr_t)pointer;
    return SP_OK;
}

/* Pinned host memory, mapped at the same address for the GPU. */
static sp_status memory_alloc_mapped(uint64_t bytes, void **address)
{
    SP_CUDA_TRY(cuMemHostAlloc, address, bytes,
                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    return SP_OK;
}

/* The message of an error has no purpose yet: callers prefix it. */
static sp_status memory_new(sp_dev *dev, uint64_t bytes, bool is_managed, sp_memory *out)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    void *address = NULL;
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    const sp_status status = is_managed ? memory_alloc_managed(device, bytes, &address)
                                        : memory_alloc_mapped(bytes, &address);
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
    SP_TRY(status);
    *out = sp__memory_at_host(dev, address, bytes);
    return SP_OK;
}

static void memory_free(sp_memory *memory, bool is_managed)
{
    sp_cuda_device *device = sp__cuda_device(memory->device);
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
    if (is_managed) {
        SP_CUDA(cuMemFree)((CUdeviceptr)(uintptr_t)memory->address);
    } else {
        SP_CUDA(cuMemFreeHost)(memory->address);
    }
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
    *memory = (sp_memory){0};
}

static sp_status memory_create(sp_dev *dev, uint64_t bytes, sp_memory *out)
{
    const sp_status status = memory_new(dev, bytes, sp__cuda_device(dev)->is_managed, out);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%s: %llu bytes: ", dev->limits.name, (unsigned long long)bytes);
}

static void memory_destroy(sp_memory *memory)
{
    memory_free(memory, sp__cuda_device(memory->device)->is_managed);
}

static sp_status staging_create(sp_dev *dev, uint64_t bytes, sp_memory *out)
{
    const sp_status status = memory_new(dev, bytes, false, out);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%llu bytes of pinned memory: ", (unsigned long long)bytes);
}

static void staging_destroy(sp_memory *memory)
{
    memory_free(memory, false);
}

/* ---- life ---- */

/* Frees a device in reverse order of its opening, also after a failed device_open. */
static void device_free(sp_cuda_device *device)
{
    if (device->context != NULL) {
        sp__cuda_enter(device);
        sp__cuda_programs_close(&device->programs);
        sp__cuda_clock_close(device);
        sp__cuda_leave();
        SP_CUDA(cuDevicePrimaryCtxRelease)(device->ordinal);
    }
    sp__gpu_gate_deinit(&device->gpu.gate);
    sp_free(device);
}

static void cuda_close(sp_dev *dev)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    sp__gpu_device_stop(dev);
    sp__queue_device_deinit(&device->gpu.common);
    device_free(device);
}

static const sp_device_vtable cuda_vtable = {
    .kind = &sp__cuda_kind,
    .stop = sp__gpu_device_stop,
    .close = cuda_close,
    .memory_create = memory_create,
    .memory_destroy = memory_destroy,
    .staging_create = staging_create,
    .staging_destroy = staging_destroy,
    .queue_create = sp__command_queue_create,
    .queue_destroy = sp__command_queue_destroy,
    .queue_set_batching = sp__command_queue_set_batching,
    .queue_stats = sp__command_queue_stats,
    .submit = sp__queue_submit,
    .kick = sp__gpu_kick,
    .watch = sp__gpu_watch,
    .flush = sp__gpu_flush,
    .help = sp__gpu_help,
    .last_value = sp__queue_last_value,
    .each_wait = sp__queue_each_wait,
    .list_create = sp__cuda_list_create,
    .list_retain = sp__queue_list_retain,
    .list_release = sp__queue_list_release,
};

static sp_status device_describe(sp_cuda_device *device, uint32_t ordinal)
{
    sp_device_limits *limits = &device->gpu.common.base.limits;
    size_t bytes = 0;
    int is_managed = 0;
    SP_CUDA_TRY(cuDeviceTotalMem, &bytes, device->ordinal);
    SP_CUDA_TRY(cuDeviceGetAttribute, &is_managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
                device->ordinal);
    device->is_managed = is_managed != 0;
    *limits = (sp_device_limits){.memory_bytes = bytes, .width = RUN_SLOTS, .run_slots = RUN_SLOTS};
    limits->ordinal = ordinal;
    sp__device_kind_name(&sp__cuda_kind, ordinal, limits->name, sizeof limits->name);
    return SP_OK;
}

static sp_status device_open_context(sp_cuda_device *device)
{
    SP_CUDA_TRY(cuDevicePrimaryCtxRetain, &device->context, device->ordinal);
    sp__cuda_enter(device);
    sp_status status = sp__cuda_clock_open(device);
    if (status == SP_OK)
        status = sp__cuda_programs_open(&device->programs, &device->gpu.gate, device->ordinal);
    sp__cuda_leave();
    return status;
}

static sp_status device_open(sp_cuda_device *device, uint32_t ordinal)
{
    SP_CUDA_TRY(cuDeviceGet, &device->ordinal, (int)ordinal);
    SP_TRY(device_describe(device, ordinal));
    SP_TRY(device_open_context(device));
    const sp_queue_device_options queues = {
        .worker_count = 1,
        .queue_bytes = QUEUE_BYTES,
        .nap_ns = NAP_NS,
        .engine = &sp__cuda_engine,
    };
    device->gpu.driver = &sp__cuda_driver;
    return sp__gpu_device_init(&device->gpu, &cuda_vtable, &queues);
}

sp_status sp__cuda_open(uint32_t ordinal, sp_dev **out)
{
    int count = 0;
    SP_TRY(sp__cuda_api_open());
    SP_CUDA_TRY(cuDeviceGetCount, &count);
    if (ordinal >= (uint32_t)count) {
        return sp__fail(SP_NOT_FOUND, "there is no cuda:%u: the driver has %d GPUs", ordinal,
                        count);
    }
    sp_cuda_device *device = sp_aligned_malloc(SP_CACHE_LINE, sizeof *device);
    if (device == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to open cuda:%u", ordinal);
    *device = (sp_cuda_device){0};
    sp__gpu_gate_init(&device->gpu.gate);
    const sp_status status = device_open(device, ordinal);
    if (status != SP_OK) {
        device_free(device);
        return status;
    }
    *out = &device->gpu.common.base;
    return SP_OK;
}
