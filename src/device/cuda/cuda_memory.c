/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU, which the host cannot access, and pinned memory of the host. */
#include "base/error.h"
#include "base/size.h"
#include "device/cuda/cuda_device.h"

/* Of the GPU: the host cannot access it. */
static sp_status device_memory_new(uint64_t bytes, sp_memory *out)
{
    CUdeviceptr pointer = 0;
    SP_CUDA_TRY(cuMemAlloc, &pointer, bytes);
    out->address = (void *)(uintptr_t)pointer;
    return SP_OK;
}

/* Pinned host memory, mapped at the same address for the GPU. */
static sp_status pinned_memory_new(uint64_t bytes, sp_memory *out)
{
    SP_CUDA_TRY(cuMemHostAlloc, &out->host, bytes,
                CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    out->address = out->host;
    return SP_OK;
}

void sp__cuda_gate_close(sp_cuda_device *device)
{
    sp__cuda_enter(device);
    sp__gpu_gate_close(&device->gpu.gate);
}

void sp__cuda_gate_open(sp_cuda_device *device)
{
    sp__gpu_gate_open(&device->gpu.gate);
    sp__cuda_leave();
}

sp_status sp__cuda_memory_create(sp_dev *dev, uint64_t bytes, sp_memory *out)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    *out = (sp_memory){.device = dev, .bytes = bytes};
    sp__cuda_gate_close(device);
    const sp_status status = device_memory_new(bytes, out);
    sp__cuda_gate_open(device);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%s: %llu bytes: ", dev->limits.name, (unsigned long long)bytes);
}

void sp__cuda_memory_destroy(sp_memory *memory)
{
    sp_cuda_device *device = sp__cuda_device(memory->device);
    sp__cuda_gate_close(device);
    SP_CUDA(cuMemFree)((CUdeviceptr)(uintptr_t)memory->address);
    sp__cuda_gate_open(device);
    *memory = (sp_memory){0};
}

sp_status sp__cuda_staging_create(sp_dev *dev, uint64_t bytes, sp_memory *out)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    *out = (sp_memory){.device = dev, .bytes = bytes};
    sp__cuda_gate_close(device);
    const sp_status status = pinned_memory_new(bytes, out);
    sp__cuda_gate_open(device);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%llu bytes of pinned memory: ", (unsigned long long)bytes);
}

void sp__cuda_staging_destroy(sp_memory *memory)
{
    sp_cuda_device *device = sp__cuda_device(memory->device);
    sp__cuda_gate_close(device);
    SP_CUDA(cuMemFreeHost)(memory->host);
    sp__cuda_gate_open(device);
    *memory = (sp_memory){0};
}

static sp_status find_attribute(const void *data, int attribute, void *value)
{
    const CUresult result = SP_CUDA(cuPointerGetAttribute)(value, attribute, (uintptr_t)data);
    if (result == CUDA_SUCCESS) return SP_OK;
    if (result != CUDA_ERROR_INVALID_VALUE)
        return sp__cuda_check(result, "cuPointerGetAttribute", NULL);
    return sp__fail(SP_UNSUPPORTED,
                    "%p is not memory that the CUDA driver knows: pass device memory, or host "
                    "memory that is pinned (sp_host_alloc), or copy",
                    data);
}

/* The driver's allocation has all of the bytes. */
static sp_status check_allocation(const void *data, uint64_t bytes)
{
    CUdeviceptr start = 0;
    size_t size = 0;
    SP_TRY(find_attribute(data, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &start));
    SP_TRY(find_attribute(data, CU_POINTER_ATTRIBUTE_RANGE_SIZE, &size));
    if (sp_size_in_range((uintptr_t)data - start, bytes, size)) return SP_OK;
    return sp__fail(SP_INVALID, "%llu bytes at %p do not fit into their allocation of %zu bytes",
                    (unsigned long long)bytes, data, size);
}

static sp_status check_owner(const sp_dev *dev, const void *data)
{
    int ordinal = -1;
    SP_TRY(find_attribute(data, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &ordinal));
    if ((uint32_t)ordinal == dev->limits.ordinal) return SP_OK;
    return sp__fail(SP_INVALID, "%p is memory of cuda:%d, not of %s: copy it", data, ordinal,
                    dev->limits.name);
}

static sp_status memory_describe(sp_dev *dev, void *data, uint64_t bytes, sp_memory *out)
{
    unsigned int type = 0;
    SP_TRY(find_attribute(data, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &type));
    const bool is_host = type == CU_MEMORYTYPE_HOST;
    if (!is_host) SP_TRY(check_owner(dev, data));
    SP_TRY(check_allocation(data, bytes));
    *out = sp__memory_at_host(dev, data, bytes);
    if (!is_host) out->host = NULL;
    return SP_OK;
}

/* Managed memory counts as the GPU's. */
sp_status sp__cuda_memory_adopt(sp_dev *dev, void *data, uint64_t bytes, sp_memory *out)
{
    *out = (sp_memory){.device = dev, .bytes = bytes, .address = data};
    if (bytes == 0) return SP_OK;
    sp__cuda_enter(sp__cuda_device(dev));
    const sp_status status = memory_describe(dev, data, bytes, out);
    sp__cuda_leave();
    return status;
}

sp_status sp__cuda_host_register(sp_dev *dev, void *data, uint64_t bytes)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    sp__cuda_gate_close(device);
    const CUresult result = SP_CUDA(cuMemHostRegister)(
        data, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    sp__cuda_gate_open(device);
    return sp__cuda_check(result, "cuMemHostRegister", NULL);
}

void sp__cuda_host_unregister(sp_dev *dev, void *data)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    sp__cuda_gate_close(device);
    SP_CUDA(cuMemHostUnregister)(data);
    sp__cuda_gate_open(device);
}
