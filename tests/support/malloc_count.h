/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the allocating calls of the whole process: a program linked with malloc_count.c replaces
 * the C library's malloc. */
#ifndef SP_TESTS_SUPPORT_MALLOC_COUNT_H
#define SP_TESTS_SUPPORT_MALLOC_COUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/* False in builds whose sanitizer replaces malloc: nothing is counted there. */
bool malloc_is_counted(void);
uint64_t malloc_count(void);

/* Counts the allocations of `threads` threads between a start and an end that each thread passes
 * once. The last thread at the start and the last at the end read the counter, while all others
 * wait outside of the section and allocate nothing. */
typedef struct malloc_span {
    uint32_t threads;
    sp_atomic_u32 started, ended;
    sp_atomic_u32 is_open, is_over;
    uint64_t before, after;
} malloc_span;

void malloc_span_start(malloc_span *self);
void malloc_span_end(malloc_span *self);

#endif
