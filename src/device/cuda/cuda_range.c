/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses, and memory of the GPU in parts of them (virtual memory management of the
 * driver). A mapping keeps its memory: no handle of it is kept beside. */
#include "base/error.h"
#include "device/cuda/cuda_device.h"

static CUmemLocation location_of(const sp_cuda_device *device)
{
    return (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->ordinal};
}

static CUmemAllocationProp properties_of(const sp_cuda_device *device)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = location_of(device)};
}

sp_status sp__cuda_range_unit(const sp_cuda_device *device, uint64_t *out)
{
    const CUmemAllocationProp properties = properties_of(device);
    int has_ranges = 0;
    size_t unit = 0;
    SP_CUDA_TRY(cuDeviceGetAttribute, &has_ranges,
                CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device->ordinal);
    if (has_ranges != 0) {
        SP_CUDA_TRY(cuMemGetAllocationGranularity, &unit, &properties,
                    CU_MEM_ALLOC_GRANULARITY_MINIMUM);
    }
    *out = unit;
    return SP_OK;
}

sp_status sp__cuda_range_create(sp_dev *dev, uint64_t bytes, sp_memory *out)
{
    sp_cuda_device *device = sp__cuda_device(dev);
    CUdeviceptr address = 0;
    sp__cuda_gate_close(device);
    const CUresult result = SP_CUDA(cuMemAddressReserve)(&address, bytes, 0, 0, 0);
    sp__cuda_gate_open(device);
    SP_TRY(sp__cuda_check(result, "cuMemAddressReserve", NULL));
    *out = (sp_memory){.device = dev, .bytes = bytes, .address = (void *)(uintptr_t)address};
    return SP_OK;
}

static CUdeviceptr address_at(const sp_memory *range, uint64_t offset)
{
    return (CUdeviceptr)(uintptr_t)range->address + offset;
}

void sp__cuda_range_destroy(sp_memory *range)
{
    sp_cuda_device *device = sp__cuda_device(range->device);
    sp__cuda_gate_close(device);
    SP_CUDA(cuMemAddressFree)(address_at(range, 0), range->bytes);
    sp__cuda_gate_open(device);
    *range = (sp_memory){0};
}

static sp_status memory_map(const sp_cuda_device *device, CUdeviceptr address, uint64_t bytes,
                            CUmemGenericAllocationHandle memory)
{
    const CUmemAccessDesc access = {.location = location_of(device),
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    SP_CUDA_TRY(cuMemMap, address, bytes, 0, memory, 0);
    const sp_status status =
        sp__cuda_check(SP_CUDA(cuMemSetAccess)(address, bytes, &access, 1), "cuMemSetAccess", NULL);
    if (status != SP_OK) SP_CUDA(cuMemUnmap)(address, bytes);
    return status;
}

static sp_status memory_create_and_map(const sp_cuda_device *device, CUdeviceptr address,
                                       uint64_t bytes)
{
    const CUmemAllocationProp properties = properties_of(device);
    CUmemGenericAllocationHandle memory = 0;
    SP_CUDA_TRY(cuMemCreate, &memory, bytes, &properties, 0);
    const sp_status status = memory_map(device, address, bytes, memory);
    SP_CUDA(cuMemRelease)(memory); /* the mapping has it */
    return status;
}

sp_status sp__cuda_range_map(const sp_memory *range, uint64_t offset, uint64_t bytes)
{
    sp_cuda_device *device = sp__cuda_device(range->device);
    sp__cuda_gate_close(device);
    const sp_status status = memory_create_and_map(device, address_at(range, offset), bytes);
    sp__cuda_gate_open(device);
    if (status == SP_OK) return SP_OK;
    return sp__fail_prefix(status, "%s: %llu bytes: ", range->device->limits.name,
                           (unsigned long long)bytes);
}

void sp__cuda_range_unmap(const sp_memory *range, uint64_t offset, uint64_t bytes)
{
    sp_cuda_device *device = sp__cuda_device(range->device);
    sp__cuda_gate_close(device);
    SP_CUDA(cuMemUnmap)(address_at(range, offset), bytes);
    sp__cuda_gate_open(device);
}
