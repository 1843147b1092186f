/* SPDX-License-Identifier: Apache-2.0 */
/* Clang's thread-safety attributes. Clang 19 checks them (-Werror=thread-safety-analysis); they are
 * empty for gcc and for older clangs, which reject members as arguments in C. */
#ifndef SP_BASE_ANNOTATIONS_H
#define SP_BASE_ANNOTATIONS_H

#if defined(__clang__) && __clang_major__ >= 19
#define SP_ATTRIBUTE_(x) __attribute__((x))
#else
#define SP_ATTRIBUTE_(x)
#endif

#define SP_CAPABILITY(name) SP_ATTRIBUTE_(capability(name))
/* The macro adds the `&` that C needs: SP_GUARDED_BY(lock), SP_GUARDED_BY(owner->lock). */
#define SP_GUARDED_BY(lock) SP_ATTRIBUTE_(guarded_by(&lock))
/* On functions: the argument is the address of the lock. */
#define SP_REQUIRES(...) SP_ATTRIBUTE_(requires_capability(__VA_ARGS__))
#define SP_ACQUIRE(...) SP_ATTRIBUTE_(acquire_capability(__VA_ARGS__))
#define SP_RELEASE(...) SP_ATTRIBUTE_(release_capability(__VA_ARGS__))
#define SP_TRY_ACQUIRE(...) SP_ATTRIBUTE_(try_acquire_capability(__VA_ARGS__))
#define SP_NO_LOCK_ANALYSIS SP_ATTRIBUTE_(no_thread_safety_analysis)

#endif
