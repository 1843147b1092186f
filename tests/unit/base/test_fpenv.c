/* SPDX-License-Identifier: Apache-2.0 */
/* The floating-point state around kernels: results do not depend on the caller's state, and the
 * caller's state is restored. */
#include "base/fpenv.h"

#include <fenv.h>
#include <string.h>

#include "support/fp_state.h"
#include "support/test.h"

typedef struct results {
    float subnormal; /* 0 under flush to zero */
    float third;     /* the last bit depends on the rounding */
} results;

/* A call that is not inlined, as kernels are: compilers move arithmetic past changes of the state.
 */
static SP_NOINLINE results compute(void)
{
    volatile float tiny = 1e-30f;
    volatile float one = 1.0f;
    volatile float three = 3.0f;
    return (results){.subnormal = tiny * 1e-12f, .third = one / three};
}

static void check_same(results a, results b)
{
    CHECK_EQ_MEM(&a.subnormal, &b.subnormal, sizeof a.subnormal);
    CHECK_EQ_MEM(&a.third, &b.third, sizeof a.third);
}

TEST(results_inside_do_not_depend_on_the_callers_rounding)
{
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const results expected = compute();
    CHECK(expected.subnormal > 0.0f);
    for (size_t i = 0; i < SP_COUNT_OF(modes); i++) {
        CHECK_EQ_INT(fesetround(modes[i]), 0);
        const sp_fpenv before = sp_fpenv_enter();
        const results inside = compute();
        sp_fpenv_leave(before);
        CHECK_EQ_INT(fegetround(), modes[i]);
        fesetround(FE_TONEAREST);
        check_same(inside, expected);
    }
}

/* Integers are compared: a comparison of floats depends on the state, too. */
static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

TEST(subnormal_numbers_survive_a_caller_that_flushes_them)
{
    const results expected = compute();
    const sp_fpenv original = fp_state_read();
    fp_state_write(FP_STATE_STRANGE);
    const results outside = compute();
    const sp_fpenv before = sp_fpenv_enter();
    const results inside = compute();
    sp_fpenv_leave(before);
    const sp_fpenv after = fp_state_read();
    fp_state_write(original);
    CHECK_EQ_U64(bits_of(outside.subnormal), 0); /* the state matters */
    CHECK(bits_of(outside.third) != bits_of(expected.third));
    check_same(inside, expected);
    CHECK_EQ_U64(after & ~FP_STATE_FLAGS, FP_STATE_STRANGE);
}

#if defined(__x86_64__)

static SP_NOINLINE float divide_by_zero(void)
{
    volatile float zero = 0.0f;
    volatile float one = 1.0f;
    return one / zero;
}

TEST(exceptions_that_the_caller_enabled_do_not_trap_inside)
{
    const uint32_t original = __builtin_ia32_stmxcsr();
    const uint32_t unmasked = original & ~(0x0200u | SP_FPENV_FLAGS); /* division by zero traps */
    __builtin_ia32_ldmxcsr(unmasked);
    const sp_fpenv before = sp_fpenv_enter();
    const float infinite = divide_by_zero();
    sp_fpenv_leave(before);
    const uint32_t after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(original);
    CHECK(infinite > 1e38f);
    CHECK_EQ_U64(after, unmasked);
}

TEST(sticky_flags_alone_cost_no_change_of_state)
{
    const uint32_t original = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(SP_FPENV_DEFAULT);
    const sp_fpenv before = sp_fpenv_enter();
    (void)compute(); /* inexact */
    const uint32_t inside = __builtin_ia32_stmxcsr();
    sp_fpenv_leave(before);
    const uint32_t after = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(original);
    CHECK((inside & SP_FPENV_FLAGS) != 0);
    CHECK_EQ_U64(after, inside);
    CHECK_EQ_U64(after & ~SP_FPENV_FLAGS, SP_FPENV_DEFAULT);
}

#endif

TEST_MAIN
