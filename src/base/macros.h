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
#define SP_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define SP_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define SP_CONTAINER_OF(ptr, type, member)                                                         \
    ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* Fields with different writers are on different cache lines. */
#define SP_CACHE_LINE 64
#define SP_CACHE_ALIGNED _Alignas(SP_CACHE_LINE)

/* Returns the status of `expr` unless it is SP_OK. Only where nothing is held. */
#define SP_TRY(expr)                                                                               \
    do {                                                                                           \
        const sp_status sp_try_status_ = (expr);                                                   \
        if (SP_UNLIKELY(sp_try_status_ != SP_OK)) return sp_try_status_;                           \
    } while (0)

/* SP_PLANTED(name) is 1 in a build configured with -DSP_PLANT=name, which defines SP_PLANT_name as
 * 1, and a constant 0 in all others; the controlled scheduler's build has all planted bugs, and
 * sched_tests --plant enables one. A planted bug proves that the check that guards a line can fail.
 */
#if defined(SP_SCHED)
int sp__sched_is_planted(const char *name);
#define SP_PLANTED(name) sp__sched_is_planted(#name)
#else
#define SP_PLANTED(name) SP_PLANTED_VALUE_(SP_PLANT_##name)
#endif
#define SP_PLANTED_VALUE_(value) SP_PLANTED_PASTE_(value)
#define SP_PLANTED_PASTE_(value) SP_PLANTED_SPLIT_(SP_PLANTED_SHIFT_##value)
#define SP_PLANTED_SPLIT_(shift_or_junk) SP_PLANTED_PICK_(shift_or_junk 1, 0, 0)
#define SP_PLANTED_SHIFT_1 0,
#define SP_PLANTED_PICK_(junk, picked, ...) picked

#endif
