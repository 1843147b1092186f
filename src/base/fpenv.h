/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point state under which every kernel runs: round to nearest, no flush to zero, all
 * exceptions masked. Kernels also run on callers' threads, whose state may differ; without this a
 * result would depend on the thread that computes it. */
#ifndef SP_BASE_FPENV_H
#define SP_BASE_FPENV_H

#include <stdint.h>

#if defined(__x86_64__)

typedef uint32_t sp_fpenv;

#define SP_FPENV_DEFAULT 0x1f80u /* MXCSR: exceptions masked, nearest, FTZ and DAZ off */
#define SP_FPENV_FLAGS 0x3fu     /* sticky exception flags: no influence on results */

/* Returns the previous state, for sp_fpenv_leave. */
static inline sp_fpenv sp_fpenv_enter(void)
{
    const uint32_t before = __builtin_ia32_stmxcsr();
    if ((before & ~SP_FPENV_FLAGS) != SP_FPENV_DEFAULT) __builtin_ia32_ldmxcsr(SP_FPENV_DEFAULT);
    return before;
}

static inline void sp_fpenv_leave(sp_fpenv before)
{
    if ((before & ~SP_FPENV_FLAGS) != SP_FPENV_DEFAULT) __builtin_ia32_ldmxcsr(before);
}

#elif defined(__aarch64__)

typedef uint64_t sp_fpenv;

static inline sp_fpenv sp_fpenv_enter(void)
{
    uint64_t before;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(before));
    if (before != 0) __asm__ __volatile__("msr fpcr, %0" : : "r"((uint64_t)0));
    return before;
}

static inline void sp_fpenv_leave(sp_fpenv before)
{
    if (before != 0) __asm__ __volatile__("msr fpcr, %0" : : "r"(before));
}

#else
#error "sp_fpenv: say how this processor sets its floating-point state"
#endif

#endif
