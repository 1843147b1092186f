/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a softmax near its largest element have the bits of the general ones. */
#define SP_ISA portable
#include "ops/cpu/arch/math_f32.h"
#include "ops/math/near_f32.h"

#include <math.h>

#include "support/model_data.h"
#include "support/test.h"

TEST(exponentials_of_near_elements_are_those_of_all)
{
    const uint32_t last = sp_float_bits(64.0f);
    const uint32_t step = (uint32_t)(last / test_count(50000000, 2000000)) | 1;
    for (uint32_t bits = 0; bits <= last; bits += step) {
        const float x = -sp_float_from_bits(bits);
        if (sp_float_bits(sp_near_expf(x)) == sp_float_bits(sp_expf(x))) continue;
        test_note("exp(%a) = %a, wanted %a", (double)x, (double)sp_near_expf(x),
                  (double)sp_expf(x));
        CHECK(false);
    }
    CHECK(sp_near_expf(-64.0f) == sp_expf(-64.0f));
}

static void check_quotient(float e, float sum)
{
    const float got = sp_near_quotient(e, sum, 1.0f / sum), want = e / sum;
    if (sp_float_bits(got) == sp_float_bits(want)) return;
    test_note("%a / %a = %a, wanted %a", (double)e, (double)sum, (double)got, (double)want);
    CHECK(false);
}

TEST(quotients_by_an_inverse_are_rounded_once)
{
    data_random random = {1};
    const uint64_t count = test_count(200000000, 5000000);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = data_next(&random);
        /* exp(-64) has the exponent -93; sums are of up to 2^32 elements. */
        const int up = (int)(bits >> 57) % 33, down = (int)(bits >> 50 & 127) % 94;
        const float e = ldexpf(1.0f + (float)(bits & 0x7fffff) / 8388608.0f, -down - 1);
        const float sum = ldexpf(1.0f + (float)(bits >> 25 & 0x7fffff) / 8388608.0f, up);
        check_quotient(e, sum);
    }
}

/* Next to powers of two and to each other, where units in the last place change. */
TEST(quotients_at_the_ends_of_binades_are_rounded_once)
{
    for (int i = 0; i < 64; i++) {
        for (int k = 0; k < 64; k++) {
            for (int ends = 0; ends < 4; ends++) {
                const float e =
                    ends & 1 ? 1.0f - (float)(i + 1) * 0x1p-24f : 0.5f + (float)i * 0x1p-24f;
                const float sum =
                    ends & 2 ? 2.0f - (float)(k + 1) * 0x1p-23f : 1.0f + (float)k * 0x1p-23f;
                check_quotient(e, sum);
                check_quotient(ldexpf(e, -92), ldexpf(sum, 31));
            }
        }
    }
}

TEST(elements_that_are_no_numbers_are_not_near)
{
    CHECK(sp_is_near(-64.0f, 0.0f));
    CHECK(!sp_is_near(-64.1f, 0.0f));
    CHECK(!sp_is_near(-INFINITY, 0.0f));
    CHECK(!sp_is_near(-INFINITY, -INFINITY));
    CHECK(!sp_is_near(INFINITY, INFINITY));
    CHECK(!sp_is_near(0.0f, INFINITY));
    CHECK(!sp_is_near(NAN, 0.0f));
    CHECK(!sp_is_near(0.0f, NAN));
}

TEST_MAIN
