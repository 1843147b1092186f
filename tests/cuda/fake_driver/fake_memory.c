/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of all kinds: host memory, and a list of allocations. primitive: see fake.h. */
#include "fake.h"

#include <stdlib.h>

typedef struct allocation {
    struct allocation *next;
    void *address;
    uint64_t bytes;
    CUcontext context;
    fake_cuda_object kind;
} allocation;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static allocation *allocations;

static CUresult allocation_create(CUcontext context, fake_cuda_object kind, size_t bytes,
                                  void **out)
{
    if (out == NULL || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (atomic_fetch_add(&context->bytes, bytes) + bytes > FAKE_MEMORY_BYTES) {
        atomic_fetch_sub(&context->bytes, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation *made = malloc(sizeof *made);
    void *address = NULL;
    if (made == NULL || posix_memalign(&address, 512, bytes) != 0) {
        free(made);
        atomic_fetch_sub(&context->bytes, bytes);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *made = (allocation){.address = address, .bytes = bytes, .context = context, .kind = kind};
    pthread_mutex_lock(&lock);
    made->next = allocations;
    allocations = made;
    pthread_mutex_unlock(&lock);
    fake_count(kind, 1);
    *out = address;
    return CUDA_SUCCESS;
}

/* Removes the allocation that starts at the address from the list. */
static allocation *allocation_take(const void *address, bool is_pinned)
{
    pthread_mutex_lock(&lock);
    allocation **link = &allocations;
    while (*link != NULL &&
           ((*link)->address != address || ((*link)->kind == FAKE_PINNED_MEMORY) != is_pinned)) {
        link = &(*link)->next;
    }
    allocation *found = *link;
    if (found != NULL) *link = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static CUresult allocation_release(CUcontext context, const void *address, bool is_pinned)
{
    allocation *found = address != NULL ? allocation_take(address, is_pinned) : NULL;
    if (found == NULL) return CUDA_ERROR_INVALID_VALUE;
    atomic_fetch_sub(&found->context->bytes, found->bytes);
    const fake_cuda_object kind = found->kind;
    free(found->address);
    free(found);
    return fake_destroyed(kind, context);
}

static bool is_managed(CUdeviceptr address, size_t bytes)
{
    bool is_found = false;
    pthread_mutex_lock(&lock);
    for (const allocation *it = allocations; it != NULL && !is_found; it = it->next) {
        const uint64_t offset = address - (uintptr_t)it->address;
        is_found =
            it->kind == FAKE_MANAGED_MEMORY && offset < it->bytes && bytes <= it->bytes - offset;
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags)
{
    FAKE_CONTEXT(cuMemAllocManaged, context);
    if (flags != CU_MEM_ATTACH_GLOBAL) return CUDA_ERROR_INVALID_VALUE;
    void *made = NULL;
    FAKE_TRY(allocation_create(context, FAKE_MANAGED_MEMORY, bytes, &made));
    *address = (uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)
{
    FAKE_CONTEXT(cuMemAlloc, context);
    void *made = NULL;
    FAKE_TRY(allocation_create(context, FAKE_DEVICE_MEMORY, bytes, &made));
    *address = (uintptr_t)made;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
    FAKE_CONTEXT(cuMemHostAlloc, context);
    if ((flags & ~(unsigned int)(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocation_create(context, FAKE_PINNED_MEMORY, bytes, address);
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemFree, context);
    return allocation_release(context, (const void *)(uintptr_t)address, false);
}

CUresult cuMemFreeHost(void *address)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemFreeHost, context);
    return allocation_release(context, address, true);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, int advice, CUdevice device)
{
    FAKE_CONTEXT(cuMemAdvise, context);
    if (advice < 1 || advice > 6 || (device != -1 && !fake_is_device(device))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return is_managed(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
