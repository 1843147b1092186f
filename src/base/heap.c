/* SPDX-License-Identifier: Apache-2.0 */
/* Allocation with an injected failure for tests, which costs one relaxed load when off. */
#include "base/heap.h"

#include <string.h>

#include "base/atomic.h"
#include "base/macros.h"
#include "base/raw_heap.h"

/* Allocations before the one that fails; negative after the failure, INT64_MAX when off. Written by
 * tests, decremented by every allocating thread; publishes nothing. */
static sp_atomic_i64 countdown = {INT64_MAX};

bool sp_heap_must_fail(void)
{
    if (SP_LIKELY(sp_load_relaxed(&countdown) == INT64_MAX)) return false;
    return sp_fetch_sub_relaxed(&countdown, 1) == 0;
}

void sp_heap_fail_after(uint64_t skip)
{
    sp_store_relaxed(&countdown, skip >= INT64_MAX ? INT64_MAX : (int64_t)skip);
}

bool sp_heap_has_failed(void)
{
    return sp_load_relaxed(&countdown) < 0;
}

void *sp_malloc(size_t bytes)
{
    return sp_heap_must_fail() ? NULL : sp__raw_malloc(bytes > 0 ? bytes : 1);
}

void *sp_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) return NULL;
    void *ptr = sp_malloc(total);
    if (ptr != NULL) memset(ptr, 0, total);
    return ptr;
}

void *sp_realloc(void *ptr, size_t bytes)
{
    return sp_heap_must_fail() ? NULL : sp__raw_realloc(ptr, bytes > 0 ? bytes : 1);
}

void *sp_grow(void *array, uint32_t count, uint32_t *capacity, size_t element_bytes)
{
    if (count < *capacity) return array;
    const uint32_t larger = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = larger > *capacity ? sp_realloc(array, larger * element_bytes) : NULL;
    if (grown != NULL) *capacity = larger;
    return grown;
}

void *sp_aligned_malloc(size_t alignment, size_t bytes)
{
    return sp_heap_must_fail() ? NULL : sp__raw_aligned_malloc(alignment, bytes > 0 ? bytes : 1);
}

void sp_free(void *ptr)
{
    if (ptr != NULL) sp__raw_free(ptr);
}

char *sp_strdup(const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = sp_malloc(bytes);
    if (copy != NULL) memcpy(copy, text, bytes);
    return copy;
}
