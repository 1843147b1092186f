/* SPDX-License-Identifier: Apache-2.0 */
/* The system's allocator behind base/heap.h. */
#include "base/raw_heap.h"

#include <stdlib.h>

void *sp__raw_malloc(size_t bytes)
{
    return malloc(bytes);
}

void *sp__raw_realloc(void *ptr, size_t bytes)
{
    return realloc(ptr, bytes);
}

void *sp__raw_aligned_malloc(size_t alignment, size_t bytes)
{
    void *ptr = NULL;
    return posix_memalign(&ptr, alignment, bytes) == 0 ? ptr : NULL;
}

void sp__raw_free(void *ptr)
{
    free(ptr);
}
