/* SPDX-License-Identifier: Apache-2.0 */
/* Small macros that every layer uses. No code. */
#ifndef SP_BASE_MACROS_H
#define SP_BASE_MACROS_H

#include <stddef.h>
#include <stdint.h>

#define SP_LIKELY(x) __builtin_expect(!!(x), 1)
#define SP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SP_NOINLINE __attribute__((noinline))
/* One function for all constant arguments. */
#if defined(__clang__)
#define SP_NOCLONE
#else
#define SP_NOCLONE __attribute__((noclone))
#endif
/* A call whose result is ignored is a warning. */
#define SP_NODISCARD __attribute__((warn_unused_result))
/* A variable that is read without the global offset table; SP_SHARED_TESTS lets tests link it. */
#if defined(SP_SHARED_TESTS)
#define SP_HIDDEN
#else
#define SP_HIDDEN __attribute__((visibility("hidden")))
#endif
#define SP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define SP_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define SP_CONTAINER_OF(ptr, type, member)                                                         \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Fields with different writers are on different cache lines; two lines, since processors fetch
 * lines of 64 bytes in pairs, and some have lines of 128. */
#define SP_CACHE_LINE 128
#define SP_CACHE_ALIGNED _Alignas(SP_CACHE_LINE)

/* Returns the status of `expr` unless it is SP_OK. Only where nothing is held. */
#define SP_TRY(expr)                                                                               \
    do {                                                                                           \
        const sp_status sp_try_status_ = (expr);                                                   \
        if (SP_UNLIKELY(sp_try_status_ != SP_OK)) return sp_try_status_;                           \
    } while (0)

/* A planted bug proves that the check that guards a line can fail. A build with SP_PLANTS has all
 * of them: SP_PLANTED(name) is 1 if the variable STREAMPOOL_PLANT, or --plant of sched_tests, names
 * it. In all other builds it is a constant 0. */
#if defined(SP_PLANTS)
int sp__is_planted(const char *name);
#define SP_PLANTED(name) sp__is_planted(#name)
#else
#define SP_PLANTED(name) 0
#endif

#endif
