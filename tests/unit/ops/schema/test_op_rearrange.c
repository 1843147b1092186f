/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that rearrange, count and sort: Squeeze, Unsqueeze, Size, Range, Tile, DepthToSpace,
 * SpaceToDepth, Trilu, EyeLike, TopK, NonZero. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

/* ---- views ---- */

/* "" is an error. */
static void check_view(const char *op, sp_shape from, sp_array axes, const char *want)
{
    sp_array in[2] = {data_counted(SP_F16, from, 5), axes}, y;
    const sp_attribute attribute = data_attribute_ints(
        "axes", axes.data, axes.data != NULL ? (uint32_t)axes.shape.dims[0] : 0);
    const uint32_t count = axes.data != NULL;
    for (int is_old = 0; is_old < 2; is_old++) {
        const sp_status status = is_old ? data_run(op, 11, &attribute, count, in, 1, &y, 1)
                                        : data_run(op, 13, NULL, 0, in, 1 + count, &y, 1);
        CHECK_STATUS(status, want[0] != '\0' ? SP_OK : SP_MISMATCH);
        if (status != SP_OK) continue;
        CHECK_EQ_STR(sp__shape_print(&y.shape).text, want);
        CHECK_EQ_MEM(y.data, in[0].data, (size_t)y.bytes);
        sp__array_deinit(&y);
    }
    data_free(in, 2);
}

TEST(squeeze_and_unsqueeze_take_axes_of_both_forms)
{
    check_view("Squeeze", SHAPE(1, 3, 1, 1), INTS(0, -1), "[3,1]");
    check_view("Squeeze", SHAPE(1, 3, 1, 0), (sp_array){0}, "[3,0]");
    check_view("Squeeze", SHAPE(1, 3), INTS(1), "");
    check_view("Squeeze", SHAPE(1, 1), INTS(0, 0), "");
    check_view("Squeeze", SHAPE(1, 3), INTS(2), "");
    check_view("Unsqueeze", SHAPE(2, 3), INTS(0, -1, 2), "[1,2,1,3,1]");
    check_view("Unsqueeze", (sp_shape){0}, INTS(0), "[1]");
    check_view("Unsqueeze", SHAPE(2), INTS(0, -3), "");
    check_view("Unsqueeze", SHAPE(2), INTS(3), "");
    check_view("Unsqueeze", SHAPE(1, 1, 1, 1, 1, 1, 1), INTS(0, 1), "");
}

/* ---- Range ---- */

static sp_array number(sp_dtype dtype, double value)
{
    sp_array array;
    if (sp__array_init(&array, dtype, &(sp_shape){0}) != SP_OK) abort();
    if (dtype == SP_F32) *(float *)array.data = (float)value;
    else if (dtype == SP_F64) *(double *)array.data = value;
    else if (dtype == SP_I16) *(int16_t *)array.data = (int16_t)value;
    else if (dtype == SP_I32) *(int32_t *)array.data = (int32_t)value;
    else *(int64_t *)array.data = (int64_t)value;
    return array;
}

static double value_of(const sp_array *array, uint64_t i)
{
    switch (array->dtype) {
    case SP_F32:
        return (double)((const float *)array->data)[i];
    case SP_F64:
        return ((const double *)array->data)[i];
    case SP_I16:
        return ((const int16_t *)array->data)[i];
    case SP_I32:
        return ((const int32_t *)array->data)[i];
    default:
        return (double)((const int64_t *)array->data)[i];
    }
}

/* A negative count is an error. */
static void check_range(sp_dtype dtype, double start, double limit, double delta, int64_t count)
{
    sp_array y, in[3] = {number(dtype, start), number(dtype, limit), number(dtype, delta)};
    const sp_status status = data_run("Range", 11, NULL, 0, in, 3, &y, 1);
    CHECK_STATUS(status, count >= 0 ? SP_OK : SP_MISMATCH);
    if (status == SP_OK) {
        CHECK_EQ_INT(y.shape.dims[0], count);
        for (int64_t i = 0; i < count; i++) {
            CHECK(value_of(&y, (uint64_t)i) == start + (double)i * delta);
        }
        sp__array_deinit(&y);
    }
    data_free(in, 3);
}

TEST(range_counts_up_and_down_in_every_type)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I16, SP_I32, SP_I64};
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) {
        check_range(dtypes[i], 3, 10, 3, 3);
        check_range(dtypes[i], 3, 9, 3, 2);
        check_range(dtypes[i], 10, -5, -4, 4);
        check_range(dtypes[i], 5, 5, 1, 0);
        check_range(dtypes[i], 5, 1, 1, 0);
        check_range(dtypes[i], 1, 5, 0, -1);
    }
    check_range(SP_F32, 0, 1, 0.25, 4);
    check_range(SP_F32, 0, 1.125, 0.25, 5);
    check_range(SP_F64, 0, (double)INFINITY, 1, -1);
    check_range(SP_F32, (double)NAN, 1, 1, -1);
    check_range(SP_I64, -9223372036854775808.0, 9223372036854774784.0, 4611686018427387904.0, 4);
    check_range(SP_I64, 0, 9e18, 1, -1);
}

TEST(range_takes_numbers_of_one_type)
{
    sp_array y, in[3] = {number(SP_I64, 1), number(SP_I64, 2), number(SP_I32, 1)};
    CHECK_STATUS(data_run("Range", 11, NULL, 0, in, 3, &y, 1), SP_MISMATCH);
    const sp_array lists[3] = {in[0], INTS(1, 2), in[0]};
    CHECK_STATUS(data_run("Range", 11, NULL, 0, lists, 3, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("input 1 has shape [2]; expected one number");
    sp_free(lists[1].data);
    data_free(in, 3);
}

/* ---- Tile ---- */

TEST(tile_repeats_any_dimension)
{
    data_random random = {12};
    for (int round = 0; round < 300; round++) {
        sp_shape shape = {.rank = (uint32_t)pick(&random, 0, 4)};
        int64_t repeats[SP_MAX_RANK];
        for (uint32_t i = 0; i < shape.rank; i++) {
            shape.dims[i] = pick(&random, round % 9 == 0 ? 0 : 1, 4);
            repeats[i] = pick(&random, round % 7 == 0 ? 0 : 1, 3);
        }
        sp_array y, in[2] = {data_counted(SP_U16, shape, 1), data_ints(repeats, shape.rank)};
        REQUIRE_OK(data_run("Tile", 13, NULL, 0, in, 2, &y, 1));
        for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
            uint64_t rest = i, from = 0, stride = 1;
            for (uint32_t d = shape.rank; d-- > 0;) {
                const uint64_t size = (uint64_t)shape.dims[d];
                from += rest % (uint64_t)y.shape.dims[d] % size * stride;
                rest /= (uint64_t)y.shape.dims[d];
                stride *= size;
            }
            CHECK_EQ_U64(data_element(&y, i), data_element(&in[0], from));
        }
        sp__array_deinit(&y);
        data_free(in, 2);
    }
}

TEST(tile_refuses_what_it_cannot_repeat)
{
    sp_array y, x = data_counted(SP_U8, SHAPE(2, 2, 2, 2, 2), 0);
    const sp_array repeats[] = {INTS(2, 2), INTS(1, 1, 1, 1, -1), INTS(1, 1, 1, 1, INT64_MAX),
                                INTS(2, 2, 2, 2, 2)};
    static const sp_status want[] = {SP_MISMATCH, SP_MISMATCH, SP_MISMATCH, SP_UNSUPPORTED};
    for (int i = 0; i < 4; i++) {
        const sp_array in[2] = {x, repeats[i]};
        CHECK_STATUS(data_run("Tile", 13, NULL, 0, in, 2, &y, 1), want[i]);
        if (i == 3) sp__array_deinit(&y); /* only the lowering knows */
        sp_free(repeats[i].data);
    }
    sp__array_deinit(&x);
}

/* ---- blocks ---- */

TEST(depth_to_space_and_back)
{
    const int64_t two = 2;
    const sp_text crd = sp__text("CRD");
    const sp_attribute attributes[] = {data_attribute_int("blocksize", &two),
                                       data_attribute_text("mode", &crd)};
    sp_array x = data_counted(SP_F32, SHAPE(2, 12, 3, 5), 0), y, back;
    for (uint32_t count = 1; count <= 2; count++) {
        REQUIRE_OK(data_run("DepthToSpace", 11, attributes, count, &x, 1, &y, 1));
        CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,3,6,10]");
        for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
            const uint64_t w = i % 10, h = i / 10 % 6, c = i / 60 % 3, n = i / 180;
            const uint64_t block = h % 2 * 2 + w % 2;
            const uint64_t channel = count == 1 ? block * 3 + c : c * 4 + block;
            CHECK_EQ_U64(data_element(&y, i), ((n * 12 + channel) * 3 + h / 2) * 5 + w / 2);
        }
        if (count == 1) {
            REQUIRE_OK(data_run("SpaceToDepth", 13, attributes, 1, &y, 1, &back, 1));
            CHECK_EQ_MEM(back.data, x.data, (size_t)x.bytes);
            sp__array_deinit(&back);
        }
        sp__array_deinit(&y);
    }
    sp__array_deinit(&x);
}

TEST(blocks_of_empty_images_do_not_wrap_the_channels)
{
    const int64_t sizes[] = {INT64_C(1) << 19, (INT64_C(1) << 20) - 1, 2};
    sp_array y, x = {.dtype = SP_U8, .shape = SHAPE(1, INT64_C(1) << 39, 0, 0)};
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        const sp_attribute block = data_attribute_int("blocksize", &sizes[i]);
        CHECK_STATUS(data_run("SpaceToDepth", 13, &block, 1, &x, 1, &y, 1), SP_EXHAUSTED);
    }
    x.shape.dims[1] = INT64_C(1) << 38;
    const sp_attribute block = data_attribute_int("blocksize", &sizes[2]);
    REQUIRE_OK(data_run("SpaceToDepth", 13, &block, 1, &x, 1, &y, 1));
    CHECK_EQ_INT(y.shape.dims[1], INT64_C(1) << 40);
    sp__array_deinit(&y);
}

TEST(blocks_must_fit)
{
    const int64_t sizes[] = {0, 3, INT64_MAX};
    sp_array y, x = data_counted(SP_F32, SHAPE(1, 4, 4, 4), 0),
                flat = data_counted(SP_F32, SHAPE(4), 0);
    for (int i = 0; i < 3; i++) {
        const sp_attribute block = data_attribute_int("blocksize", &sizes[i]);
        CHECK_STATUS(data_run("DepthToSpace", 13, &block, 1, &x, 1, &y, 1), SP_MISMATCH);
        CHECK_STATUS(data_run("SpaceToDepth", 13, &block, 1, &x, 1, &y, 1), SP_MISMATCH);
        CHECK_STATUS(data_run("SpaceToDepth", 13, &block, 1, &flat, 1, &y, 1), SP_MISMATCH);
    }
    const sp_text mode = sp__text("XYZ");
    const sp_attribute wrong[] = {data_attribute_int("blocksize", &sizes[1]),
                                  data_attribute_text("mode", &mode)};
    CHECK_STATUS(data_run("DepthToSpace", 13, wrong, 2, &x, 1, &y, 1), SP_CORRUPT);
    sp__array_deinit(&x);
    sp__array_deinit(&flat);
}

/* ---- diagonals ---- */

TEST(trilu_keeps_one_side_of_a_diagonal)
{
    static const int64_t diagonals[] = {0, 1, -1, 3, -4, 100, -100, INT64_MIN, INT64_MAX};
    static const sp_dtype dtypes[] = {SP_U8, SP_F16, SP_F32, SP_I64};
    for (int64_t upper = 0; upper < 2; upper++) {
        const sp_attribute attribute = data_attribute_int("upper", &upper);
        for (size_t i = 0; i < SP_COUNT_OF(diagonals); i++) {
            const int64_t k = diagonals[i];
            sp_array y, in[2] = {data_counted(dtypes[i % 4], SHAPE(2, 4, 5), 1), INTS(k)};
            REQUIRE_OK(data_run("Trilu", 14, &attribute, 1, in, 2, &y, 1));
            for (uint64_t e = 0; e < 40; e++) {
                const int64_t row = (int64_t)(e / 5 % 4), column = (int64_t)(e % 5);
                const bool stays = upper ? column - row >= k : column - row <= k;
                CHECK_EQ_U64(data_element(&y, e), stays ? e + 1 : 0);
            }
            sp__array_deinit(&y);
            data_free(in, 2);
        }
    }
    sp_array y, empty = data_counted(SP_F32, SHAPE(3, 0), 0), list = INTS(1);
    REQUIRE_OK(data_run("Trilu", 14, NULL, 0, &empty, 1, &y, 1));
    sp__array_deinit(&y);
    CHECK_STATUS(data_run("Trilu", 14, NULL, 0, &list, 1, &y, 1), SP_MISMATCH);
    sp__array_deinit(&empty);
    sp__array_deinit(&list);
}

TEST(eye_like_has_ones_of_any_type_on_a_diagonal)
{
    static const int64_t types[] = {1, 11, 10, 2, 7}, bad = 8;
    static const uint64_t ones[] = {0x3f800000, 0x3ff0000000000000, 0x3c00, 1, 1};
    sp_array x = data_counted(SP_I32, SHAPE(3, 4), 9), y;
    for (size_t i = 0; i < SP_COUNT_OF(types); i++) {
        const int64_t k = (int64_t)i - 2;
        const sp_attribute attributes[] = {data_attribute_int("dtype", &types[i]),
                                           data_attribute_int("k", &k)};
        REQUIRE_OK(data_run("EyeLike", 9, attributes, 2, &x, 1, &y, 1));
        for (uint64_t e = 0; e < 12; e++) {
            const bool is_on = (int64_t)(e % 4) - (int64_t)(e / 4) == k;
            CHECK_EQ_U64(data_element(&y, e), is_on ? ones[i] : 0);
        }
        sp__array_deinit(&y);
    }
    REQUIRE_OK(data_run("EyeLike", 9, NULL, 0, &x, 1, &y, 1));
    CHECK_EQ_INT(y.dtype, SP_I32);
    sp__array_deinit(&y);
    const sp_attribute text = data_attribute_int("dtype", &bad);
    CHECK_STATUS(data_run("EyeLike", 9, &text, 1, &x, 1, &y, 1), SP_UNSUPPORTED);
    x.shape = SHAPE(12);
    CHECK_STATUS(data_run("EyeLike", 9, NULL, 0, &x, 1, &y, 1), SP_MISMATCH);
    sp__array_deinit(&x);
}

/* ---- TopK ---- */

static bool is_more(float a, float b)
{
    return a > b || (isnan(a) && !isnan(b));
}

/* Repeatedly selects the best remaining element, the first of equal ones. */
static void check_line(const float *x, const float *values, const int64_t *indices, int64_t axis,
                       int64_t stride, int64_t count, bool is_largest)
{
    bool *is_taken = calloc((size_t)axis, sizeof(*is_taken));
    for (int64_t i = 0; i < count; i++) {
        int64_t best = -1;
        for (int64_t k = 0; k < axis; k++) {
            const float a = x[k * stride], b = best < 0 ? 0 : x[best * stride];
            if (is_taken[k]) continue;
            if (best < 0 || (is_largest ? is_more(a, b) : is_more(b, a))) best = k;
        }
        is_taken[best] = true;
        CHECK_EQ_INT(indices[i * stride], best);
        CHECK(data_is_same(values[i * stride], x[best * stride]));
    }
    free(is_taken);
}

TEST(top_k_sorts_and_keeps_the_order_of_equals)
{
    static const float few[] = {1, 2, 3, -0.0f, 0.0f, NAN, INFINITY, -1};
    data_random random = {3};
    for (int round = 0; round < 300; round++) {
        const int64_t largest = round % 2, axis = pick(&random, -3, 2);
        const sp_shape shape =
            SHAPE(pick(&random, 1, 4), pick(&random, 1, 30), pick(&random, 1, 4));
        const uint32_t at = (uint32_t)(axis < 0 ? axis + 3 : axis);
        const int64_t size = shape.dims[at], count = pick(&random, 0, size);
        const sp_attribute attributes[] = {data_attribute_int("axis", &axis),
                                           data_attribute_int("largest", &largest)};
        sp_array in[2] = {data_floats(&random, &shape), INTS(count)}, out[2];
        for (uint64_t i = 0; i < in[0].bytes / 4 && round % 3 != 0; i++) {
            ((float *)in[0].data)[i] = few[data_next(&random) % SP_COUNT_OF(few)];
        }
        REQUIRE_OK(data_run("TopK", 11, attributes, 2, in, 2, out, 2));
        const int64_t outer = (int64_t)sp__shape_range_count(&shape, 0, at);
        const int64_t inner = (int64_t)sp__shape_range_count(&shape, at + 1, 3);
        for (int64_t line = 0; line < outer * inner && count > 0; line++) {
            const int64_t from = line / inner * size * inner + line % inner;
            const int64_t to = line / inner * count * inner + line % inner;
            check_line((float *)in[0].data + from, (float *)out[0].data + to,
                       (int64_t *)out[1].data + to, size, inner, count, largest != 0);
        }
        data_free(in, 2);
        data_free(out, 2);
    }
}

TEST(top_k_knows_signs_and_versions)
{
    const int64_t three = 3, four = 4;
    const sp_attribute attributes[] = {data_attribute_int("k", &three),
                                       data_attribute_int("k", &four)};
    sp_array x = data_counted(SP_F32, SHAPE(3), 0x3f800000), out[2];
    REQUIRE_OK(data_run("TopK", 1, attributes, 1, &x, 1, out, 2));
    CHECK_EQ_U64(data_element(&out[1], 0), 2);
    data_free(out, 2);
    CHECK_STATUS(data_run("TopK", 1, attributes + 1, 1, &x, 1, out, 2), SP_MISMATCH);
    CHECK_MESSAGE("k is 4 for a dimension of 3");
    static const sp_dtype dtypes[] = {SP_I8, SP_U8, SP_I16, SP_U16, SP_I32, SP_U32, SP_I64, SP_U64};
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) {
        sp_array in[2] = {data_counted(dtypes[i], SHAPE(2), UINT64_MAX), INTS(1)};
        REQUIRE_OK(data_run("TopK", 11, NULL, 0, in, 2, out, 2)); /* all bits, and 0 */
        CHECK_EQ_U64(data_element(&out[1], 0), i % 2 == 0 ? 1 : 0);
        data_free(in, 2);
        data_free(out, 2);
    }
    sp__array_deinit(&x);
}

/* ---- NonZero ---- */

static void check_non_zero(const sp_array *x, const int64_t *want, int64_t rank, int64_t found)
{
    sp_array y;
    REQUIRE_OK(data_run("NonZero", 13, NULL, 0, x, 1, &y, 1));
    CHECK_EQ_INT(y.dtype, SP_I64);
    CHECK_EQ_INT(y.shape.rank, 2);
    CHECK_EQ_INT(y.shape.dims[0], rank);
    CHECK_EQ_INT(y.shape.dims[1], found);
    CHECK_EQ_MEM(y.data, want, (size_t)y.bytes);
    sp__array_deinit(&y);
}

TEST(non_zero_finds_places_in_order)
{
    static const int64_t want[] = {0, 1, 1, 1, 0, 2};
    sp_array x = data_counted(SP_I32, SHAPE(2, 3), 0);
    const int32_t ints[] = {0, 7, 0, -1, 0, 2};
    memcpy(x.data, ints, sizeof(ints));
    check_non_zero(&x, want, 2, 3);
    sp__array_deinit(&x);
    x = data_counted(SP_BOOL, SHAPE(2, 3), 0);
    const unsigned char bools[] = {0, 1, 0, 1, 0, 1};
    memcpy(x.data, bools, sizeof(bools));
    check_non_zero(&x, want, 2, 3);
    sp__array_deinit(&x);
    x = data_counted(SP_U8, (sp_shape){0}, 5); /* no dimension, so no coordinate */
    check_non_zero(&x, want, 0, 1);
    sp__array_deinit(&x);
    x = data_counted(SP_I64, SHAPE(2, 0), 0);
    check_non_zero(&x, want, 2, 0);
    sp__array_deinit(&x);
}

TEST(non_zero_takes_both_zeros_of_floats_for_0_and_nothing_else)
{
    static const int64_t want[] = {2, 3};
    sp_array x = data_counted(SP_F32, SHAPE(4), 0);
    const uint32_t floats[] = {0, 0x80000000, 0xffc00000, 1}; /* a NaN, the smallest number */
    memcpy(x.data, floats, sizeof(floats));
    check_non_zero(&x, want, 1, 2);
    sp__array_deinit(&x);
    x = data_counted(SP_BF16, SHAPE(4), 0);
    const uint16_t halves[] = {0, 0x8000, 0x3f80, 0xff80};
    memcpy(x.data, halves, sizeof(halves));
    check_non_zero(&x, want, 1, 2);
    sp__array_deinit(&x);
    x = data_counted(SP_I16, SHAPE(4), 0);
    const int16_t ints[] = {0, 0, INT16_MIN, 1};
    memcpy(x.data, ints, sizeof(ints));
    check_non_zero(&x, want, 1, 2);
    sp__array_deinit(&x);
}

TEST_MAIN
