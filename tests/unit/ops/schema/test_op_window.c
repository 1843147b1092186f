/* SPDX-License-Identifier: Apache-2.0 */
/* Windows and strides far larger than their input: the cost follows the overlap with the input, not
 * the attributes. With a walk over all taps, each of these would take minutes or hours. */
#include <math.h>
#include <string.h>

#include "support/model_data.h"
#include "support/test.h"

enum { HUGE_SIZE = INT32_MAX, PLANES = 1000 };

/* Sizes of one dimension. */
typedef struct line {
    int64_t kernel, stride, pads[2];
} line;

/* `count` planes of one row, x[plane][i] = plane + i, through a pool along the row. */
static sp_status pool(const char *op, const line *of, int64_t planes, int64_t in, sp_array *y)
{
    const int64_t kernel[2] = {1, of->kernel}, stride[2] = {1, of->stride};
    const int64_t pads[4] = {0, of->pads[0], 0, of->pads[1]};
    const sp_attribute attributes[] = {data_attribute_ints("kernel_shape", kernel, 2),
                                       data_attribute_ints("strides", stride, 2),
                                       data_attribute_ints("pads", pads, 4)};
    sp_array x = data_counted(SP_F32, SHAPE(1, planes, 1, in), 0);
    for (int64_t i = 0; i < planes * in; i++) {
        const int64_t plane = i / in;
        ((float *)x.data)[i] = (float)(plane + i % in);
    }
    const sp_status status = data_run(op, 11, attributes, 3, &x, 1, y, 1);
    sp__array_deinit(&x);
    return status;
}

TEST(a_pool_that_is_nearly_all_padding_takes_no_time)
{
    static const char *const ops[] = {"MaxPool", "AveragePool"};
    const line before = {HUGE_SIZE, 1, {HUGE_SIZE - 1, 0}};
    const line around = {HUGE_SIZE, HUGE_SIZE, {HUGE_SIZE, HUGE_SIZE - 1}};
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        sp_array y;
        REQUIRE_OK(pool(ops[i], &before, PLANES, 1, &y));
        REQUIRE(y.bytes == PLANES * sizeof(float));
        for (int p = 0; p < PLANES; p++) CHECK(((float *)y.data)[p] == (float)p);
        sp__array_deinit(&y);
        /* Two windows: the first is all padding. */
        REQUIRE_OK(pool(ops[i], &around, PLANES, 3, &y));
        REQUIRE(y.bytes == 2 * PLANES * sizeof(float));
        for (int p = 0; p < PLANES; p++) {
            const float *row = (float *)y.data + 2 * p;
            const float want = (float)(p + (i == 0 ? 2 : 1));
            CHECK(i == 0 ? row[0] == -INFINITY : isnan(row[0]));
            CHECK(row[1] == want);
        }
        sp__array_deinit(&y);
    }
}

/* One input, W[0][filter] = filter + 1: `padding` is output_padding, cut off again by `pads`. */
static void check_transposed(int64_t padding, int64_t before)
{
    const int64_t stride = HUGE_SIZE, pads[2] = {before, padding - before};
    const sp_attribute attributes[] = {data_attribute_ints("strides", &stride, 1),
                                       data_attribute_ints("output_padding", &padding, 1),
                                       data_attribute_ints("pads", pads, 2)};
    sp_array y, in[2] = {data_counted(SP_F32, SHAPE(1, 1, 1), 0),
                         data_counted(SP_F32, SHAPE(1, PLANES, 1), 0)};
    *(float *)in[0].data = 3;
    for (int i = 0; i < PLANES; i++) ((float *)in[1].data)[i] = (float)(i + 1);
    REQUIRE_OK(data_run("ConvTranspose", 11, attributes, 3, in, 2, &y, 1));
    REQUIRE(y.bytes == PLANES * sizeof(float));
    for (int i = 0; i < PLANES; i++) {
        CHECK(((float *)y.data)[i] == (before == 0 ? 3 * (float)(i + 1) : 0));
    }
    sp__array_deinit(&y);
    data_free(in, 2);
}

/* Rows of one input and a long kernel: output i is 3 * (i + pad), from one tap. */
static void check_long_kernel(int64_t stride, int64_t pad)
{
    enum { TAPS = 1 << 19 };
    const int64_t strides[2] = {stride, 1}, pads[4] = {pad, 0, 0, 0};
    const sp_attribute attributes[] = {data_attribute_ints("strides", strides, 2),
                                       data_attribute_ints("pads", pads, 4)};
    sp_array y, in[2] = {data_counted(SP_F32, SHAPE(1, 1, 1, 1), 0),
                         data_counted(SP_F32, SHAPE(1, 1, TAPS, 1), 0)};
    *(float *)in[0].data = 3;
    for (int i = 0; i < TAPS; i++) ((float *)in[1].data)[i] = (float)i;
    REQUIRE_OK(data_run("ConvTranspose", 11, attributes, 2, in, 2, &y, 1));
    REQUIRE(y.bytes == (uint64_t)(TAPS - pad) * sizeof(float));
    const float *got = y.data;
    bool is_right = true;
    for (int64_t i = 0; i < TAPS - pad; i++) is_right = is_right && got[i] == 3 * (float)(i + pad);
    CHECK(is_right);
    sp__array_deinit(&y);
    data_free(in, 2);
}

/* Minutes if each output went through all taps. */
TEST(a_transposed_convolution_looks_at_the_taps_that_have_an_input)
{
    check_long_kernel(1, 0);
    check_long_kernel(2, 1);
    check_long_kernel(1 << 19, 1);
}

TEST(a_transposed_convolution_of_a_huge_stride_takes_no_time)
{
    check_transposed(0, 0);
    check_transposed(HUGE_SIZE - 1, 0);             /* the first of many places */
    check_transposed(HUGE_SIZE - 1, HUGE_SIZE - 1); /* and the last, which overlaps no input */
}

TEST_MAIN
