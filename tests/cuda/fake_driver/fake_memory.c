/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of all kinds: host memory, and a list of allocations; registered memory is the caller's.
 * primitive: see fake.h. */
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

static void allocation_add(allocation *made)
{
    pthread_mutex_lock(&lock);
    made->next = allocations;
    allocations = made;
    pthread_mutex_unlock(&lock);
    fake_count(made->kind, 1);
}

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
    allocation_add(made);
    *out = address;
    return CUDA_SUCCESS;
}

/* Removes the allocation of the kind that starts at the address from the list. */
static allocation *allocation_take(const void *address, fake_cuda_object kind)
{
    pthread_mutex_lock(&lock);
    allocation **link = &allocations;
    while (*link != NULL && ((*link)->address != address || (*link)->kind != kind)) {
        link = &(*link)->next;
    }
    allocation *found = *link;
    if (found != NULL) *link = found->next;
    pthread_mutex_unlock(&lock);
    return found;
}

static CUresult allocation_release(CUcontext context, const void *address, fake_cuda_object kind)
{
    allocation *found = address != NULL ? allocation_take(address, kind) : NULL;
    if (found == NULL) return CUDA_ERROR_INVALID_VALUE;
    if (kind != FAKE_REGISTERED_MEMORY) {
        atomic_fetch_sub(&found->context->bytes, found->bytes);
        free(found->address);
    }
    free(found);
    return fake_destroyed(kind, context);
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
    return allocation_release(context, (const void *)(uintptr_t)address, FAKE_DEVICE_MEMORY);
}

CUresult cuMemFreeHost(void *address)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemFreeHost, context);
    return allocation_release(context, address, FAKE_PINNED_MEMORY);
}

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
    FAKE_CONTEXT(cuMemHostRegister, context);
    if (address == NULL || bytes == 0 || (flags & ~3u) != 0) return CUDA_ERROR_INVALID_VALUE;
    allocation *made = malloc(sizeof *made);
    if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    *made = (allocation){
        .address = address, .bytes = bytes, .context = context, .kind = FAKE_REGISTERED_MEMORY};
    allocation_add(made);
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *address)
{
    FAKE_CONTEXT_TO_DESTROY(cuMemHostUnregister, context);
    return allocation_release(context, address, FAKE_REGISTERED_MEMORY);
}

static CUresult attribute_of(const allocation *it, int attribute, void *value)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned int *)value =
            it->kind == FAKE_DEVICE_MEMORY ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)value = (int)(it->context - fake_contexts);
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)value = (uintptr_t)it->address;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)value = it->bytes;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address)
{
    FAKE_CONTEXT(cuPointerGetAttribute, context);
    (void)context;
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    if (value == NULL) return result;
    pthread_mutex_lock(&lock);
    for (const allocation *it = allocations; it != NULL; it = it->next) {
        if (address - (uintptr_t)it->address >= it->bytes) continue;
        result = attribute_of(it, attribute, value);
        break;
    }
    pthread_mutex_unlock(&lock);
    return result;
}
