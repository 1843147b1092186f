/* SPDX-License-Identifier: Apache-2.0 */
/* exp, log and pow of doubles, and pow of floats, compared with the C library's long double
 * functions, which have 11 more bits here; special cases as in IEEE 754-2019; equal bits on every
 * instruction set. `make soak` tests more pairs. */
#define SP_ISA portable
#include "ops/cpu/arch/math_f64.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/fpenv.h"
#include "ops/lowering.h"
#include "support/model_data.h"
#include "support/test.h"

/* Error in units of the last place of a number with `digits` bits whose smallest unit is
 * 2^`least`. */
static double ulps(long double got, long double want, int digits, int least)
{
    int exponent;
    frexpl(want, &exponent);
    const int unit = exponent - digits < least ? least : exponent - digits;
    return (double)(fabsl(got - want) / ldexpl(1.0L, unit));
}

static double ulps_f64(double got, long double want)
{
    if (fabsl(want) > (long double)DBL_MAX) return isinf(got) ? 0 : HUGE_VAL;
    return ulps((long double)got, want, 53, -1074);
}

/* 1.0 to 2.0 with random bits, times a power of two. */
static double random_double(data_random *random, int least, int most)
{
    const uint64_t bits = data_next(random);
    const double fraction = 1.0 + (double)(bits >> 12) * 0x1p-52;
    return ldexp(fraction, least + (int)(data_next(random) % (uint64_t)(most - least)));
}

static void check(const char *name, double x, double y, double error, double bound, double *worst)
{
    if (error > *worst) *worst = error;
    if (error <= bound) return;
    test_note("%s(%a, %a): %g ulp", name, x, y, error);
    CHECK(false);
}

static bool has_long_double(void)
{
    return LDBL_MANT_DIG >= 64;
}

TEST(exp_of_doubles_is_accurate)
{
    if (!has_long_double()) SKIP("long double is no wider than double");
    data_random random = {11};
    double worst = 0, worst_subnormal = 0;
    const uint64_t count = test_count(100000000, 300000);
    for (uint64_t i = 0; i < count; i++) {
        double x = random_double(&random, i % 3 == 0 ? -60 : -3, 10);
        if (data_next(&random) % 2 == 0) x = -x;
        const double error = ulps_f64(sp_exp(x), expl((long double)x));
        if (x > -708) check("exp", x, 0, error, 0.65, &worst);
        else check("exp", x, 0, error, 1.0, &worst_subnormal);
    }
    test_note("exp_f64: at most %.3f ulp, %.3f below the normal numbers", worst, worst_subnormal);
}

TEST(log_of_doubles_is_accurate)
{
    if (!has_long_double()) SKIP("long double is no wider than double");
    data_random random = {12};
    double worst = 0;
    const uint64_t count = test_count(100000000, 300000);
    for (uint64_t i = 0; i < count; i++) {
        double x = random_double(&random, -1074, 1024);
        if (i % 2 == 0) x = random_double(&random, -2, 2);
        if (i % 8 == 0) x = 1.0 + (data_next_float(&random) > 0 ? x : -x) * 0x1p-30;
        check("log", x, 0, ulps_f64(sp_log(x), logl((long double)x)), 0.51, &worst);
    }
    test_note("log_f64: at most %.3f ulp", worst);
}

TEST(pow_of_doubles_is_accurate)
{
    if (!has_long_double()) SKIP("long double is no wider than double");
    data_random random = {13};
    double worst = 0, worst_subnormal = 0;
    const uint64_t count = test_count(100000000, 300000);
    for (uint64_t i = 0; i < count; i++) {
        double x = i % 2 == 0 ? random_double(&random, -1, 1) : random_double(&random, -300, 300);
        double y = random_double(&random, -10, i % 2 == 0 ? 10 : 4);
        if (data_next(&random) % 2 == 0) y = -y;
        if (i % 7 == 0) y = nearbyint(y);
        const long double want = powl((long double)x, (long double)y);
        const double error = ulps_f64(sp_pow(x, y), want);
        if (fabsl(want) >= (long double)DBL_MIN) check("pow", x, y, error, 0.7, &worst);
        else check("pow", x, y, error, 1.0, &worst_subnormal);
    }
    test_note("pow_f64: at most %.3f ulp, %.3f below the normal numbers", worst, worst_subnormal);
}

TEST(pow_of_doubles_is_exact_where_it_can_be)
{
    for (int base = 2; base <= 100; base++) {
        int64_t power = 1;
        for (int n = 0; power < (int64_t)1 << 53; n++, power *= base) {
            const double want = (double)power;
            CHECK(sp_pow(base, n) == want);
            CHECK(sp_pow(-base, n) == (n % 2 == 0 ? want : -want));
            if (n > 0) CHECK(sp_pow(want, 1.0 / n) >= base - 1e-9 * base);
        }
        CHECK(sp_pow((double)base * base, 0.5) == base);
    }
    CHECK(sp_exp(0.0) == 1 && sp_log(1.0) == 0);
}

/* ---- pow of floats, on every instruction set ---- */

enum { CHUNK = 4096 };

static void pow_chunk(const float *x, const float *y, float *out)
{
    static float other[CHUNK];
    const sp_binary_constants k = {.rank = 1, .count = CHUNK, .dims = {CHUNK}, .a = {1}, .b = {1}};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        void *bindings[3] = {(void *)(uintptr_t)x, (void *)(uintptr_t)y, isa == 0 ? out : other};
        CHECK_OK(sp__kernel_run(&kernels[SP_KERNEL_ID_pow_f32], bindings, &k));
        if (isa > 0) CHECK_EQ_MEM(out, other, sizeof(other));
    }
}

TEST(pow_of_floats_is_accurate)
{
    static float x[CHUNK], y[CHUNK], out[CHUNK];
    data_random random = {14};
    double worst = 0;
    const uint64_t count = test_count(400000000, 1000000);
    for (uint64_t done = 0; done < count; done += CHUNK) {
        for (int i = 0; i < CHUNK; i++) {
            x[i] = (float)random_double(&random, i % 2 == 0 ? -149 : -2, i % 2 == 0 ? 128 : 2);
            y[i] = (float)random_double(&random, -8, i % 2 == 0 ? 4 : 10);
            if (data_next(&random) % 2 == 0) y[i] = -y[i];
            if (i % 5 == 0) y[i] = nearbyintf(y[i]);
        }
        pow_chunk(x, y, out);
        for (int i = 0; i < CHUNK; i++) {
            const double want = pow((double)x[i], (double)y[i]);
            if (want > (double)FLT_MAX) continue;
            const double error = ulps((long double)out[i], (long double)want, 24, -149);
            check("powf", (double)x[i], (double)y[i], error, 0.51, &worst);
        }
    }
    test_note("pow_f32: at most %.4f ulp over %llu pairs", worst, (unsigned long long)count);
}

/* IEEE 754-2019, 9.2.1, which is C's pow. */
TEST(pow_has_the_special_cases_of_ieee_754)
{
    static const double values[] = {0.0,  -0.0,  1.0,  -1.0,      2.0,       -2.0,      0.5, -0.5,
                                    3.0,  -3.0,  2.5,  -2.5,      HUGE_VAL,  -HUGE_VAL, NAN, 1e-40,
                                    1e30, -5.0,  1e-3, 16777216,  -16777215, 0.25,      1.5, -1.5,
                                    3.75, -3.25, 7.5,  4194305.5, -8388607.5};
    enum { COUNT = SP_COUNT_OF(values) };
    static float x[CHUNK], y[CHUNK], out[CHUNK];
    for (int i = 0; i < COUNT * COUNT; i++) {
        x[i] = (float)values[i / COUNT];
        y[i] = (float)values[i % COUNT];
    }
    pow_chunk(x, y, out);
    for (int i = 0; i < COUNT * COUNT; i++) {
        const float want_float = (float)pow((double)x[i], (double)y[i]);
        const double want = pow(values[i / COUNT], values[i % COUNT]);
        const double got = sp_pow(values[i / COUNT], values[i % COUNT]);
        const bool is_same = isnan(want) ? isnan(got)
                                         : signbit(want) == signbit(got) &&
                                               (want == got || ulps_f64(got, want) < 1.5);
        CHECK(is_same);
        CHECK(isnan(want_float) ? isnan(out[i]) : data_is_same(out[i], want_float));
        if (!is_same) test_note("pow(%g, %g) = %g", values[i / COUNT], values[i % COUNT], got);
    }
}

TEST(functions_of_doubles_at_their_limits)
{
    CHECK(sp_exp(HUGE_VAL) == HUGE_VAL && sp_exp(-HUGE_VAL) == 0 && isnan(sp_exp(NAN)));
    CHECK(sp_exp(709.7) < HUGE_VAL && sp_exp(709.79) == HUGE_VAL);
    CHECK(sp_exp(-745.1) > 0 && sp_exp(-745.2) == 0);
    CHECK(sp_log(0.0) == -HUGE_VAL && sp_log(-0.0) == -HUGE_VAL && sp_log(HUGE_VAL) == HUGE_VAL);
    CHECK(isnan(sp_log(-1.0)) && isnan(sp_log(NAN)) && isnan(sp_log(-HUGE_VAL)));
    CHECK(sp_pow(2.0, 1023) == 0x1p1023 && sp_pow(2.0, 1024) == HUGE_VAL);
    CHECK(sp_pow(2.0, -1074) == 0x1p-1074 && sp_pow(2.0, -1076) == 0);
}

TEST_MAIN
