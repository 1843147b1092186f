/* SPDX-License-Identifier: Apache-2.0 */
/* Small cases that depend on a formula of ONNX: signs, NaNs, ties, windows beyond the input. The
 * expected outputs are those of ONNX Runtime or of ONNX's reference, on each instruction set. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"
#include "tensor/onnx_dtype.h"

#define LIST(dtype, type, ...)                                                                     \
    list(dtype, (const type[]){__VA_ARGS__}, sizeof((const type[]){__VA_ARGS__}) / sizeof(type))

static sp_array list(sp_dtype dtype, const void *values, size_t count)
{
    sp_array array;
    if (sp__array_init(&array, dtype, &SHAPE((int64_t)count)) != SP_OK) abort();
    memcpy(array.data, values, (size_t)array.bytes);
    return array;
}

typedef struct op_case {
    const char *op;
    uint32_t version;
    const sp_attribute *attributes;
    uint32_t attribute_count;
    const sp_array *in;
    uint32_t in_count;
    const sp_array *want;
} op_case;

/* Bits and shape of `want`. */
static void check(const op_case *c)
{
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const data_call call = {.op = c->op,
                                .version = c->version,
                                .attributes = c->attributes,
                                .attribute_count = c->attribute_count,
                                .inputs = c->in,
                                .input_count = c->in_count,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        sp_array out;
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_STR(sp__shape_print(&out.shape).text, sp__shape_print(&c->want->shape).text);
        CHECK_EQ_MEM(out.data, c->want->data, (size_t)c->want->bytes);
        sp__array_deinit(&out);
    }
}

/* ---- Pow ---- */

/* -inf and -0 have a sign only to the power of an odd integer. */
TEST(a_power_is_negative_only_of_an_odd_integer_exponent)
{
    sp_array in[2] = {LIST(SP_F32, float, -INFINITY, -0.0f, -INFINITY, -0.0f, -INFINITY, -0.0f,
                           -INFINITY, -0.0f, -INFINITY),
                      LIST(SP_F32, float, 1.5f, -1.5f, -3.25f, 3.75f, 7.5f, -3, 3, 5, 4194305.5f)};
    sp_array want = LIST(SP_F32, float, INFINITY, INFINITY, 0, 0, INFINITY, -INFINITY, -INFINITY,
                         -0.0f, INFINITY);
    check(&(op_case){"Pow", 15, NULL, 0, in, 2, &want});
    data_free(in, 2);
    data_free(&want, 1);
    sp_array half[2] = {LIST(SP_F16, uint16_t, 0xfc00, 0x8000, 0xfc00, 0x8000, 0xfc00, 0xfc00),
                        LIST(SP_F16, uint16_t, 0x3e00, 0xbe00, 0xc280, 0x4380, 0x4780, 0x4200)};
    want = LIST(SP_F16, uint16_t, 0x7c00, 0x7c00, 0, 0, 0x7c00, 0xfc00);
    check(&(op_case){"Pow", 15, NULL, 0, half, 2, &want});
    data_free(half, 2);
    data_free(&want, 1);
    sp_array brain[2] = {LIST(SP_BF16, uint16_t, 0xff80, 0x8000, 0xff80, 0x8000, 0xff80, 0xff80),
                         LIST(SP_BF16, uint16_t, 0x3fc0, 0xbfc0, 0xc050, 0x4070, 0x40f0, 0x4040)};
    want = LIST(SP_BF16, uint16_t, 0x7f80, 0x7f80, 0, 0, 0x7f80, 0xff80);
    check(&(op_case){"Pow", 15, NULL, 0, brain, 2, &want});
    data_free(brain, 2);
    data_free(&want, 1);
}

/* ---- ThresholdedRelu ---- */

/* A NaN is not above the threshold; neither is anything above a NaN. */
TEST(what_is_not_above_the_threshold_is_0)
{
    static const float alphas[] = {1, -INFINITY, INFINITY, NAN};
    static const float x[] = {NAN, 2, 0, 1, -0.0f, INFINITY, -INFINITY};
    static const float want[][SP_COUNT_OF(x)] = {{0, 2, 0, 0, 0, INFINITY, 0},
                                                 {0, 2, 0, 1, -0.0f, INFINITY, 0}};
    static const float nothing[SP_COUNT_OF(x)];
    sp_array in = list(SP_F32, x, SP_COUNT_OF(x));
    sp_array half = LIST(SP_F16, uint16_t, 0x7e00, 0x4000, 0xfc00);
    for (size_t i = 0; i < SP_COUNT_OF(alphas); i++) {
        const sp_attribute alpha = data_attribute_float("alpha", &alphas[i]);
        sp_array out = list(SP_F32, i < 2 ? want[i] : nothing, SP_COUNT_OF(x));
        check(&(op_case){"ThresholdedRelu", 10, &alpha, 1, &in, 1, &out});
        data_free(&out, 1);
        if (i > 1) continue;
        out = LIST(SP_F16, uint16_t, 0, 0x4000, 0);
        check(&(op_case){"ThresholdedRelu", 22, &alpha, 1, &half, 1, &out});
        data_free(&out, 1);
    }
    data_free(&in, 1);
    data_free(&half, 1);
}

/* ---- reductions of scatters of halves ---- */

/* 2048 + 1 + 1 and 256 + 1 + 1: if rounded after each addition they would not change. */
TEST(halves_are_scattered_in_f32_and_rounded_once)
{
    const sp_text add = sp__text("add"), max = sp__text("max");
    const sp_attribute sum = data_attribute_text("reduction", &add);
    const sp_attribute largest = data_attribute_text("reduction", &max);
    sp_array in[3] = {LIST(SP_F16, uint16_t, 0x3c00, 0x6800, 0xfc00), INTS(1, 1, 2),
                      LIST(SP_F16, uint16_t, 0x3c00, 0x3c00, 0x7c00)};
    sp_array want = LIST(SP_F16, uint16_t, 0x3c00, 0x6801, 0x7e00); /* inf - inf: the NaN */
    check(&(op_case){"ScatterElements", 16, &sum, 1, in, 3, &want});
    data_free(&want, 1);
    want = LIST(SP_F16, uint16_t, 0x3c00, 0x6800, 0x7c00);
    check(&(op_case){"ScatterElements", 18, &largest, 1, in, 3, &want});
    data_free(&want, 1);
    data_free(in, 3);
    sp_array brain[3] = {LIST(SP_BF16, uint16_t, 0x3f80, 0x4380), INTS(1, 1),
                         LIST(SP_BF16, uint16_t, 0x3f80, 0x3f80)};
    brain[1].shape = SHAPE(2, 1);
    want = LIST(SP_BF16, uint16_t, 0x3f80, 0x4381);
    check(&(op_case){"ScatterND", 16, &sum, 1, brain, 3, &want});
    data_free(&want, 1);
    data_free(brain, 3);
}

/* ---- linear and cubic Resize of other types ---- */

static sp_array cast(const sp_array *x, sp_dtype to)
{
    const int64_t number = sp__onnx_data_type(to);
    const sp_attribute attribute = data_attribute_int("to", &number);
    sp_array y;
    if (data_run("Cast", 13, &attribute, 1, x, 1, &y, 1) != SP_OK) abort();
    return y;
}

static sp_array resize(const sp_array *x, const char *mode)
{
    const sp_text text = sp__text(mode);
    const sp_attribute attribute = data_attribute_text("mode", &text);
    sp_array y, in[4] = {*x, {0}, {0}, INTS(5, 3)};
    if (data_run("Resize", 13, &attribute, 1, in, 4, &y, 1) != SP_OK) abort();
    data_free(&in[3], 1);
    return y;
}

/* f16 and bf16 are the result of f32, rounded; f64 is close to it and has more bits. */
TEST(other_floats_are_interpolated_too)
{
    static const sp_dtype dtypes[] = {SP_F16, SP_BF16, SP_F64};
    static const char *const modes[] = {"linear", "cubic"};
    data_random random = {5};
    for (size_t i = 0; i < SP_COUNT_OF(dtypes) * SP_COUNT_OF(modes); i++) {
        const sp_dtype dtype = dtypes[i / 2];
        sp_array floats = data_floats(&random, &SHAPE(3, 4));
        sp_array x = cast(&floats, dtype), wide = cast(&x, SP_F32);
        sp_array got = resize(&x, modes[i % 2]), want = resize(&wide, modes[i % 2]);
        sp_array got_floats = cast(&got, SP_F32), rounded = cast(&want, dtype);
        CHECK_EQ_INT(got.dtype, dtype);
        double worst = 0;
        if (dtype == SP_F64) CHECK(data_is_close(&got_floats, &want, 1e-6, 0, &worst));
        else CHECK_EQ_MEM(got.data, rounded.data, (size_t)got.bytes);
        data_free((sp_array[]){floats, x, wide, got, want, got_floats, rounded}, 7);
    }
    const sp_text linear = sp__text("linear");
    const sp_attribute lines = data_attribute_text("mode", &linear);
    sp_array in[4] = {LIST(SP_F64, double, 1, 1 + 0x1p-40), {0}, {0}, INTS(4)};
    sp_array want = LIST(SP_F64, double, 1, 1 + 0x1p-42, 1 + 0x1.8p-41, 1 + 0x1p-40);
    check(&(op_case){"Resize", 13, &lines, 1, in, 4, &want});
    data_free(&want, 1);
    data_free(in, 4);
}

/* ---- pools ---- */

static sp_status pool(const char *op, int64_t kernel, int64_t stride, int64_t rounds_up,
                      sp_array *x, sp_array *y)
{
    const int64_t kernels[] = {kernel, kernel}, strides[] = {stride, stride};
    const sp_attribute attributes[] = {data_attribute_ints("kernel_shape", kernels, 2),
                                       data_attribute_ints("strides", strides, 2),
                                       data_attribute_int("ceil_mode", &rounds_up)};
    return data_run(op, 12, attributes, 3, x, 1, y, 1);
}

/* ceil((3 - 4) / 2) + 1 = 1, ceil((3 - 4) / 1) + 1 = 0. */
TEST(rounded_up_a_window_beyond_the_input_gives_one_output)
{
    sp_array y, x = LIST(SP_F32, float, 0, 1, 2, 3, 4, 5, 6, 7, 8);
    x.shape = SHAPE(1, 1, 3, 3);
    REQUIRE_OK(pool("MaxPool", 4, 2, 1, &x, &y));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[1,1,1,1]");
    CHECK(*(const float *)y.data == 8.0f);
    data_free(&y, 1);
    REQUIRE_OK(pool("AveragePool", 4, 2, 1, &x, &y));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[1,1,1,1]");
    CHECK(*(const float *)y.data == 4.0f);
    data_free(&y, 1);
    CHECK_STATUS(pool("MaxPool", 4, 1, 1, &x, &y), SP_MISMATCH);
    CHECK_MESSAGE("a window of 4 does not fit an input of 3");
    CHECK_STATUS(pool("AveragePool", 5, 2, 1, &x, &y), SP_MISMATCH);
    CHECK_STATUS(pool("MaxPool", 4, 2, 0, &x, &y), SP_MISMATCH);
    data_free(&x, 1);
}

/* ---- nearest Resize ---- */

enum { PIXELS = 20 };

typedef struct nearest_case {
    uint32_t version;
    const char *coordinate, *rounding; /* NULL: no choice in this version */
    int64_t in;
    float scale;      /* or */
    int64_t size;     /* 0 without one */
    float start, end; /* of the roi */
    int64_t want_count, want[PIXELS];
} nearest_case;

static const nearest_case nearest_cases[] = {
    /* Before version 11 a shrinking axis uses the next pixel, a growing one the previous pixel, and
     * coordinates are floats: 11 / 1.1 is 10. */
    {10, NULL, NULL, 4, 0.6f, 0, 0, 0, 2, {0, 2}},
    {10, NULL, NULL, 9, 0.6f, 0, 0, 0, 5, {0, 2, 4, 5, 7}},
    {10, NULL, NULL, 11, 0.35f, 0, 0, 0, 3, {0, 3, 6}},
    {10, NULL, NULL, 40, 0.1f, 0, 0, 0, 4, {0, 10, 20, 30}},
    {10, NULL, NULL, 12, 1.1f, 0, 0, 0, 13, {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10}},
    {9, NULL, NULL, 4, 2.5f, 0, 0, 0, 10, {0, 0, 0, 1, 1, 2, 2, 2, 3, 3}},
    /* The roi begins at 0.5. */
    {14, "tf_crop_and_resize", "round_prefer_floor", 6, 0, 4, 0.1f, 1, 4, {0, 2, 3, 5}},
    {14, "tf_crop_and_resize", "round_prefer_ceil", 6, 0, 4, 0.1f, 1, 4, {1, 2, 3, 5}},
    {14, "tf_crop_and_resize", "ceil", 6, 0, 4, 0.1f, 1, 4, {1, 2, 4, 5}},
    {14,
     "tf_crop_and_resize",
     "round_prefer_floor",
     6,
     0,
     9,
     0.1f,
     0.9f,
     9,
     {0, 1, 1, 2, 2, 3, 3, 4, 4}},
    {14, "tf_crop_and_resize", "ceil", 6, 0, 1, 0.3f, 0.7f, 1, {3}},
    /* 10.5 / 1.4 - 0.5 is 7, and 1.4 is not exact in double. */
    {14, "half_pixel", "ceil", 10, 0, 14, 0, 0, 14, {0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 7, 8, 9, 9}},
};

/* The output along one axis of 0, 1, 2, ... */
static void check_nearest(const nearest_case *c)
{
    const sp_text coordinate = sp__text(c->coordinate != NULL ? c->coordinate : "");
    const sp_text rounding = sp__text(c->rounding != NULL ? c->rounding : "");
    const sp_attribute attributes[] = {
        data_attribute_text("coordinate_transformation_mode", &coordinate),
        data_attribute_text("nearest_mode", &rounding)};
    const bool is_old = c->version < 11;
    const uint32_t scales = is_old ? 1 : 2;
    sp_array in[4] = {data_counted(SP_I32, SHAPE(c->in), 0)}, want;
    if (c->size > 0) in[3] = INTS(c->size);
    else in[scales] = LIST(SP_F32, float, c->scale);
    if (!is_old) in[1] = LIST(SP_F32, float, c->start, c->end);
    REQUIRE_OK(sp__array_init(&want, SP_I32, &SHAPE(c->want_count)));
    for (int64_t i = 0; i < c->want_count; i++) ((int32_t *)want.data)[i] = (int32_t)c->want[i];
    check(&(op_case){c->version == 9 ? "Upsample" : "Resize", c->version, attributes,
                     is_old ? 0 : 2, in, is_old ? 2 : 4, &want});
    data_free(in, 4);
    data_free(&want, 1);
}

TEST(nearest_takes_the_pixels_that_onnx_takes)
{
    for (size_t i = 0; i < SP_COUNT_OF(nearest_cases); i++) check_nearest(&nearest_cases[i]);
}

TEST_MAIN
