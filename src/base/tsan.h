/* SPDX-License-Identifier: Apache-2.0 */
/* Reports the library's synchronisation to a user's ThreadSanitizer. A program built with
 * -fsanitize=thread may be linked with a library that is not; ThreadSanitizer then sees the user's
 * accesses, and those of malloc, free, memcpy and the like that the library calls, but none of the
 * library's atomics. Each place where the library passes memory or control from one thread to
 * another therefore makes the pair of calls below: a release before the atomic operation that
 * publishes, and an acquire after the operation that observes it, both on the atomic's address.
 *
 * The two functions are those of <sanitizer/tsan_interface.h>, in gcc's and clang's run-time
 * libraries. They are weak: without ThreadSanitizer a call is one predicted branch on a pointer. If
 * the library itself is instrumented, by ThreadSanitizer or for the controlled scheduler, the
 * atomics suffice and these calls are empty. */
#ifndef SP_BASE_TSAN_H
#define SP_BASE_TSAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/announce.h"
#include "base/macros.h"

#if defined(SP_HAS_TSAN) || defined(SP_SCHED)
static inline void sp_tsan_release(const volatile void *address)
{
    (void)address;
}
static inline void sp_tsan_acquire(const volatile void *address)
{
    (void)address;
}
#else
/* NULL without ThreadSanitizer. Variables, since gcc loses the expectation below for the address of
 * a weak function; hidden, so that they are read without the global offset table. */
extern void (*const sp__tsan_release_call)(void *address) SP_HIDDEN;
extern void (*const sp__tsan_acquire_call)(void *address) SP_HIDDEN;

/* Everything the calling thread did so far happens before what follows an acquire of the address.
 */
static inline void sp_tsan_release(const volatile void *address)
{
    if (SP_UNLIKELY(sp__tsan_release_call != NULL)) {
        sp__tsan_release_call((void *)(uintptr_t)address);
    }
}

static inline void sp_tsan_acquire(const volatile void *address)
{
    if (SP_UNLIKELY(sp__tsan_acquire_call != NULL)) {
        sp__tsan_acquire_call((void *)(uintptr_t)address);
    }
}
#endif

#endif
