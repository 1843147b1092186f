/* SPDX-License-Identifier: Apache-2.0 */
/* Where, Expand, Cast and Dropout: broadcasting, every pair of types, refusals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

#define SHAPE(...)                                                                                 \
    ((sp_shape){.rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = {__VA_ARGS__}})

static sp_array make(sp_dtype dtype, const sp_shape *shape, const void *values)
{
    sp_array array;
    if (sp__array_init(&array, dtype, shape) != SP_OK) abort();
    if (values != NULL) memcpy(array.data, values, (size_t)array.bytes);
    return array;
}

static sp_array bools(data_random *random, const sp_shape *shape)
{
    sp_array array = make(SP_BOOL, shape, NULL);
    for (uint64_t i = 0; i < array.bytes; i++) ((uint8_t *)array.data)[i] = data_next(random) & 1;
    return array;
}

static uint64_t source(const sp_array *in, const sp_shape *y, uint64_t i)
{
    int64_t strides[SP_MAX_RANK], at = 0;
    sp__shape_broadcast_strides(&in->shape, y, strides);
    for (uint32_t d = y->rank; d-- > 0; i /= (uint64_t)y->dims[d]) {
        at += (int64_t)(i % (uint64_t)y->dims[d]) * strides[d];
    }
    return (uint64_t)at;
}

static void check_where(sp_shape c, sp_shape x, sp_shape y)
{
    data_random random = {41};
    sp_array in[3] = {bools(&random, &c), data_floats(&random, &x), data_floats(&random, &y)};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const data_call call = {.op = "Where",
                                .version = 16,
                                .inputs = in,
                                .input_count = 3,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        sp_array out;
        uint64_t wrong = 0;
        REQUIRE_OK(data_run_op(&call, &out));
        for (uint64_t i = 0; i < sp__shape_count(&out.shape); i++) {
            const bool is_x = ((uint8_t *)in[0].data)[source(&in[0], &out.shape, i)];
            const sp_array *side = is_x ? &in[1] : &in[2];
            const float want = ((float *)side->data)[source(side, &out.shape, i)];
            wrong += !data_is_same(((float *)out.data)[i], want);
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&out);
    }
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

TEST(where_broadcasts_all_three)
{
    const sp_shape scalar = {.rank = 0};
    check_where(SHAPE(1000), SHAPE(1000), SHAPE(1000));
    check_where(SHAPE(4, 1), SHAPE(3, 1, 5), SHAPE(5));
    check_where(scalar, SHAPE(3, 4), scalar);
    check_where(SHAPE(3, 4), scalar, SHAPE(4));
    check_where(scalar, scalar, scalar);
    check_where(SHAPE(0, 3), SHAPE(1, 3), SHAPE(3));
    check_where(SHAPE(1, 2, 1, 2, 1, 2, 1, 2), SHAPE(2, 1, 2, 1, 2, 1, 2, 1), SHAPE(2));
    check_where(SHAPE(300, 500), SHAPE(300, 1), SHAPE(500)); /* several tiles */
}

TEST(expand_broadcasts_in_both_directions)
{
    data_random random = {42};
    const sp_shape x = SHAPE(3, 1), want = SHAPE(2, 3, 4);
    const int64_t dims[] = {2, 1, 4};
    sp_array in[2] = {data_floats(&random, &x), data_ints(dims, 3)}, out;
    const data_call call = {
        .op = "Expand", .version = 13, .inputs = in, .input_count = 2, .output_count = 1};
    REQUIRE_OK(data_run_op(&call, &out));
    CHECK(sp__shape_equal(&out.shape, &want));
    for (int i = 0; i < 24; i++) {
        CHECK(data_is_same(((float *)out.data)[i], ((float *)in[0].data)[i / 4 % 3]));
    }
    sp__array_deinit(&out);
    ((int64_t *)in[1].data)[1] = 5;
    CHECK_STATUS(data_run_op(&call, &out), SP_MISMATCH);
    CHECK_MESSAGE("[3,1] and [2,5,4] cannot be broadcast together");
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

/* ---- Cast ---- */

static void check_cast(sp_dtype from, int64_t count, const void *values, int64_t to,
                       const void *want)
{
    const sp_shape shape = SHAPE(count);
    sp_array x = make(from, &shape, values), out;
    const sp_attribute attribute = data_attribute_int("to", &to);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const data_call call = {.op = "Cast",
                                .version = 13,
                                .attributes = &attribute,
                                .attribute_count = 1,
                                .inputs = &x,
                                .input_count = 1,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_MEM(out.data, want, (size_t)out.bytes);
        sp__array_deinit(&out);
    }
    sp__array_deinit(&x);
}

enum {
    F32 = 1,
    U8 = 2,
    I8 = 3,
    I32 = 6,
    I64 = 7,
    BOOL = 9,
    F16 = 10,
    F64 = 11,
    U64 = 13,
    BF16 = 16
};

TEST(floats_become_the_nearest_integer_towards_zero_and_nan_becomes_0)
{
    const float x[] = {1.9f, -1.9f, 300, -300, NAN, HUGE_VALF, -HUGE_VALF, -0.9f};
    check_cast(SP_F32, 8, x, I8, (const int8_t[]){1, -1, 127, -128, 0, 127, -128, 0});
    check_cast(SP_F32, 8, x, U8, (const uint8_t[]){1, 0, 255, 0, 0, 255, 0, 0});
    check_cast(SP_F32, 8, x, BOOL, (const uint8_t[]){1, 1, 1, 1, 1, 1, 1, 1});
    const double y[] = {2147483647.5, -2147483649.0, 9.3e18, -9.3e18};
    check_cast(SP_F64, 4, y, I32, (const int32_t[]){INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN});
    check_cast(SP_F64, 4, y, I64, (const int64_t[]){2147483647, -2147483649, INT64_MAX, INT64_MIN});
    check_cast(SP_F64, 4, y, U64, (const uint64_t[]){2147483647, 0, 9300000000000000000u, 0});
}

TEST(integers_keep_their_low_bits_and_round_to_even_as_floats)
{
    const int64_t x[] = {-1, 256, 16777217, 16777219, INT64_MAX};
    check_cast(SP_I64, 5, x, U8, (const uint8_t[]){255, 0, 1, 3, 255});
    check_cast(SP_I64, 5, x, F32, (const float[]){-1, 256, 16777216, 16777220, 0x1p63f});
    check_cast(SP_I64, 5, x, BOOL, (const uint8_t[]){1, 1, 1, 1, 1});
    check_cast(SP_I64, 5, x, F16, (const uint16_t[]){0xbc00, 0x5c00, 0x7c00, 0x7c00, 0x7c00});
    check_cast(SP_BOOL, 2, (const uint8_t[]){0, 1}, F32, (const float[]){0, 1});
}

/* Just above a tie of the narrow type, and a tie of the intermediate one: rounded twice it would be
 * rounded down. */
TEST(narrow_floats_are_rounded_once)
{
    const double x[] = {1.0 + 0x1p-11 + 0x1p-40, 1.0 + 0x1p-8 + 0x1p-50, 65519.999, 65520};
    check_cast(SP_F64, 4, x, F16, (const uint16_t[]){0x3c01, 0x3c04, 0x7bff, 0x7c00});
    check_cast(SP_F64, 2, x, BF16, (const uint16_t[]){0x3f80, 0x3f81});
    const int64_t n[] = {(INT64_C(0x101) << 50) + 1, INT64_C(0x101) << 50};
    check_cast(SP_I64, 2, n, BF16, (const uint16_t[]){0x5c81, 0x5c80});
    const float nan = -NAN;
    check_cast(SP_F32, 1, &nan, F16, (const uint16_t[]){0x7e00});
    check_cast(SP_F32, 1, &nan, BF16, (const uint16_t[]){0x7fc0});
}

/* Round trip of all numbers of a half type. */
TEST(every_f16_and_bf16_survives_a_cast_to_wider_types)
{
    static uint16_t all[65536], f16[65536], bf16[65536];
    for (uint32_t i = 0; i < 65536; i++) {
        all[i] = (uint16_t)i;
        f16[i] = (i & 0x7fff) > 0x7c00 ? 0x7e00 : (uint16_t)i;
        bf16[i] = (i & 0x7fff) > 0x7f80 ? 0x7fc0 : (uint16_t)i;
    }
    const sp_shape shape = SHAPE(65536);
    const int64_t wide[] = {F32, F64}, narrow[] = {F16, BF16};
    for (int k = 0; k < 4; k++) {
        const sp_dtype dtype = k % 2 == 0 ? SP_F16 : SP_BF16;
        const sp_attribute to = data_attribute_int("to", &wide[k / 2]);
        sp_array x = make(dtype, &shape, all), out;
        const data_call call = {.op = "Cast",
                                .version = 13,
                                .attributes = &to,
                                .attribute_count = 1,
                                .inputs = &x,
                                .input_count = 1,
                                .output_count = 1};
        REQUIRE_OK(data_run_op(&call, &out));
        check_cast(out.dtype, 65536, out.data, narrow[k % 2], k % 2 == 0 ? f16 : bf16);
        sp__array_deinit(&out);
        sp__array_deinit(&x);
    }
}

TEST(types_that_are_not_there_are_refused)
{
    const int64_t string = 8;
    const sp_attribute to = data_attribute_int("to", &string);
    sp_array x = data_ints(&string, 1), out;
    const data_call call = {.op = "Cast",
                            .version = 13,
                            .attributes = &to,
                            .attribute_count = 1,
                            .inputs = &x,
                            .input_count = 1,
                            .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_UNSUPPORTED);
    CHECK_MESSAGE("element type 8 of ONNX");
    sp__array_deinit(&x);
}

/* ---- Dropout ---- */

TEST(dropout_copies_and_its_mask_is_all_ones)
{
    data_random random = {43};
    const sp_shape shape = SHAPE(70, 3);
    sp_array x = data_floats(&random, &shape), out[2];
    data_call call = {
        .op = "Dropout", .version = 13, .inputs = &x, .input_count = 1, .output_count = 2};
    for (int run = 0; run < 2; run++) {
        call.version = run == 0 ? 13 : 7;
        REQUIRE_OK(data_run_op(&call, out));
        CHECK_EQ_MEM(out[0].data, x.data, (size_t)x.bytes);
        CHECK_EQ_INT(out[1].dtype, run == 0 ? SP_BOOL : SP_F32);
        for (int i = 0; i < 210; i++) {
            if (run == 0) CHECK_EQ_INT(((uint8_t *)out[1].data)[i], 1);
            else CHECK(((float *)out[1].data)[i] == 1);
        }
        for (int i = 0; i < 2; i++) sp__array_deinit(&out[i]);
    }
    sp__array_deinit(&x);
}

TEST(training_is_refused_unless_nothing_is_dropped)
{
    data_random random = {44};
    const sp_shape shape = SHAPE(4), scalar = {.rank = 0};
    const float half = 0.5f, none = 0;
    const uint8_t yes = 1;
    sp_array in[3] = {data_floats(&random, &shape), make(SP_F32, &scalar, &half),
                      make(SP_BOOL, &scalar, &yes)};
    sp_array out;
    const data_call call = {
        .op = "Dropout", .version = 13, .inputs = in, .input_count = 3, .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &out), SP_UNSUPPORTED);
    CHECK_MESSAGE("Dropout in training mode");
    memcpy(in[1].data, &none, sizeof(none));
    REQUIRE_OK(data_run_op(&call, &out));
    CHECK_EQ_MEM(out.data, in[0].data, (size_t)out.bytes);
    sp__array_deinit(&out);
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

TEST_MAIN
