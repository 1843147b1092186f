/* SPDX-License-Identifier: Apache-2.0 */
/* Heap of a back end. Called by base/heap.c only. */
#ifndef SP_BASE_RAW_HEAP_H
#define SP_BASE_RAW_HEAP_H

#include <stddef.h>

void *sp__raw_malloc(size_t bytes) __attribute__((malloc));
void *sp__raw_realloc(void *ptr, size_t bytes);
void *sp__raw_aligned_malloc(size_t alignment, size_t bytes) __attribute__((malloc));
void sp__raw_free(void *ptr);

#endif
