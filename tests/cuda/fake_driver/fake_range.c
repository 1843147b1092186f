/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of addresses and memory that is mapped there. Addresses without memory, or whose access
 * was not set, cannot be accessed, and a mapping that a kernel still uses is gone at once: both end
 * the test. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>
#include <sys/mman.h>

typedef struct address_range {
    struct address_range *next;
    CUdeviceptr address;
    size_t bytes;
} address_range;

/* Memory: of its handle until that is released, and of a mapping. */
typedef struct physical {
    CUcontext context;
    size_t bytes;
    bool has_handle, is_mapped;
} physical;

typedef struct mapping {
    struct mapping *next;
    CUdeviceptr address;
    physical *memory;
} mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static address_range *ranges;
static mapping *mappings;

static bool is_whole(size_t bytes)
{
    return bytes > 0 && bytes % FAKE_RANGE_UNIT == 0;
}

static void *pointer_of(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties,
                                       int option)
{
    FAKE_ENTER(cuMemGetAllocationGranularity);
    if (bytes == NULL || properties == NULL || option != CU_MEM_ALLOC_GRANULARITY_MINIMUM) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *bytes = FAKE_RANGE_UNIT;
    return CUDA_SUCCESS;
}

/* ---- ranges ---- */

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment,
                             CUdeviceptr wanted, unsigned long long flags)
{
    FAKE_CONTEXT(cuMemAddressReserve, context);
    (void)context;
    if (!is_whole(bytes) || alignment != 0 || wanted != 0 || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    void *made = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    address_range *range = malloc(sizeof *range);
    if (made == MAP_FAILED || range == NULL) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *range = (address_range){.address = (uintptr_t)made, .bytes = bytes};
    pthread_mutex_lock(&lock);
    range->next = ranges;
    ranges = range;
    pthread_mutex_unlock(&lock);
    fake_count(FAKE_ADDRESS_RANGE, 1);
    *address = range->address;
    return CUDA_SUCCESS;
}

static bool is_mapped_locked(CUdeviceptr address, size_t bytes)
{
    for (const mapping *it = mappings; it != NULL; it = it->next) {
        if (address < it->address + it->memory->bytes && it->address < address + bytes) return true;
    }
    return false;
}

static address_range *range_take_locked(CUdeviceptr address, size_t bytes)
{
    address_range **link = &ranges;
    while (*link != NULL && ((*link)->address != address || (*link)->bytes != bytes)) {
        link = &(*link)->next;
    }
    address_range *found = *link;
    if (found == NULL || is_mapped_locked(address, bytes)) return NULL;
    *link = found->next;
    return found;
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemAddressFree, context);
    pthread_mutex_lock(&lock);
    address_range *found = range_take_locked(address, bytes);
    pthread_mutex_unlock(&lock);
    if (found == NULL) return CUDA_ERROR_INVALID_VALUE;
    munmap(pointer_of(address), bytes);
    free(found);
    return fake_destroyed(FAKE_ADDRESS_RANGE, context);
}

/* ---- memory ---- */

static physical *physical_of(CUmemGenericAllocationHandle memory)
{
    return (physical *)(uintptr_t)memory;
}

static bool are_right(const CUmemAllocationProp *properties, CUcontext context)
{
    return properties != NULL && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
           properties->location.id == (int)(context - fake_contexts);
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *memory, size_t bytes,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    FAKE_CONTEXT(cuMemCreate, context);
    if (!is_whole(bytes) || !are_right(properties, context) || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    physical *made = malloc(sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (atomic_fetch_add(&context->bytes, bytes) + bytes > FAKE_MEMORY_BYTES) {
        atomic_fetch_sub(&context->bytes, bytes);
        free(made);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (physical){.context = context, .bytes = bytes, .has_handle = true};
    fake_count(FAKE_RANGE_MEMORY, 1);
    *memory = (uintptr_t)made;
    return CUDA_SUCCESS;
}

/* Frees memory that has neither a handle nor a mapping. */
static void physical_settle(physical *memory, bool is_used)
{
    if (is_used) return;
    atomic_fetch_sub(&memory->context->bytes, memory->bytes);
    fake_count(FAKE_RANGE_MEMORY, -1);
    free(memory);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle memory)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemRelease, context);
    physical *released = physical_of(memory);
    pthread_mutex_lock(&lock);
    const bool is_right = released->has_handle;
    const bool is_used = released->is_mapped;
    released->has_handle = false;
    pthread_mutex_unlock(&lock);
    if (!is_right) return CUDA_ERROR_INVALID_VALUE;
    physical_settle(released, is_used);
    return fake_failure(context);
}

/* ---- mappings ---- */

static bool is_reserved_locked(CUdeviceptr address, size_t bytes)
{
    for (const address_range *it = ranges; it != NULL; it = it->next) {
        const size_t offset = address - it->address;
        if (offset % FAKE_RANGE_UNIT == 0 && offset < it->bytes && bytes <= it->bytes - offset) {
            return true;
        }
    }
    return false;
}

CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                  CUmemGenericAllocationHandle memory, unsigned long long flags)
{
    FAKE_CONTEXT(cuMemMap, context);
    physical *mapped = physical_of(memory);
    if (offset != 0 || flags != 0 || mapped->context != context || mapped->bytes != bytes) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    mapping *made = malloc(sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (mapping){.address = address, .memory = mapped};
    pthread_mutex_lock(&lock);
    const bool is_right = is_reserved_locked(address, bytes) && !is_mapped_locked(address, bytes) &&
                          mapped->has_handle && !mapped->is_mapped;
    if (is_right) {
        made->next = mappings;
        mappings = made;
        mapped->is_mapped = true;
    }
    pthread_mutex_unlock(&lock);
    if (is_right) return CUDA_SUCCESS;
    free(made);
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
                        size_t count)
{
    FAKE_CONTEXT(cuMemSetAccess, context);
    if (access == NULL || count != 1 || access->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        access->location.id != (int)(context - fake_contexts) ||
        access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pthread_mutex_lock(&lock);
    const mapping *it = mappings;
    while (it != NULL && (it->address != address || it->memory->bytes != bytes)) it = it->next;
    pthread_mutex_unlock(&lock);
    if (it == NULL) return CUDA_ERROR_INVALID_VALUE;
    const int failed = mprotect(pointer_of(address), bytes, PROT_READ | PROT_WRITE);
    return failed == 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static mapping *mapping_take_locked(CUdeviceptr address, size_t bytes)
{
    mapping **link = &mappings;
    while (*link != NULL && ((*link)->address != address || (*link)->memory->bytes != bytes)) {
        link = &(*link)->next;
    }
    mapping *found = *link;
    if (found != NULL) *link = found->next;
    return found;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemUnmap, context);
    pthread_mutex_lock(&lock);
    mapping *found = mapping_take_locked(address, bytes);
    if (found != NULL) {
        /* Its bytes are lost, as those of the memory are. */
        const void *empty = mmap(pointer_of(address), bytes, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        if (empty == MAP_FAILED) abort();
        found->memory->is_mapped = false;
    }
    const bool is_used = found != NULL && found->memory->has_handle;
    pthread_mutex_unlock(&lock);
    if (found == NULL) return CUDA_ERROR_INVALID_VALUE;
    physical_settle(found->memory, is_used);
    free(found);
    return fake_failure(context);
}
