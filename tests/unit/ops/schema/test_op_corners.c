/* SPDX-License-Identifier: Apache-2.0 */
/* The behaviour of ops where ONNX leaves it open or its runtimes differ: docs/decisions/0032. */
#include "support/model_data.h"
#include "support/test.h"

/* Checks that the elements of `y` are those of `want`; frees both. */
static void check_elements(sp_array *y, sp_array want)
{
    CHECK_EQ_U64(sp__shape_count(&y->shape), sp__shape_count(&want.shape));
    for (uint64_t i = 0; i < sp__shape_count(&want.shape); i++) {
        CHECK_EQ_U64(data_element(y, i), data_element(&want, i));
    }
    sp__array_deinit(y);
    sp__array_deinit(&want);
}

static void check_empty_sequence(const char *op, int64_t gates, uint32_t outputs)
{
    sp_array y[3];
    sp_array in[7] = {
        data_counted(SP_F32, SHAPE(2, 1, 1), 1),     data_counted(SP_F32, SHAPE(1, gates, 1), 1),
        data_counted(SP_F32, SHAPE(1, gates, 1), 1), {0},
        data_counted(SP_I32, SHAPE(1), 0), /* the length */
        data_counted(SP_F32, SHAPE(1, 1, 1), 3),     data_counted(SP_F32, SHAPE(1, 1, 1), 5)};
    REQUIRE_OK(data_run(op, 14, NULL, 0, in, outputs == 3 ? 7 : 6, y, outputs));
    CHECK_EQ_U64(data_element(&y[0], 0), 0);
    CHECK_EQ_U64(data_element(&y[0], 1), 0);
    CHECK_EQ_U64(data_element(&y[1], 0), 3);
    if (outputs == 3) CHECK_EQ_U64(data_element(&y[2], 0), 5);
    data_free(in, 7);
    data_free(y, outputs);
}

TEST(an_empty_sequence_leaves_the_states_as_they_were)
{
    check_empty_sequence("RNN", 1, 2);
    check_empty_sequence("GRU", 3, 2);
    check_empty_sequence("LSTM", 4, 3);
}

static void check_pad(const char *name, const int64_t *pads, sp_array want)
{
    const sp_text text = sp__text(name);
    const sp_attribute mode = data_attribute_text("mode", &text);
    sp_array in[2] = {data_ints((int64_t[]){0, 1, 2, 3}, 4), data_ints(pads, 2)}, y;
    REQUIRE_OK(data_run("Pad", 19, &mode, 1, in, 2, &y, 1));
    check_elements(&y, want);
    data_free(in, 2);
}

TEST(pads_repeat_the_dimension_as_it_was_before_it_was_cropped)
{
    check_pad("wrap", (int64_t[]){-1, 2}, data_ints((int64_t[]){1, 2, 3, 0, 1}, 5));
    check_pad("wrap", (int64_t[]){2, -1}, data_ints((int64_t[]){2, 3, 0, 1, 2}, 5));
    check_pad("reflect", (int64_t[]){-3, 3}, data_ints((int64_t[]){3, 2, 1, 0}, 4));
}

TEST(any_number_but_0_is_true)
{
    const int64_t two = 2, minus = -1, one = 1;
    const sp_attribute keeps = data_attribute_int("keepdims", &two);
    const sp_attribute largest = data_attribute_int("largest", &minus);
    sp_array x[2] = {data_ints((int64_t[]){4, 7, 5}, 3), data_ints(&one, 1)}, y, top[2];
    REQUIRE_OK(data_run("ReduceMax", 13, &keeps, 1, x, 1, &y, 1));
    CHECK_EQ_INT(y.shape.rank, 1);
    sp__array_deinit(&y);
    REQUIRE_OK(data_run("ArgMax", 13, &keeps, 1, x, 1, &y, 1));
    CHECK_EQ_INT(y.shape.rank, 1);
    sp__array_deinit(&y);
    REQUIRE_OK(data_run("TopK", 11, &largest, 1, x, 2, top, 2));
    CHECK_EQ_U64(data_element(&top[0], 0), 7);
    data_free(top, 2);
    data_free(x, 2);
}

/* Of the elements 1, 2, ...: a window of `size` at each `stride`. */
static sp_status pool(const char *padding, int64_t length, int64_t size, int64_t stride,
                      int64_t rounds_up, sp_array *y)
{
    const sp_text text = sp__text(padding);
    const sp_attribute attributes[4] = {
        data_attribute_text("auto_pad", &text), data_attribute_ints("kernel_shape", &size, 1),
        data_attribute_ints("strides", &stride, 1), data_attribute_int("ceil_mode", &rounds_up)};
    sp_array x = data_counted(SP_F32, SHAPE(1, 1, length), 1);
    const sp_status status = data_run("MaxPool", 12, attributes, 4, &x, 1, y, 1);
    sp__array_deinit(&x);
    return status;
}

TEST(same_padding_never_crops)
{
    static const char *const modes[] = {"SAME_UPPER", "SAME_LOWER"};
    for (int i = 0; i < 2; i++) {
        sp_array y;
        REQUIRE_OK(pool(modes[i], 5, 1, 3, 0, &y));
        check_elements(&y, data_ints((int64_t[]){1, 4}, 2));
    }
}

TEST(a_window_larger_than_its_padded_input_is_refused)
{
    sp_array y;
    CHECK_STATUS(pool("NOTSET", 3, 4, 2, 0, &y), SP_MISMATCH);
    CHECK_MESSAGE("a window of 4 does not fit an input of 3");
    CHECK_STATUS(pool("NOTSET", 3, 5, 2, 1, &y), SP_MISMATCH);
    REQUIRE_OK(pool("NOTSET", 3, 4, 2, 1, &y)); /* reaches beyond by less than a stride */
    check_elements(&y, data_ints((int64_t[]){3}, 1));
}

TEST(a_scalar_has_no_coordinates)
{
    for (uint64_t value = 0; value < 2; value++) {
        sp_array x = data_counted(SP_F32, (sp_shape){0}, value), y;
        REQUIRE_OK(data_run("NonZero", 13, NULL, 0, &x, 1, &y, 1));
        CHECK_EQ_INT(y.shape.rank, 2);
        CHECK_EQ_INT(y.shape.dims[0], 0);
        CHECK_EQ_INT(y.shape.dims[1], (int64_t)value);
        sp__array_deinit(&x);
        sp__array_deinit(&y);
    }
}

TEST(the_extreme_of_no_elements_is_refused_also_if_nothing_asks_for_it)
{
    static const char *const ops[] = {"ArgMax", "ArgMin"};
    const int64_t axis = 1;
    const sp_attribute attribute = data_attribute_int("axis", &axis);
    sp_array x = data_counted(SP_F32, SHAPE(0, 0), 0), y;
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(data_run(ops[i], 13, &attribute, 1, &x, 1, &y, 1), SP_MISMATCH);
        CHECK_MESSAGE("the reduced dimension of shape");
    }
    sp__array_deinit(&x);
}

TEST_MAIN
