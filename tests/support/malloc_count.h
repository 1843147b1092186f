/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the calls of the whole process that allocate: a program that is linked with malloc_count.c
 * has its own malloc in front of the C library's. */
#ifndef SP_TESTS_SUPPORT_MALLOC_COUNT_H
#define SP_TESTS_SUPPORT_MALLOC_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/* False in builds whose sanitizer has its own malloc: there is nothing to see then. */
bool malloc_is_counted(void);
uint64_t malloc_count(void);

/* What `threads` threads allocate between two places that each of them passes once. The last one to
 * come to the start and the last one to come to the end read the counter, while nobody else is
 * between the places or may allocate; all wait for that. */
typedef struct malloc_span {
    uint32_t threads;
    sp_atomic_u32 started, ended;
    sp_atomic_u32 is_open, is_over;
    uint64_t before, after;
} malloc_span;

void malloc_span_start(malloc_span *self);
void malloc_span_end(malloc_span *self);

#endif
