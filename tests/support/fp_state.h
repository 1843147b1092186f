/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point state of the calling thread, for tests of what callers leave in it. */
#ifndef SP_TESTS_SUPPORT_FP_STATE_H
#define SP_TESTS_SUPPORT_FP_STATE_H

#include "base/fpenv.h"

#if defined(__x86_64__)

/* Flush to zero, subnormal operands are zero, round down. */
#define FP_STATE_STRANGE (SP_FPENV_DEFAULT | 0x8000u | 0x40u | 0x2000u)
/* Of what an operation leaves behind. */
#define FP_STATE_FLAGS SP_FPENV_FLAGS

static inline sp_fpenv fp_state_read(void)
{
    return __builtin_ia32_stmxcsr();
}

static inline void fp_state_write(sp_fpenv state)
{
    __builtin_ia32_ldmxcsr(state);
}

#elif defined(__aarch64__)

/* Every NaN is the default one, flush to zero, round down. */
#define FP_STATE_STRANGE (UINT64_C(1) << 25 | UINT64_C(1) << 24 | UINT64_C(1) << 23)
#define FP_STATE_FLAGS UINT64_C(0) /* in a register of their own */

static inline sp_fpenv fp_state_read(void)
{
    uint64_t state;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(state));
    return state;
}

static inline void fp_state_write(sp_fpenv state)
{
    __asm__ __volatile__("msr fpcr, %0" : : "r"(state));
}

#endif

#endif
