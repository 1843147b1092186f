/* SPDX-License-Identifier: Apache-2.0 */
/* The error of the library's functions over the floats, with equal bits on every instruction set.
 * `make soak` tests every float. */
#define SP_ISA portable
#include <float.h>
#include <math.h>

#include "ops/cpu/arch/isa.h"
#include "ops/lowering.h"
#include "support/test.h"

static double exact_exp(double x)
{
    return exp(x);
}
static double exact_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
static double exact_tanh(double x)
{
    return tanh(x);
}

static double exact_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}
static double exact_elu(double x)
{
    return x < 0 ? expm1(x) : x;
}

/* Error in units of the last place of the exact result as a float. */
static double ulps(float got, double want)
{
    if (isnan(want)) return isnan(got) ? 0 : HUGE_VAL;
    if (fabs(want) > (double)FLT_MAX) return 0; /* functions_at_their_limits of test_math_f32.c */
    int exponent;
    frexp(want, &exponent);
    const double unit = ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
    return fabs((double)got - want) / unit;
}

typedef struct math_case {
    sp_kernel_id kernel;
    double (*exact)(double x);
    double bound;
} math_case;

enum { CHUNK = 4096 };

static void compute(const math_case *which, sp_cpu_isa isa, const float *x, float *y)
{
    /* The parameters begin with those of kernels without parameters. */
    const sp_function_constants k = {.count = CHUNK, .alpha = 1};
    const sp_kernel *kernel = &sp__cpu_kernels(isa)[which->kernel];
    void *bindings[2] = {(void *)(uintptr_t)x, y};
    CHECK_OK(sp__kernel_run(kernel, bindings, &k));
}

/* `isa` is the best available one; `is_compared`: also compares with all others. */
static double check_chunk(const math_case *which, sp_cpu_isa isa, bool is_compared, const float *x)
{
    static float y[CHUNK], other[CHUNK];
    double worst = 0;
    compute(which, isa, x, y);
    for (int i = 0; i < (int)isa && is_compared; i++) {
        if (sp__cpu_kernels((sp_cpu_isa)i) == NULL) continue;
        compute(which, (sp_cpu_isa)i, x, other);
        CHECK_EQ_MEM(other, y, sizeof y);
    }
    for (int i = 0; i < CHUNK; i++) {
        const double error = ulps(y[i], which->exact((double)x[i]));
        if (error > worst) worst = error;
        if (error <= which->bound) continue;
        test_note("x = %a: %a, exactly %a", (double)x[i], (double)y[i], which->exact((double)x[i]));
        CHECK(false);
    }
    return worst;
}

static sp_cpu_isa best_isa(void)
{
    int isa = SP_CPU_ISA_COUNT - 1;
    while (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) isa--;
    return (sp_cpu_isa)isa;
}

static void check_function(sp_kernel_id kernel, double (*exact)(double), double bound)
{
    const math_case which = {kernel, exact, bound};
    /* An odd stride through all 2^32 patterns: every exponent, all parts of each. */
    const uint64_t count = test_count(UINT64_C(1) << 32, UINT64_C(1) << 21);
    const uint32_t stride =
        count >= UINT64_C(1) << 32 ? 1 : (uint32_t)((UINT64_C(1) << 32) / count) | 1;
    /* With all floats, every eighth chunk is compared: the portable kernels, which compute fused
     * multiply-adds in double, take as long for one as the others do for twenty. */
    const uint64_t compared = stride == 1 ? 8 : 1;
    const sp_cpu_isa isa = best_isa();
    static float x[CHUNK];
    double worst = 0;
    uint32_t bits = 0;
    for (uint64_t done = 0; done < count; done += CHUNK) {
        for (int i = 0; i < CHUNK; i++, bits += stride) x[i] = sp_float_from_bits(bits);
        const bool is_compared = done / CHUNK % compared == 0;
        const double error = check_chunk(&which, isa, is_compared, x);
        if (error > worst) worst = error;
    }
    test_note("%s: at most %.3f ulp over %llu floats",
              sp__cpu_kernels(SP_CPU_PORTABLE)[kernel].name, worst, (unsigned long long)count);
}

TEST(exp_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_exp_f32, exact_exp, 1.1);
}

TEST(sigmoid_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_sigmoid_f32, exact_sigmoid, 2.5);
}

TEST(tanh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_tanh_f32, exact_tanh, 1.5);
}

TEST(log_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_log_f32, log, 1.0);
}

TEST(erf_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_erf_f32, erf, 1.5);
}

TEST(softplus_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_softplus_f32, exact_softplus, 2.5);
}

TEST(elu_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_elu_f32, exact_elu, 2.0);
}

TEST(sin_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_sin_f32, sin, 0.51);
}

TEST(cos_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_cos_f32, cos, 0.51);
}

TEST(tan_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_tan_f32, tan, 0.51);
}

TEST(asin_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_asin_f32, asin, 0.51);
}

TEST(acos_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_acos_f32, acos, 0.51);
}

TEST(atan_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_atan_f32, atan, 0.51);
}

TEST(sinh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_sinh_f32, sinh, 0.51);
}

TEST(cosh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_cosh_f32, cosh, 0.51);
}

TEST(asinh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_asinh_f32, asinh, 0.51);
}

TEST(acosh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_acosh_f32, acosh, 0.51);
}

TEST(atanh_is_accurate_everywhere)
{
    check_function(SP_KERNEL_ID_atanh_f32, atanh, 0.51);
}

TEST_MAIN
