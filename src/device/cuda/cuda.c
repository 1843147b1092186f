/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a GPU. */
#include "device/cuda/cuda.h"

#include "base/error.h"
#include "base/heap.h"
#include "device/cuda/cuda_device.h"

#define QUEUE_BYTES ((uint64_t)16 << 20)
#define NAP_NS 1000000u
/* Concurrent runs: the driver's throughput grows up to about this many threads. */
#define RUN_SLOTS 32

/* Frees a device in reverse order of its opening, also after a failed device_open. */
static void device_free(sp_cuda_device *device)
{
    sp__cuda_words_deinit(device);
    if (device->context != NULL) {
        sp__cuda_enter(device);
        sp__cuda_interop_close(device);
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
    .memory_create = sp__cuda_memory_create,
    .memory_destroy = sp__cuda_memory_destroy,
    .memory_adopt = sp__cuda_memory_adopt,
    .staging_create = sp__cuda_staging_create,
    .staging_destroy = sp__cuda_staging_destroy,
    .range_create = sp__cuda_range_create,
    .range_destroy = sp__cuda_range_destroy,
    .range_map = sp__cuda_range_map,
    .range_unmap = sp__cuda_range_unmap,
    .reaches = sp__cuda_reaches,
    .host_register = sp__cuda_host_register,
    .host_unregister = sp__cuda_host_unregister,
    .queue_create = sp__command_queue_create,
    .queue_destroy = sp__command_queue_destroy,
    .queue_set_batching = sp__command_queue_set_batching,
    .queue_stats = sp__command_queue_stats,
    .queue_native = sp__cuda_queue_native,
    .queue_follow = sp__cuda_queue_follow,
    .native_follow = sp__cuda_native_follow,
    .native_wait = sp__cuda_native_wait,
    .submit = sp__queue_submit,
    .kick = sp__gpu_kick,
    .watch = sp__gpu_watch,
    .flush = sp__gpu_flush,
    .help = sp__gpu_help,
    .is_issued = sp__gpu_is_issued,
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
    int major = 0;
    SP_CUDA_TRY(cuDeviceTotalMem, &bytes, device->ordinal);
    SP_CUDA_TRY(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                device->ordinal);
    *limits = (sp_device_limits){.memory_bytes = bytes, .width = RUN_SLOTS, .run_slots = RUN_SLOTS};
    limits->ordinal = ordinal;
    limits->has_tensor_cores = major >= 8;
    SP_TRY(sp__cuda_range_unit(device, &limits->range_unit));
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
    sp__cuda_words_init(&device->words);
    const sp_status status = device_open(device, ordinal);
    if (status != SP_OK) {
        device_free(device);
        return status;
    }
    *out = &device->gpu.common.base;
    return SP_OK;
}
