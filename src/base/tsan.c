/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tsan.h"

#if !defined(SP_HAS_TSAN) && !defined(SP_SCHED)
/* NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): TSan's names */
void __tsan_release(void *address) __attribute__((weak));
void __tsan_acquire(void *address) __attribute__((weak));

void (*const sp__tsan_release_call)(void *) = __tsan_release;
void (*const sp__tsan_acquire_call)(void *) = __tsan_acquire;
/* NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming) */
#endif
