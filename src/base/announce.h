/* SPDX-License-Identifier: Apache-2.0 */
/* Announces to ThreadSanitizer, or to the controlled scheduler, the memory that a command will
 * access. Kernels are not instrumented (wide vector accesses never are, and scalar instrumentation
 * is far too slow), so a dispatch announces its bindings as a whole. */
#ifndef SP_BASE_ANNOUNCE_H
#define SP_BASE_ANNOUNCE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_THREAD__)
#define SP_HAS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SP_HAS_TSAN 1
#endif
#endif

#if defined(SP_HAS_TSAN)
#define SP_NO_TSAN __attribute__((no_sanitize("thread")))
/* NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): TSan's names */
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
/* NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming) */
static inline void sp_announce_read(const void *address, uint64_t bytes)
{
    __tsan_read_range((void *)(uintptr_t)address, (size_t)bytes);
}
static inline void sp_announce_write(void *address, uint64_t bytes)
{
    __tsan_write_range(address, (size_t)bytes);
}
#else
#define SP_NO_TSAN
static inline void sp_announce_read(const void *address, uint64_t bytes)
{
    (void)address, (void)bytes;
}
static inline void sp_announce_write(void *address, uint64_t bytes)
{
    (void)address, (void)bytes;
}
#endif

#endif
