/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that copy or generate data: Concat, Split, Transpose, Pad, Reshape, Flatten, Constant,
 * ConstantOfShape, Shape. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

enum { MAX_PARTS = 40 };

/* ---- Concat and Split undo each other ---- */

static void check_concat(sp_dtype dtype, sp_shape rest, int64_t axis, const int64_t *sizes,
                         uint32_t parts)
{
    sp_array in[MAX_PARTS], whole, back[MAX_PARTS];
    const uint32_t at = (uint32_t)(axis < 0 ? axis + rest.rank : axis);
    int64_t total = 0;
    for (uint32_t i = 0; i < parts; i++) {
        sp_shape shape = rest;
        shape.dims[at] = sizes[i];
        in[i] = data_counted(dtype, shape, 1000 * i);
        total += sizes[i];
    }
    const sp_attribute axis_attribute = data_attribute_int("axis", &axis);
    REQUIRE_OK(data_run("Concat", 13, &axis_attribute, 1, in, parts, &whole, 1));
    CHECK_EQ_INT(whole.shape.dims[at], total);
    /* Element by element: the part, and the index in it. */
    const uint64_t inner = sp__shape_range_count(&whole.shape, at + 1, whole.shape.rank);
    const uint64_t count = inner > 0 && total > 0 ? sp__shape_count(&whole.shape) : 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t place = (int64_t)(i / inner % (uint64_t)total);
        uint32_t part = 0;
        for (; place >= sizes[part]; part++) place -= sizes[part];
        const uint64_t row = i / inner / (uint64_t)total;
        const uint64_t from = (row * (uint64_t)sizes[part] + (uint64_t)place) * inner + i % inner;
        CHECK_EQ_U64(data_element(&whole, i), data_element(&in[part], from));
    }
    const sp_attribute split[] = {axis_attribute, data_attribute_ints("split", sizes, parts)};
    REQUIRE_OK(data_run("Split", 11, split, 2, &whole, 1, back, parts));
    for (uint32_t i = 0; i < parts; i++) {
        CHECK(sp__shape_equal(&back[i].shape, &in[i].shape));
        CHECK_EQ_MEM(back[i].data, in[i].data, (size_t)in[i].bytes);
    }
    data_free(back, parts);
    const sp_array both[2] = {whole, data_ints(sizes, parts)};
    REQUIRE_OK(data_run("Split", 13, &axis_attribute, 1, both, 2, back, parts));
    for (uint32_t i = 0; i < parts; i++) CHECK_EQ_MEM(back[i].data, in[i].data, in[i].bytes);
    data_free(back, parts);
    data_free(in, parts);
    sp__array_deinit(&whole);
    sp_free(both[1].data);
}

TEST(concat_and_split_along_every_axis_with_many_parts)
{
    int64_t ones[MAX_PARTS];
    for (int i = 0; i < MAX_PARTS; i++) ones[i] = i % 4;
    check_concat(SP_F32, SHAPE(2, 3, 4), 0, (int64_t[]){1, 2, 3}, 3);
    check_concat(SP_F32, SHAPE(2, 3, 4), 1, (int64_t[]){1, 0, 3}, 3);
    check_concat(SP_I64, SHAPE(2, 3, 4), -1, (int64_t[]){5, 1}, 2);
    check_concat(SP_U8, SHAPE(7, 3), 1, ones, MAX_PARTS);
    check_concat(SP_BOOL, SHAPE(5), 0, (int64_t[]){4}, 1);
}

TEST(split_makes_equal_parts_and_from_18_on_a_smaller_last_one)
{
    sp_array x = data_counted(SP_F32, SHAPE(7, 2), 0), out[3];
    const int64_t three = 3;
    const sp_attribute outputs = data_attribute_int("num_outputs", &three);
    CHECK_STATUS(data_run("Split", 13, NULL, 0, &x, 1, out, 3), SP_MISMATCH);
    REQUIRE_OK(data_run("Split", 18, &outputs, 1, &x, 1, out, 3));
    CHECK_EQ_INT(out[0].shape.dims[0], 3);
    CHECK_EQ_INT(out[2].shape.dims[0], 1);
    CHECK_EQ_U64(data_element(&out[2], 0), 12);
    data_free(out, 3);
    const sp_array sizes[2] = {x, INTS(3, 3)};
    CHECK_STATUS(data_run("Split", 13, NULL, 0, sizes, 2, out, 2), SP_MISMATCH);
    const sp_array negative[2] = {x, INTS(9, -2)};
    CHECK_STATUS(data_run("Split", 13, NULL, 0, negative, 2, out, 2), SP_MISMATCH);
    sp_free(sizes[1].data);
    sp_free(negative[1].data);
    sp__array_deinit(&x);
}

TEST(concat_refuses_what_does_not_fit)
{
    const int64_t axis = 1, far = 5;
    const sp_attribute attribute = data_attribute_int("axis", &axis);
    const sp_attribute outside = data_attribute_int("axis", &far);
    sp_array in[2] = {data_counted(SP_F32, SHAPE(2, 3), 0), data_counted(SP_F32, SHAPE(3, 3), 0)},
             out;
    CHECK_STATUS(data_run("Concat", 13, &attribute, 1, in, 2, &out, 1), SP_MISMATCH);
    CHECK_MESSAGE("input 1 is f32 of shape [3,3]; input 0 is f32 of shape [2,3]");
    CHECK_STATUS(data_run("Concat", 13, &outside, 1, in, 1, &out, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("Concat", 13, NULL, 0, in, 1, &out, 1), SP_CORRUPT);
    CHECK_MESSAGE("attribute 'axis' is missing");
    data_free(in, 2);
}

/* ---- Transpose ---- */

static void check_transpose(sp_dtype dtype, sp_shape shape, const int64_t *perm)
{
    sp_array x = data_counted(dtype, shape, 0), y;
    const sp_attribute attribute = data_attribute_ints("perm", perm, shape.rank);
    REQUIRE_OK(data_run("Transpose", 13, &attribute, 1, &x, 1, &y, 1));
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(&shape, strides);
    for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
        uint64_t rest = i, from = 0;
        for (uint32_t d = shape.rank; d-- > 0; rest /= (uint64_t)y.shape.dims[d]) {
            from += rest % (uint64_t)y.shape.dims[d] * (uint64_t)strides[perm[d]];
        }
        CHECK_EQ_U64(data_element(&y, i), data_element(&x, from));
    }
    sp__array_deinit(&x);
    sp__array_deinit(&y);
}

TEST(transpose_permutes_any_type)
{
    check_transpose(SP_F32, SHAPE(1, 12, 12, 3), (int64_t[]){0, 3, 1, 2});
    check_transpose(SP_I64, SHAPE(2, 3, 4), (int64_t[]){2, 1, 0});
    check_transpose(SP_U8, SHAPE(300, 301), (int64_t[]){1, 0});
    check_transpose(SP_F16, SHAPE(2, 3, 4, 5), (int64_t[]){0, 1, 3, 2});
    check_transpose(SP_F32, SHAPE(1, 5, 1), (int64_t[]){2, 1, 0});
    check_transpose(SP_F32, SHAPE(2, 2, 2, 2, 2, 2, 2, 2), (int64_t[]){7, 5, 3, 1, 0, 2, 4, 6});
    check_transpose(SP_F32, SHAPE(3, 0, 2), (int64_t[]){2, 0, 1});
    sp_array x = data_counted(SP_F32, SHAPE(2, 3), 0), y;
    REQUIRE_OK(data_run("Transpose", 13, NULL, 0, &x, 1, &y, 1));
    CHECK_EQ_INT(y.shape.dims[0], 3);
    sp__array_deinit(&y);
    const int64_t twice[2] = {0, 0}, far[2] = {0, 2};
    const sp_attribute bad[2] = {data_attribute_ints("perm", twice, 2),
                                 data_attribute_ints("perm", far, 2)};
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(data_run("Transpose", 13, &bad[i], 1, &x, 1, &y, 1), SP_MISMATCH);
    }
    sp__array_deinit(&x);
}

/* ---- Pad ---- */

/* The coordinate that `mode` reads for one beyond the edge; -1 is the constant. */
static int64_t pad_from(const char *mode, int64_t at, int64_t size)
{
    if (at >= 0 && at < size) return at;
    if (mode[0] == 'c') return -1;
    if (mode[0] == 'e') return at < 0 ? 0 : size - 1;
    if (mode[0] == 'w') return (at % size + size) % size;
    while (at < 0 || at >= size) at = at < 0 ? -at : 2 * (size - 1) - at;
    return at;
}

static void check_pad(const char *mode_name, sp_shape shape, const int64_t *pads)
{
    const sp_text mode = sp__text(mode_name);
    const sp_attribute attribute = data_attribute_text("mode", &mode);
    sp_array in[3] = {data_counted(SP_F32, shape, 1), data_ints(pads, 2 * shape.rank),
                      data_counted(SP_F32, (sp_shape){0}, 77)},
             y;
    REQUIRE_OK(data_run("Pad", 19, &attribute, 1, in, 3, &y, 1));
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(&shape, strides);
    for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
        uint64_t rest = i, want = 0;
        int64_t from = 0;
        for (uint32_t d = shape.rank; d-- > 0; rest /= (uint64_t)y.shape.dims[d]) {
            const int64_t at = (int64_t)(rest % (uint64_t)y.shape.dims[d]) - pads[d];
            const int64_t source = pad_from(mode_name, at, shape.dims[d]);
            if (source < 0) want = 77;
            from += source * strides[d];
        }
        if (want == 0) want = data_element(&in[0], (uint64_t)from);
        CHECK_EQ_U64(data_element(&y, i), want);
    }
    data_free(in, 3);
    sp__array_deinit(&y);
}

TEST(pad_fills_mirrors_and_crops)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    for (int i = 0; i < 4; i++) {
        check_pad(modes[i], SHAPE(3, 4), (int64_t[]){1, 2, 2, 1});
        check_pad(modes[i], SHAPE(2, 3, 5), (int64_t[]){0, -1, 2, 1, 0, -3});
        check_pad(modes[i], SHAPE(5), (int64_t[]){3, 4});
        check_pad(modes[i], SHAPE(2, 1, 2, 3), (int64_t[]){0, 0, 1, 1, 0, 0, 1, 1});
        check_pad(modes[i], SHAPE(4, 4), (int64_t[]){0, -4, 0, 2});
    }
    check_pad("constant", SHAPE(2, 0), (int64_t[]){1, 1, 0, 2});
    check_pad("edge", SHAPE(2, 3), (int64_t[]){40000, 1, 2, 3}); /* several tiles */
}

/* Most dimensions are not padded: those are joined. */
TEST(pad_of_random_shapes)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    data_random random = {1};
    for (uint64_t n = 0; n < test_count(20000, 1000); n++) {
        const int mode = (int)(data_next(&random) % 4);
        sp_shape shape = {.rank = 1 + (uint32_t)(data_next(&random) % 5)};
        int64_t pads[2 * SP_MAX_RANK] = {0};
        for (uint32_t d = 0; d < shape.rank; d++) {
            int64_t *lead = &pads[d], *trail = &pads[d + shape.rank];
            shape.dims[d] = 2 + (int64_t)(data_next(&random) % 3);
            if (mode != 2 && data_next(&random) % 4 == 0) shape.dims[d] = 1;
            if (data_next(&random) % 3 != 0) continue;
            *lead = (int64_t)(data_next(&random) % 5) - 2;
            *trail = (int64_t)(data_next(&random) % 5) - 2;
            while (shape.dims[d] + *lead + *trail < 1) ++*trail;
        }
        check_pad(modes[mode], shape, pads);
    }
}

TEST(pad_takes_attributes_before_11_and_axes_from_18)
{
    const int64_t pads[] = {0, 1, 0, 0};
    const float value = 2.5f;
    const sp_attribute attributes[] = {data_attribute_ints("pads", pads, 4),
                                       data_attribute_float("value", &value)};
    sp_array x = data_counted(SP_F32, SHAPE(1, 2), 1), y;
    REQUIRE_OK(data_run("Pad", 2, attributes, 2, &x, 1, &y, 1));
    CHECK_EQ_INT(y.shape.dims[1], 3);
    CHECK(((float *)y.data)[0] == 2.5f);
    sp__array_deinit(&y);
    const sp_array in[4] = {x, INTS(1, 2), {0}, INTS(-1)};
    REQUIRE_OK(data_run("Pad", 18, NULL, 0, in, 4, &y, 1));
    CHECK_EQ_INT(y.shape.dims[1], 5);
    CHECK_EQ_U64(data_element(&y, 1), 1);
    sp__array_deinit(&y);
    const sp_array crops[2] = {x, INTS(0, -2, 0, -1)}, wrong[2] = {x, INTS(1, 1)};
    CHECK_STATUS(data_run("Pad", 11, NULL, 0, crops, 2, &y, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("Pad", 11, NULL, 0, wrong, 2, &y, 1), SP_MISMATCH);
    sp_free(in[1].data);
    sp_free(in[3].data);
    sp_free(crops[1].data);
    sp_free(wrong[1].data);
    sp__array_deinit(&x);
}

/* ---- views ---- */

static sp_status reshape(uint32_t version, const int64_t *zero, sp_shape from, const int64_t *to,
                         int64_t count, sp_shape *out)
{
    const sp_attribute allow = data_attribute_int("allowzero", zero);
    sp_array in[2] = {data_counted(SP_F32, from, 0), data_ints(to, count)}, y;
    const sp_status status =
        data_run("Reshape", version, &allow, version < 14 ? 0 : 1, in, 2, &y, 1);
    *out = y.shape;
    if (status == SP_OK) CHECK_EQ_MEM(y.data, in[0].data, (size_t)in[0].bytes);
    data_free(in, 2);
    sp__array_deinit(&y);
    return status;
}

TEST(reshape_takes_0_and_minus_1)
{
    const int64_t no = 0, yes = 1;
    sp_shape y;
    CHECK_OK(reshape(5, &no, SHAPE(2, 3, 4), (int64_t[]){0, -1}, 2, &y));
    CHECK_EQ_STR(sp__shape_print(&y).text, "[2,12]");
    CHECK_OK(reshape(13, &no, SHAPE(2, 3, 4), (int64_t[]){4, 3, 2}, 3, &y));
    CHECK_OK(reshape(14, &no, SHAPE(1), NULL, 0, &y));
    CHECK_EQ_INT(y.rank, 0);
    CHECK_OK(reshape(14, &yes, SHAPE(0, 3), (int64_t[]){3, 0}, 2, &y));
    CHECK_EQ_STR(sp__shape_print(&y).text, "[3,0]");
    CHECK_STATUS(reshape(14, &no, SHAPE(2, 3), (int64_t[]){4}, 1, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &no, SHAPE(2, 3), (int64_t[]){4, -1}, 2, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &no, SHAPE(2, 3), (int64_t[]){-1, -1}, 2, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &no, SHAPE(2, 3), (int64_t[]){-2}, 1, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &no, SHAPE(6), (int64_t[]){6, 0}, 2, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &no, SHAPE(2, 3), (int64_t[]){INT64_MAX, 2, -1}, 3, &y), SP_EXHAUSTED);
}

TEST(reshape_refuses_minus_1_beside_a_0_where_any_size_would_fit)
{
    const int64_t no = 0, yes = 1;
    sp_shape y;
    CHECK_STATUS(reshape(14, &no, SHAPE(0, 4), (int64_t[]){0, -1}, 2, &y), SP_MISMATCH);
    CHECK_MESSAGE("-1 and a dimension of 0");
    CHECK_STATUS(reshape(5, &no, SHAPE(2, 0), (int64_t[]){-1, 0}, 2, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &yes, SHAPE(2, 3), (int64_t[]){0, -1}, 2, &y), SP_MISMATCH);
    CHECK_STATUS(reshape(14, &yes, SHAPE(0, 3), (int64_t[]){3, 0, -1}, 3, &y), SP_MISMATCH);
    CHECK_OK(reshape(14, &no, SHAPE(0, 4), (int64_t[]){-1, 4}, 2, &y));
    CHECK_EQ_STR(sp__shape_print(&y).text, "[0,4]");
    CHECK_OK(reshape(14, &no, SHAPE(0, 4), (int64_t[]){-1}, 1, &y));
    CHECK_EQ_STR(sp__shape_print(&y).text, "[0]");
}

TEST(flatten_makes_two_dimensions)
{
    static const int64_t axes[] = {0, 1, 3, -1, -3};
    static const char *const want[] = {"[1,24]", "[2,12]", "[24,1]", "[6,4]", "[1,24]"};
    sp_array x = data_counted(SP_F32, SHAPE(2, 3, 4), 0), y;
    for (size_t i = 0; i < SP_COUNT_OF(axes); i++) {
        const sp_attribute axis = data_attribute_int("axis", &axes[i]);
        REQUIRE_OK(data_run("Flatten", 13, &axis, 1, &x, 1, &y, 1));
        CHECK_EQ_STR(sp__shape_print(&y.shape).text, want[i]);
        sp__array_deinit(&y);
    }
    sp__array_deinit(&x);
}

/* ---- constants ---- */

TEST(constant_of_shape_fills)
{
    sp_array shape = INTS(2, 3), y;
    REQUIRE_OK(data_run("ConstantOfShape", 9, NULL, 0, &shape, 1, &y, 1));
    CHECK_EQ_INT(y.dtype, SP_F32);
    for (uint64_t i = 0; i < 6; i++) CHECK_EQ_U64(data_element(&y, i), 0);
    sp__array_deinit(&y);
    const int16_t seven = 7;
    const sp_array_view value = {.dtype = SP_I16, .shape = SHAPE(1), .data = &seven};
    sp_attribute attribute = {.name = sp__text("value"), .type = SP_ATTRIBUTE_TENSOR, .count = 1};
    attribute.as.tensors = &value;
    REQUIRE_OK(data_run("ConstantOfShape", 9, &attribute, 1, &shape, 1, &y, 1));
    CHECK_EQ_INT(y.dtype, SP_I16);
    for (uint64_t i = 0; i < 6; i++) CHECK_EQ_U64(data_element(&y, i), 7);
    sp__array_deinit(&y);
    sp__array_deinit(&shape);
    sp_array bad[] = {INTS(-1), INTS(1 << 20, 1 << 20, 1 << 20)};
    CHECK_STATUS(data_run("ConstantOfShape", 9, NULL, 0, &bad[0], 1, &y, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("ConstantOfShape", 9, NULL, 0, &bad[1], 1, &y, 1), SP_EXHAUSTED);
    data_free(bad, 2);
}

TEST_MAIN
