/* SPDX-License-Identifier: Apache-2.0 */
/* All heap allocations of the library. Tests can make the n-th allocation fail. */
#ifndef SP_BASE_HEAP_H
#define SP_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when out of memory; a size of 0 returns a pointer that can be freed. */
void *sp_malloc(size_t bytes) __attribute__((malloc));
/* Zeroed; NULL also when count * bytes overflows. */
void *sp_calloc(size_t count, size_t bytes) __attribute__((malloc));
void *sp_realloc(void *ptr, size_t bytes);
/* Makes room for one more element in an array of `count`, by doubling a full one. Returns the
 * array, which may have moved, or NULL, with the old array unchanged. An array begins as NULL with
 * a capacity of 0. */
void *sp_grow(void *array, uint32_t count, uint32_t *capacity, size_t element_bytes);
/* `alignment` is a power of two; freed with sp_free. */
void *sp_aligned_malloc(size_t alignment, size_t bytes) __attribute__((malloc));
void sp_free(void *ptr);
/* A copy of `text`, or NULL. */
char *sp_strdup(const char *text);

/* Test hook: the allocation after `skip` others fails, once; UINT64_MAX turns it off. Applies to
 * all threads. */
void sp_heap_fail_after(uint64_t skip);
/* Test hook: whether the armed failure has happened. */
bool sp_heap_has_failed(void);
/* For other sources of memory (pages): counts one allocation; true if it must fail. */
bool sp_heap_must_fail(void);

#endif
