/* SPDX-License-Identifier: Apache-2.0 */
#include "support/malloc_count.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_OWN_MALLOC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_OWN_MALLOC 1
#endif
#endif

static sp_atomic_u64 allocation_count; /* relaxed: a count */

#if !defined(HAS_OWN_MALLOC)

static void count_one(void)
{
    sp_fetch_add_relaxed(&allocation_count, (uint64_t)1);
}

/* The C library names these. NOLINTBEGIN(readability-identifier-naming) */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *ptr, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
/* NOLINTEND(readability-identifier-naming) */

void *malloc(size_t bytes)
{
    count_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    count_one();
    return __libc_calloc(count, bytes);
}

void *realloc(void *ptr, size_t bytes)
{
    count_one();
    return __libc_realloc(ptr, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes)
{
    count_one();
    *out = __libc_memalign(alignment, bytes);
    return *out != NULL ? 0 : ENOMEM;
}

void *memalign(size_t alignment, size_t bytes)
{
    count_one();
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    count_one();
    return __libc_memalign(alignment, bytes);
}

/* The C library's own calls, for stacks and for large blocks of malloc, do not call this
 * function. */
void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    count_one();
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

#endif

bool malloc_is_counted(void)
{
#if defined(HAS_OWN_MALLOC)
    return false;
#else
    return true;
#endif
}

uint64_t malloc_count(void)
{
    return sp_load_relaxed(&allocation_count);
}

/* A barrier: the last thread to arrive reads the counter and releases the others. */
static void span_barrier(malloc_span *self, sp_atomic_u32 *arrived, sp_atomic_u32 *is_counted,
                         uint64_t *count)
{
    if (sp_fetch_add_acq_rel(arrived, 1) == self->threads - 1) {
        *count = malloc_count();
        sp_store_release(is_counted, 1);
    }
    while (sp_load_acquire(is_counted) == 0) sp_thread_yield();
}

void malloc_span_start(malloc_span *self)
{
    span_barrier(self, &self->started, &self->is_open, &self->before);
}

void malloc_span_end(malloc_span *self)
{
    span_barrier(self, &self->ended, &self->is_over, &self->after);
}
