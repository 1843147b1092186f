/* SPDX-License-Identifier: Apache-2.0 */
/* The software FMA compared with libm's, and the library's functions at the limits of floats. For
 * their accuracy in between see test_math_accuracy.c. */
#define SP_ISA portable
#include "ops/cpu/arch/math_f64.h"
#include "ops/cpu/arch/typed.h"
#include "ops/math/pow_f32.h"
#include "ops/math/trig_f32.h"

#include <math.h>

#include "support/model_data.h"
#include "support/test.h"

/* NaNs compare equal: sp_canonical selects the NaN later. */
static bool is_same(float a, float b)
{
    return sp_float_bits(sp_canonical(a)) == sp_float_bits(sp_canonical(b));
}

static void check_fma(float a, float b, float c)
{
    const float got = sp_fmaf(a, b, c), want = fmaf(a, b, c);
    if (is_same(got, want)) return;
    test_note("fma(%a, %a, %a) = %a, wanted %a", (double)a, (double)b, (double)c, (double)got,
              (double)want);
    CHECK(false);
}

TEST(software_fma_is_exact_on_special_values)
{
    static const uint32_t bits[] = {0x00000000, 0x00000001, 0x00000002, 0x007fffff, 0x00800000,
                                    0x00800001, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x34000000,
                                    0x33800000, 0x33ffffff, 0x7f7fffff, 0x7f7ffffe, 0x7f800000,
                                    0x7fc00000, 0x5f800000, 0x1f800000, 0x20000000, 0x4b000001,
                                    0x7fa00001, 0x00400001, 0x40490fdb};
    const size_t count = 2 * SP_COUNT_OF(bits);
    for (size_t i = 0; i < count * count * count; i++) {
        float value[3];
        size_t rest = i;
        for (int k = 0; k < 3; k++, rest /= count) {
            const size_t at = rest % count;
            value[k] = sp_float_from_bits(bits[at / 2] | (uint32_t)(at % 2) << 31);
        }
        check_fma(value[0], value[1], value[2]);
    }
}

TEST(software_fma_is_exact_on_random_bits)
{
    data_random random = {1};
    const uint64_t count = test_count(1000000000, 10000000);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t x = data_next(&random), y = data_next(&random);
        check_fma(sp_float_from_bits((uint32_t)x), sp_float_from_bits((uint32_t)(x >> 32)),
                  sp_float_from_bits((uint32_t)y));
    }
}

/* Sums that nearly cancel and sums next to a rounding boundary, which random bits rarely give. */
TEST(software_fma_is_exact_near_cancellation_and_ties)
{
    data_random random = {2};
    const uint64_t count = test_count(1000000000, 10000000);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t x = data_next(&random), y = data_next(&random);
        const float a = ldexpf(data_next_float(&random), (int)(x % 90) - 75);
        const float b = ldexpf(data_next_float(&random), (int)(x / 90 % 90) - 75);
        const float product = a * b;
        const float near = sp_float_from_bits(sp_float_bits(-product) + (uint32_t)(y % 5) - 2);
        check_fma(a, b, near);
        check_fma(a, b, ldexpf(near, (int)(y / 5 % 60) - 30));
    }
}

TEST(functions_at_their_limits)
{
    const float inf = HUGE_VALF;
    CHECK(sp_expf(inf) == inf && sp_expf(-inf) == 0 && isnan(sp_expf(NAN)));
    CHECK(sp_expf(0.0f) == 1 && sp_expf(-0.0f) == 1);
    CHECK(sp_expf(88.72283f) < inf && sp_expf(88.73f) == inf);
    CHECK(sp_expf(-103.9f) > 0 && sp_expf(-104.0f) == 0);
    CHECK(sp_sigmoidf(inf) == 1 && sp_sigmoidf(-inf) == 0 && isnan(sp_sigmoidf(NAN)));
    CHECK(sp_sigmoidf(0.0f) == 0.5f && sp_sigmoidf(-100.0f) > 0);
    CHECK(sp_tanhf(inf) == 1 && sp_tanhf(-inf) == -1 && isnan(sp_tanhf(NAN)));
    CHECK(sp_float_bits(sp_tanhf(-0.0f)) == 0x80000000u);
    CHECK(sp_logf(0.0f) == -inf && sp_logf(-0.0f) == -inf && sp_logf(inf) == inf);
    CHECK(isnan(sp_logf(-1e-45f)) && isnan(sp_logf(-inf)) && isnan(sp_logf(NAN)));
    CHECK(sp_float_bits(sp_logf(1.0f)) == 0);
    CHECK(sp_erff(inf) == 1 && sp_erff(-inf) == -1 && isnan(sp_erff(NAN)));
    CHECK(sp_float_bits(sp_erff(-0.0f)) == 0x80000000u);
    CHECK(sp_softplusf(inf) == inf && sp_softplusf(-inf) == 0 && isnan(sp_softplusf(NAN)));
    CHECK(sp_expm1f(inf) == inf && sp_expm1f(-inf) == -1 && isnan(sp_expm1f(NAN)));
    CHECK(sp_expm1f(88.72f) < inf);
    CHECK(sp_expm1f(0.0f) == 0);
}

static bool is_zero(float x, float sign)
{
    return sp_float_bits(x) == sp_float_bits(sp_copysignf(0.0f, sign));
}

/* A zero of an odd function keeps its sign. */
TEST(trigonometric_functions_at_their_limits)
{
    static float (*const odd[])(float) = {sp_sinf,  sp_tanf,   sp_asinf, sp_atanf,
                                          sp_sinhf, sp_asinhf, sp_atanhf};
    const float inf = HUGE_VALF, tiny = 1e-45f, most = 0x1.fffffep127f;
    for (size_t i = 0; i < SP_COUNT_OF(odd); i++) {
        CHECK(is_zero(odd[i](0.0f), 1) && is_zero(odd[i](-0.0f), -1) && isnan(odd[i](NAN)));
        CHECK(odd[i](tiny) == tiny && odd[i](-tiny) == -tiny);
    }
    CHECK(isnan(sp_sinf(inf)) && isnan(sp_cosf(-inf)) && isnan(sp_tanf(inf)));
    CHECK(sp_cosf(0.0f) == 1 && sp_coshf(-0.0f) == 1 && is_zero(sp_acosf(1.0f), 1));
    CHECK(is_zero(sp_acoshf(1.0f), 1) && isnan(sp_cosf(NAN)) && isnan(sp_acosf(NAN)));
    /* The float nearest to a multiple of pi / 2, and the largest one. */
    CHECK(sp_cosf(0x1.f37418p+100f) == (float)cos(0x1.f37418p+100));
    CHECK(sp_sinf(most) == (float)sin((double)most) && sp_cosf(most) == (float)cos((double)most));
    CHECK(sp_asinf(1.0f) == 1.57079637f && sp_acosf(-1.0f) == 3.14159274f);
    CHECK(isnan(sp_asinf(1.0000001f)) && isnan(sp_acosf(-1.0000001f)) && isnan(sp_acosf(inf)));
    CHECK(sp_atanf(inf) == 1.57079637f && sp_atanf(-inf) == -1.57079637f);
    CHECK(sp_sinhf(inf) == inf && sp_sinhf(-inf) == -inf && sp_coshf(-inf) == inf);
    CHECK(sp_sinhf(89.4159851f) < inf && sp_sinhf(89.42f) == inf && sp_coshf(-89.42f) == inf);
    CHECK(sp_asinhf(-inf) == -inf && sp_asinhf(most) > 89 && sp_acoshf(inf) == inf);
    CHECK(isnan(sp_acoshf(0.99999994f)) && isnan(sp_acoshf(-inf)) && isnan(sp_acoshf(NAN)));
    CHECK(sp_atanhf(1.0f) == inf && sp_atanhf(-1.0f) == -inf && isnan(sp_atanhf(1.0000001f)));
    CHECK(isnan(sp_atanhf(-inf)));
}

TEST_MAIN
