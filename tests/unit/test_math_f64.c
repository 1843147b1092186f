/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of the functions of doubles, and of log of a float, against libm. */
#define SP_ISA portable
#include "ops/cpu/log_f32.h"
#include "ops/cpu/math_f64.h"

#include <math.h>

#include "support/model_data.h"
#include "support/test.h"

TEST(log_and_the_functions_of_doubles_are_as_accurate_as_they_say)
{
    data_random random = {36};
    double worst_log = 0, worst_f64 = 0;
    const uint64_t count = test_count(20000000, 400000);
    for (uint64_t i = 0; i < count; i++) {
        const float x = sp_float_from_bits((uint32_t)(data_next(&random) % 0x7f800000u));
        const double exact = log((double)x), ulp = ldexp(1.0, ilogb(exact) - 23);
        if (x > 0 && exact != 0) {
            worst_log = fmax(worst_log, fabs((double)sp_logf(x) - exact) / ulp);
        }
        const double y = (double)data_next_float(&random) * 700.0;
        worst_f64 = fmax(worst_f64, fabs(sp_exp(y) - exp(y)) / ldexp(1.0, ilogb(exp(y)) - 52));
        const double z = sp_double_from_bits(data_next(&random) % UINT64_C(0x7ff0000000000000));
        worst_f64 = fmax(worst_f64, fabs(sp_log(z) - log(z)) / ldexp(1.0, ilogb(log(z)) - 52));
    }
    test_note("log of a float: %.3f ulp; of doubles against libm: %.3f", worst_log, worst_f64);
    CHECK(worst_log <= 1.0);
    CHECK(worst_f64 <= 2.0);
    CHECK(sp_logf(0) == -INFINITY && sp_logf(INFINITY) == INFINITY && isnan(sp_logf(-1)));
    CHECK(sp_log(0) == -(double)INFINITY && isnan(sp_log(-1)) && sp_exp(-800) == 0);
}

TEST_MAIN
