/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops beyond arithmetic: comparisons, extremes, remainders, powers of integers,
 * rounding and halves, against the rule as a plain loop on every instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

static sp_array list(sp_dtype dtype, const void *values, int64_t count)
{
    const sp_shape shape = {.rank = 1, .dims = {count}};
    sp_array array;
    if (sp__array_init(&array, dtype, &shape) != SP_OK) abort();
    memcpy(array.data, values, (size_t)array.bytes);
    return array;
}

/* Checks that the output of `op` on lists has these bytes. */
static void check(const char *op, uint32_t version, const sp_attribute *attribute, sp_array *in,
                  uint32_t inputs, sp_dtype dtype, const void *want)
{
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const data_call call = {.op = op,
                                .version = version,
                                .attributes = attribute,
                                .attribute_count = attribute != NULL ? 1 : 0,
                                .inputs = in,
                                .input_count = inputs,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_INT(out.dtype, dtype);
        if (memcmp(out.data, want, (size_t)out.bytes) != 0) test_note("%s differs", op);
        CHECK_EQ_MEM(out.data, want, (size_t)out.bytes);
        sp__array_deinit(&out);
    }
}

#define LIST(dtype, type, ...)                                                                     \
    list(dtype, (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

static void free_all(sp_array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) sp__array_deinit(&arrays[i]);
}

TEST(comparisons_with_a_nan_are_false_and_zeros_are_equal)
{
    sp_array in[2] = {LIST(SP_F32, float, 1, 2, NAN, 1, -0.0f, NAN),
                      LIST(SP_F32, float, 2, 1, 1, NAN, 0.0f, NAN)};
    check("Less", 13, NULL, in, 2, SP_BOOL, (const uint8_t[]){1, 0, 0, 0, 0, 0});
    check("Greater", 13, NULL, in, 2, SP_BOOL, (const uint8_t[]){0, 1, 0, 0, 0, 0});
    check("LessOrEqual", 16, NULL, in, 2, SP_BOOL, (const uint8_t[]){1, 0, 0, 0, 1, 0});
    check("GreaterOrEqual", 16, NULL, in, 2, SP_BOOL, (const uint8_t[]){0, 1, 0, 0, 1, 0});
    check("Equal", 19, NULL, in, 2, SP_BOOL, (const uint8_t[]){0, 0, 0, 0, 1, 0});
    free_all(in, 2);
}

TEST(bools_are_equal_that_are_both_true)
{
    sp_array in[2] = {LIST(SP_BOOL, uint8_t, 2, 0, 255, 0, 1, 7),
                      LIST(SP_BOOL, uint8_t, 1, 0, 1, 2, 1, 0)};
    check("Equal", 19, NULL, in, 2, SP_BOOL, (const uint8_t[]){1, 1, 1, 0, 1, 0});
    check("Equal", 7, NULL, in, 2, SP_BOOL, (const uint8_t[]){1, 1, 1, 0, 1, 0});
    free_all(in, 2);
}

TEST(unsigned_numbers_compare_as_unsigned)
{
    sp_array in[2] = {LIST(SP_U8, uint8_t, 200, 1), LIST(SP_U8, uint8_t, 100, 255)};
    check("Less", 13, NULL, in, 2, SP_BOOL, (const uint8_t[]){0, 1});
    check("Max", 13, NULL, in, 2, SP_U8, (const uint8_t[]){200, 255});
    check("Div", 14, NULL, in, 2, SP_U8, (const uint8_t[]){2, 0});
    free_all(in, 2);
}

TEST(extremes_pass_nans_on_and_keep_the_first_of_equals)
{
    sp_array in[3] = {LIST(SP_F32, float, NAN, 1, 0.0f, -0.0f, 5),
                      LIST(SP_F32, float, 1, -NAN, -0.0f, 0.0f, 2),
                      LIST(SP_F32, float, 1, 1, -1, -1, 7)};
    check("Max", 13, NULL, in, 3, SP_F32, (const float[]){NAN, NAN, 0.0f, -0.0f, 7});
    check("Min", 13, NULL, in, 3, SP_F32, (const float[]){NAN, NAN, -1, -1, 2});
    check("Sum", 13, NULL, in, 2, SP_F32, (const float[]){NAN, NAN, 0, 0, 7});
    check("Mean", 13, NULL, &in[1], 2, SP_F32, (const float[]){1, NAN, -0.5f, -0.5f, 4.5f});
    check("Max", 13, NULL, &in[2], 1, SP_F32, in[2].data);
    free_all(in, 3);
}

TEST(halves_are_computed_in_f32_and_rounded_once)
{
    /* 2048 + 1 + 1: the sum is rounded after both additions, 2050, not after each, 2048. */
    sp_array in[3] = {LIST(SP_F16, uint16_t, 0x6800), LIST(SP_F16, uint16_t, 0x3c00),
                      LIST(SP_F16, uint16_t, 0x3c00)};
    check("Sum", 13, NULL, in, 3, SP_F16, (const uint16_t[]){0x6801});
    check("Add", 14, NULL, in, 2, SP_F16, (const uint16_t[]){0x6800});
    check("Sqrt", 13, NULL, in, 1, SP_F16, (const uint16_t[]){0x51a8}); /* 45.25 */
    check("Greater", 13, NULL, in, 2, SP_BOOL, (const uint8_t[]){1});
    free_all(in, 3);
}

TEST(rounding_is_half_to_even_and_keeps_the_sign_of_zero)
{
    sp_array x = LIST(SP_F32, float, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -0.2f, 0.2f, 8388609, -0.0f,
                      HUGE_VALF, NAN, 4194304.5f);
    check("Round", 22, NULL, &x, 1, SP_F32,
          (const float[]){0, 2, 2, -0.0f, -2, -0.0f, 0, 8388609, -0.0f, HUGE_VALF, NAN, 4194304});
    check("Floor", 13, NULL, &x, 1, SP_F32,
          (const float[]){0, 1, 2, -1, -2, -1, 0, 8388609, -0.0f, HUGE_VALF, NAN, 4194304});
    check("Ceil", 13, NULL, &x, 1, SP_F32,
          (const float[]){1, 2, 3, -0.0f, -1, -0.0f, 1, 8388609, -0.0f, HUGE_VALF, NAN, 4194305});
    sp__array_deinit(&x);
}

TEST(rounding_of_random_numbers_is_that_of_the_c_library)
{
    data_random random = {31};
    const sp_shape shape = {.rank = 1, .dims = {4001}};
    sp_array x = data_floats(&random, &shape), y = data_floats(&random, &shape);
    float *from = x.data, *to = y.data;
    for (int i = 0; i < 4001; i++) from[i] = ldexpf(from[i], (int)(data_next(&random) % 40) - 8);
    for (int i = 0; i < 4001; i++) to[i] = nearbyintf(from[i]);
    check("Round", 22, NULL, &x, 1, SP_F32, to);
    for (int i = 0; i < 4001; i++) to[i] = floorf(from[i]);
    check("Floor", 13, NULL, &x, 1, SP_F32, to);
    for (int i = 0; i < 4001; i++) to[i] = ceilf(from[i]);
    check("Ceil", 13, NULL, &x, 1, SP_F32, to);
    for (int i = 0; i < 4001; i++) to[i] = from[i] < 0 ? NAN : sqrtf(from[i]);
    check("Sqrt", 13, NULL, &x, 1, SP_F32, to);
    sp__array_deinit(&x);
    sp__array_deinit(&y);
}

TEST(remainders_have_the_sign_of_the_divisor_or_with_fmod_of_the_dividend)
{
    const int64_t one = 1;
    const sp_attribute fmod_on = data_attribute_int("fmod", &one);
    sp_array in[2] = {LIST(SP_I32, int32_t, 7, -7, 7, -7, 5, INT32_MIN),
                      LIST(SP_I32, int32_t, 3, 3, -3, -3, 0, -1)};
    check("Mod", 13, NULL, in, 2, SP_I32, (const int32_t[]){1, 2, -2, -1, 0, 0});
    check("Mod", 13, &fmod_on, in, 2, SP_I32, (const int32_t[]){1, -1, 1, -1, 0, 0});
    free_all(in, 2);
}

TEST(remainders_of_floats_are_exact)
{
    enum { COUNT = 20000 };
    const int64_t one = 1;
    const sp_attribute fmod_on = data_attribute_int("fmod", &one);
    static double a[COUNT], b[COUNT], want[COUNT];
    static float af[COUNT], bf[COUNT], wantf[COUNT];
    data_random random = {32};
    for (int i = 0; i < COUNT; i++) {
        const uint64_t x = data_next(&random), y = data_next(&random);
        memcpy(&a[i], &x, sizeof(x));
        memcpy(&b[i], &y, sizeof(y));
        memcpy(&af[i], &x, sizeof(af[i]));
        memcpy(&bf[i], &y, sizeof(bf[i]));
        if (i % 3 == 0) b[i] = ldexp((double)data_next_float(&random), -1060); /* subnormal */
        want[i] = fmod(a[i], b[i]);
        wantf[i] = fmodf(af[i], bf[i]);
        if (isnan(want[i])) want[i] = (double)NAN;
        if (isnan(wantf[i])) wantf[i] = NAN;
    }
    sp_array doubles[2] = {list(SP_F64, a, COUNT), list(SP_F64, b, COUNT)};
    sp_array floats[2] = {list(SP_F32, af, COUNT), list(SP_F32, bf, COUNT)};
    check("Mod", 13, &fmod_on, doubles, 2, SP_F64, want);
    check("Mod", 13, &fmod_on, floats, 2, SP_F32, wantf);
    free_all(doubles, 2);
    free_all(floats, 2);
}

TEST(powers_of_integers_wrap_and_mixed_types_give_the_type_of_the_base)
{
    sp_array base = LIST(SP_I64, int64_t, 3, -2, 7, 1, -1, 0, 2);
    sp_array exponent = LIST(SP_I64, int64_t, 40, 63, -1, -5, -3, -1, 64);
    sp_array in[2] = {base, exponent};
    check("Pow", 15, NULL, in, 2, SP_I64,
          (const int64_t[]){(int64_t)UINT64_C(12157665459056928801), INT64_MIN, 0, 1, -1, 0, 0});
    sp_array ints[2] = {LIST(SP_I32, int32_t, 3, 10, -3), LIST(SP_F32, float, 5, 9, 3)};
    check("Pow", 15, NULL, ints, 2, SP_I32, (const int32_t[]){243, 1000000000, -27});
    sp_array floats[2] = {LIST(SP_F32, float, 2, -2, 1.5f), LIST(SP_U64, uint64_t, 10, 3, 2)};
    check("Pow", 15, NULL, floats, 2, SP_F32, (const float[]){1024, -8, 2.25f});
    free_all(in, 2);
    free_all(ints, 2);
    free_all(floats, 2);
}

TEST(slopes_broadcast_to_the_input_and_not_the_other_way)
{
    sp_array in[2] = {LIST(SP_F32, float, -2, 3), LIST(SP_F32, float, 0.5f)}, out;
    check("PRelu", 16, NULL, in, 2, SP_F32, (const float[]){-1, 3});
    sp_array swapped[2] = {in[1], in[0]};
    const data_call call = {
        .op = "PRelu", .version = 16, .inputs = swapped, .input_count = 2, .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("slope of shape [2] does not broadcast to [1]");
    free_all(in, 2);
}

TEST(bounds_may_be_left_out_and_the_upper_one_wins)
{
    sp_array in[3] = {LIST(SP_F32, float, -3, 0, 3, NAN), LIST(SP_F32, float, -1),
                      LIST(SP_F32, float, -2)};
    check("Clip", 13, NULL, in, 3, SP_F32, (const float[]){-2, -2, -2, NAN});
    check("Clip", 13, NULL, in, 2, SP_F32, (const float[]){-1, 0, 3, NAN});
    check("Clip", 13, NULL, in, 1, SP_F32, in[0].data);
    sp_array upper[3] = {in[0], {0}, in[2]};
    check("Clip", 13, NULL, upper, 3, SP_F32, (const float[]){-3, -2, -2, NAN});
    sp_array wrong[2] = {in[0], in[0]}, out;
    const data_call call = {
        .op = "Clip", .version = 13, .inputs = wrong, .input_count = 2, .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("the min has shape [4]; expected one number");
    free_all(in, 3);
}

/* The sign of a NaN is not kept. */
TEST(rounding_gives_the_canonical_nan)
{
    static const char *const ops[] = {"Floor", "Ceil", "Round"};
    static const uint32_t nans[] = {0xffc00001, 0xff800001}, want[] = {0x7fc00000, 0x7fc00000};
    static const uint64_t nans_f64[] = {0xfff8000000000001, 0xfff0000000000001},
                          want_f64[] = {0x7ff8000000000000, 0x7ff8000000000000};
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        sp_array y, x = data_counted(SP_F32, SHAPE(2), 0);
        memcpy(x.data, nans, sizeof(nans));
        REQUIRE_OK(data_run(ops[i], 11, NULL, 0, &x, 1, &y, 1));
        CHECK_EQ_MEM(y.data, want, sizeof(want));
        sp__array_deinit(&x);
        sp__array_deinit(&y);
        x = data_counted(SP_F64, SHAPE(2), 0);
        memcpy(x.data, nans_f64, sizeof(nans_f64));
        REQUIRE_OK(data_run(ops[i], 11, NULL, 0, &x, 1, &y, 1));
        CHECK_EQ_MEM(y.data, want_f64, sizeof(want_f64));
        sp__array_deinit(&x);
        sp__array_deinit(&y);
    }
}

TEST_MAIN
