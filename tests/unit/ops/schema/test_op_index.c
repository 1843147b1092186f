/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that gather and scatter elements: Slice, Gather, GatherElements, GatherND, ScatterElements,
 * ScatterND, OneHot. Each compared with the definition, element by element, on random shapes. */
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

/* One dtype per element size. */
static const sp_dtype dtypes[] = {SP_U8, SP_F16, SP_F32, SP_I64};

static int64_t pick(data_random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(data_next(random) % (uint64_t)(high - low + 1));
}

static sp_shape pick_shape(data_random *random, uint32_t least, uint32_t most, int64_t low)
{
    sp_shape shape = {.rank = (uint32_t)pick(random, least, most)};
    for (uint32_t i = 0; i < shape.rank; i++) shape.dims[i] = pick(random, low, 5);
    return shape;
}

/* Coordinates of element `index`, outermost first. */
static void coordinates(const sp_shape *shape, uint64_t index, int64_t at[SP_MAX_RANK])
{
    for (uint32_t i = shape->rank; i-- > 0; index /= (uint64_t)shape->dims[i]) {
        at[i] = (int64_t)(index % (uint64_t)shape->dims[i]);
    }
}

static uint64_t offset_of(const sp_shape *shape, const int64_t at[SP_MAX_RANK])
{
    int64_t offset = 0;
    for (uint32_t i = 0; i < shape->rank; i++) offset = offset * shape->dims[i] + at[i];
    return (uint64_t)offset;
}

/* Indices in [-size, size), of either type. */
static sp_array pick_indices(data_random *random, sp_shape shape, int64_t size)
{
    sp_array array;
    if (sp__array_init(&array, data_next(random) % 2 ? SP_I32 : SP_I64, &shape) != SP_OK) abort();
    for (uint64_t i = 0; i < sp__shape_count(&shape); i++) {
        const int64_t index = pick(random, -size, size - 1);
        if (array.dtype == SP_I64) ((int64_t *)array.data)[i] = index;
        else ((int32_t *)array.data)[i] = (int32_t)index;
    }
    return array;
}

static int64_t index_at(const sp_array *array, uint64_t i, int64_t size)
{
    const sp_array_view view = {array->dtype, array->shape, array->data};
    const int64_t index = sp__array_view_int(&view, i);
    return index < 0 ? index + size : index;
}

/* ---- Slice ---- */

/* As numpy, except that a start too far below counts as the first element. */
static void check_slice(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, SP_MAX_RANK, seed % 7 == 0 ? 0 : 1);
    int64_t starts[SP_MAX_RANK] = {0}, ends[SP_MAX_RANK] = {0}, axes[SP_MAX_RANK] = {0},
            steps[SP_MAX_RANK] = {0};
    for (uint32_t i = 0; i < shape.rank; i++) {
        axes[i] = seed % 2 == 0 ? i : (int64_t)i - shape.rank;
        starts[i] = pick(random, -7, 7);
        ends[i] = pick(random, 0, 9) == 0 ? INT64_MAX : pick(random, -7, 7);
        steps[i] = pick(random, 0, 3) == 0 ? pick(random, -3, -1) : pick(random, 1, 3);
        if (pick(random, 0, 9) == 0) ends[i] = INT64_MIN;
        if (pick(random, 0, 9) == 0) steps[i] = steps[i] < 0 ? INT64_MIN : INT64_MAX;
    }
    const int64_t rank = shape.rank;
    sp_array in[5] = {data_counted(dtypes[seed % 4], shape, 1), data_ints(starts, rank),
                      data_ints(ends, rank), data_ints(axes, rank), data_ints(steps, rank)};
    sp_array y;
    REQUIRE_OK(data_run("Slice", 13, NULL, 0, in, 5, &y, 1));
    int64_t places[SP_MAX_RANK][8];
    for (uint32_t i = 0; i < shape.rank; i++) {
        const int64_t size = shape.dims[i];
        int64_t count = 0, at = starts[i] < 0 ? starts[i] + size : starts[i];
        int64_t end = ends[i] < 0 ? (ends[i] < -size ? -1 : ends[i] + size) : ends[i];
        if (steps[i] < 0 && at > size - 1) at = size - 1;
        if (at < 0) at = 0;
        if (steps[i] > 0 && end > size) end = size;
        while (steps[i] > 0 ? at < end : size > 0 && at > end) {
            places[i][count++] = at;
            if (steps[i] > 8 || steps[i] < -8) break;
            at += steps[i];
        }
        REQUIRE_EQ_INT(y.shape.dims[i], count);
    }
    for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
        int64_t at[SP_MAX_RANK] = {0};
        coordinates(&y.shape, i, at);
        for (uint32_t d = 0; d < shape.rank; d++) at[d] = places[d][at[d]];
        CHECK_EQ_U64(data_element(&y, i), data_element(&in[0], offset_of(&shape, at)));
    }
    sp__array_deinit(&y);
    data_free(in, 5);
}

TEST(slices_of_random_bounds_and_steps)
{
    data_random random = {4};
    for (uint64_t i = 0; i < 2000; i++) check_slice(&random, i);
}

TEST(slice_takes_attributes_before_10)
{
    const int64_t starts[] = {1, -2}, ends[] = {3, 1000}, axes[] = {0, 2};
    const sp_attribute attributes[] = {data_attribute_ints("starts", starts, 2),
                                       data_attribute_ints("ends", ends, 2),
                                       data_attribute_ints("axes", axes, 2)};
    sp_array x = data_counted(SP_F32, SHAPE(4, 2, 5), 0), y;
    REQUIRE_OK(data_run("Slice", 9, attributes, 3, &x, 1, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,2,2]");
    CHECK_EQ_U64(data_element(&y, 0), 13);
    sp__array_deinit(&y);
    REQUIRE_OK(data_run("Slice", 1, attributes, 2, &x, 1, &y, 1)); /* the first two axes */
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,2,5]");
    sp__array_deinit(&y);
    sp__array_deinit(&x);
}

TEST(slice_refuses_what_has_no_meaning)
{
    sp_array x = data_counted(SP_F32, SHAPE(4, 2), 0), y;
    const sp_array cases[][5] = {{x, INTS(0), INTS(1, 1), {0}, {0}},
                                 {x, INTS(0, 0), INTS(1, 1), INTS(0), {0}},
                                 {x, INTS(0, 0), INTS(1, 1), INTS(0, 1), INTS(1)},
                                 {x, INTS(0, 0), INTS(1, 1), INTS(0, -2), {0}},
                                 {x, INTS(0), INTS(1), INTS(0), INTS(0)},
                                 {x, INTS(0), INTS(1), INTS(2), {0}}};
    static const char *const messages[] = {"1 starts and 2 ends",      "2 starts and 1 axes",
                                           "2 starts and 1 steps",     "axis 0 is given twice",
                                           "the step along axis 0 is", "axis 2"};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        CHECK_STATUS(data_run("Slice", 13, NULL, 0, cases[i], 5, &y, 1), SP_MISMATCH);
        CHECK_MESSAGE(messages[i]);
        for (int k = 1; k < 5; k++) sp_free(cases[i][k].data);
    }
    sp__array_deinit(&x);
}

/* ---- Gather ---- */

static void check_gather(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, 4, 1);
    const sp_shape places = pick_shape(random, 0, 3, seed % 9 == 0 ? 0 : 1);
    const uint32_t axis = (uint32_t)pick(random, 0, shape.rank - 1);
    const int64_t given = seed % 2 ? (int64_t)axis : (int64_t)axis - shape.rank;
    const sp_attribute attribute = data_attribute_int("axis", &given);
    sp_array in[2] = {data_counted(dtypes[seed % 4], shape, 1),
                      pick_indices(random, places, shape.dims[axis])};
    sp_array y;
    REQUIRE_OK(data_run("Gather", 13, &attribute, 1, in, 2, &y, 1));
    CHECK_EQ_INT(y.shape.rank, shape.rank - 1 + places.rank);
    for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
        int64_t at[SP_MAX_RANK] = {0}, from[SP_MAX_RANK] = {0};
        coordinates(&y.shape, i, at);
        for (uint32_t d = 0; d < shape.rank; d++) {
            from[d] = d < axis ? at[d] : d > axis ? at[d - 1 + places.rank] : 0;
        }
        from[axis] = index_at(&in[1], offset_of(&places, at + axis), shape.dims[axis]);
        CHECK_EQ_U64(data_element(&y, i), data_element(&in[0], offset_of(&shape, from)));
    }
    sp__array_deinit(&y);
    data_free(in, 2);
}

static void check_gather_elements(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, 4, 1);
    const uint32_t axis = (uint32_t)pick(random, 0, shape.rank - 1);
    const int64_t given = axis;
    sp_shape places = shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        places.dims[i] = pick(random, seed % 9 == 0 ? 0 : 1, shape.dims[i]);
    }
    places.dims[axis] = pick(random, 0, 7);
    const sp_attribute attribute = data_attribute_int("axis", &given);
    sp_array in[2] = {data_counted(dtypes[seed % 4], shape, 1),
                      pick_indices(random, places, shape.dims[axis])};
    sp_array y;
    REQUIRE_OK(data_run("GatherElements", 13, &attribute, 1, in, 2, &y, 1));
    CHECK(sp__shape_equal(&y.shape, &places));
    for (uint64_t i = 0; i < sp__shape_count(&places); i++) {
        int64_t at[SP_MAX_RANK] = {0};
        coordinates(&places, i, at);
        at[axis] = index_at(&in[1], i, shape.dims[axis]);
        CHECK_EQ_U64(data_element(&y, i), data_element(&in[0], offset_of(&shape, at)));
    }
    sp__array_deinit(&y);
    data_free(in, 2);
}

/* All indices within the smallest dimension. */
static void check_gather_nd(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, 5, 1);
    const int64_t batch = pick(random, 0, shape.rank - 1);
    const int64_t depth = pick(random, 1, shape.rank - batch);
    int64_t least = 5;
    for (uint32_t i = 0; i < shape.rank; i++) least = shape.dims[i] < least ? shape.dims[i] : least;
    sp_shape places = {.rank = (uint32_t)batch};
    memcpy(places.dims, shape.dims, sizeof(places.dims));
    if (pick(random, 0, 1)) places.dims[places.rank++] = pick(random, 0, 4);
    const uint32_t lead = places.rank;
    places.dims[places.rank++] = depth;
    const sp_attribute attribute = data_attribute_int("batch_dims", &batch);
    sp_array in[2] = {data_counted(dtypes[seed % 4], shape, 1),
                      pick_indices(random, places, least)};
    sp_array y;
    REQUIRE_OK(data_run("GatherND", 12, &attribute, 1, in, 2, &y, 1));
    for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
        int64_t at[SP_MAX_RANK] = {0}, from[SP_MAX_RANK] = {0}, index[SP_MAX_RANK] = {0};
        coordinates(&y.shape, i, at);
        memcpy(index, at, sizeof(index));
        for (uint32_t d = 0; d < shape.rank; d++) {
            if (d < batch) from[d] = at[d];
            else if (d < batch + depth) {
                index[lead] = d - batch;
                from[d] = index_at(&in[1], offset_of(&places, index), shape.dims[d]);
            } else from[d] = at[lead + d - (uint32_t)(batch + depth)];
        }
        CHECK_EQ_U64(data_element(&y, i), data_element(&in[0], offset_of(&shape, from)));
    }
    sp__array_deinit(&y);
    data_free(in, 2);
}

TEST(gathers_of_random_shapes_and_indices)
{
    data_random random = {5};
    for (uint64_t i = 0; i < 600; i++) {
        check_gather(&random, i);
        check_gather_elements(&random, i);
        check_gather_nd(&random, i);
    }
}

/* ---- Scatter ---- */

static int64_t reduce(int reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case 1:
        return a + b;
    case 2:
        return a * b;
    case 3:
        return a > b ? a : b;
    case 4:
        return a < b ? a : b;
    default:
        return b;
    }
}

static void take_in(sp_array *y, uint64_t at, int reduction, uint64_t update)
{
    const size_t size = sp_dtype_bytes(y->dtype);
    const int64_t value = reduce(reduction, (int64_t)data_element(y, at), (int64_t)update);
    memcpy((char *)y->data + at * size, &value, size);
}

static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
/* Unsigned or wide, so that elements keep their values. */
static const sp_dtype scatter_dtypes[] = {SP_U8, SP_U16, SP_U32, SP_I64, SP_U64};

static sp_array copy_of(const sp_array *from)
{
    sp_array copy;
    if (sp__array_init(&copy, from->dtype, &from->shape) != SP_OK) abort();
    memcpy(copy.data, from->data, (size_t)from->bytes);
    return copy;
}

static void check_scatter_elements(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, 4, 1);
    const int64_t axis = pick(random, 0, shape.rank - 1);
    const sp_dtype dtype = scatter_dtypes[seed % 5];
    const sp_text name = sp__text(reductions[seed / 5 % 5]);
    sp_shape places = shape;
    for (uint32_t i = 0; i < shape.rank; i++) {
        places.dims[i] = pick(random, seed % 9 == 0 ? 0 : 1, shape.dims[i]);
    }
    places.dims[axis] = pick(random, 0, 9);
    const sp_attribute attributes[] = {data_attribute_int("axis", &axis),
                                       data_attribute_text("reduction", &name)};
    sp_array in[3] = {data_counted(dtype, shape, 1), pick_indices(random, places, shape.dims[axis]),
                      data_counted(dtype, places, 3)};
    sp_array y, want = copy_of(&in[0]);
    REQUIRE_OK(data_run("ScatterElements", 18, attributes, 2, in, 3, &y, 1));
    for (uint64_t i = 0; i < sp__shape_count(&places); i++) {
        int64_t at[SP_MAX_RANK] = {0};
        coordinates(&places, i, at);
        at[axis] = index_at(&in[1], i, shape.dims[axis]);
        take_in(&want, offset_of(&shape, at), (int)(seed / 5 % 5), data_element(&in[2], i));
    }
    CHECK_EQ_MEM(y.data, want.data, (size_t)y.bytes);
    sp__array_deinit(&y);
    sp__array_deinit(&want);
    data_free(in, 3);
}

static void check_scatter_nd(data_random *random, uint64_t seed)
{
    const sp_shape shape = pick_shape(random, 1, 4, 1);
    const uint32_t depth = (uint32_t)pick(random, 1, shape.rank);
    const sp_dtype dtype = scatter_dtypes[seed % 5];
    const sp_text name = sp__text(reductions[seed / 5 % 5]);
    const sp_attribute attribute = data_attribute_text("reduction", &name);
    int64_t least = 5;
    for (uint32_t i = 0; i < shape.rank; i++) least = shape.dims[i] < least ? shape.dims[i] : least;
    const int64_t count = pick(random, 0, 9);
    sp_shape updates = {.rank = 1 + shape.rank - depth, .dims = {count}};
    for (uint32_t i = depth; i < shape.rank; i++) updates.dims[1 + i - depth] = shape.dims[i];
    const sp_shape places = SHAPE(count, depth);
    sp_array in[3] = {data_counted(dtype, shape, 1), pick_indices(random, places, least),
                      data_counted(dtype, updates, 3)};
    sp_array y, want = copy_of(&in[0]);
    REQUIRE_OK(data_run("ScatterND", 18, &attribute, 1, in, 3, &y, 1));
    for (uint64_t i = 0; i < sp__shape_count(&updates); i++) {
        int64_t at[SP_MAX_RANK] = {0}, to[SP_MAX_RANK] = {0};
        coordinates(&updates, i, at);
        for (uint32_t d = 0; d < shape.rank; d++) {
            to[d] = d < depth ? index_at(&in[1], (uint64_t)(at[0] * depth + d), shape.dims[d])
                              : at[1 + d - depth];
        }
        take_in(&want, offset_of(&shape, to), (int)(seed / 5 % 5), data_element(&in[2], i));
    }
    CHECK_EQ_MEM(y.data, want.data, (size_t)y.bytes);
    sp__array_deinit(&y);
    sp__array_deinit(&want);
    data_free(in, 3);
}

TEST(scatters_take_in_updates_in_their_order)
{
    data_random random = {6};
    for (uint64_t i = 0; i < 600; i++) {
        check_scatter_elements(&random, i);
        check_scatter_nd(&random, i);
    }
}

TEST(floats_are_reduced_with_one_nan)
{
    const int64_t axis = 0;
    const sp_text name = sp__text("max");
    const sp_attribute attributes[] = {data_attribute_int("axis", &axis),
                                       data_attribute_text("reduction", &name)};
    sp_array in[3] = {data_counted(SP_F32, SHAPE(2), 0xffc00001), INTS(1, 1),
                      data_counted(SP_F32, SHAPE(2), 0x3f800000)};
    ((float *)in[0].data)[1] = -2.0f;
    sp_array y;
    REQUIRE_OK(data_run("ScatterElements", 18, attributes, 2, in, 3, &y, 1));
    CHECK_EQ_U64(data_element(&y, 0), 0xffc00001); /* not updated: keeps its bits */
    CHECK_EQ_U64(data_element(&y, 1), 0x3f800001);
    sp__array_deinit(&y);
    ((int64_t *)in[1].data)[0] = 0;
    REQUIRE_OK(data_run("ScatterElements", 18, attributes, 2, in, 3, &y, 1));
    CHECK_EQ_U64(data_element(&y, 0), 0x7fc00000);
    sp__array_deinit(&y);
    data_free(in, 3);
}

/* ---- indices out of range ---- */

TEST(an_index_out_of_range_is_an_error_of_the_run)
{
    static const int64_t bad[] = {3, -4, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < SP_COUNT_OF(bad); i++) {
        sp_array y, in[3] = {data_counted(SP_F32, SHAPE(3), 0), INTS(bad[i]),
                             data_counted(SP_F32, SHAPE(1), 0)};
        CHECK_STATUS(data_run("Gather", 13, NULL, 0, in, 2, &y, 1), SP_INVALID);
        CHECK_MESSAGE("is out of range for a dimension of 3");
        sp__array_deinit(&y);
        CHECK_STATUS(data_run("GatherElements", 13, NULL, 0, in, 2, &y, 1), SP_INVALID);
        sp__array_deinit(&y);
        CHECK_STATUS(data_run("ScatterElements", 13, NULL, 0, in, 3, &y, 1), SP_INVALID);
        sp__array_deinit(&y);
        in[1].shape = SHAPE(1, 1);
        CHECK_STATUS(data_run("GatherND", 12, NULL, 0, in, 2, &y, 1), SP_INVALID);
        sp__array_deinit(&y);
        CHECK_STATUS(data_run("ScatterND", 13, NULL, 0, in, 3, &y, 1), SP_INVALID);
        sp__array_deinit(&y);
        data_free(in, 3);
    }
}

TEST(shapes_and_types_that_do_not_fit_are_refused)
{
    const sp_text mean = sp__text("mean"), add = sp__text("add");
    const sp_attribute unknown = data_attribute_text("reduction", &mean);
    const sp_attribute sum = data_attribute_text("reduction", &add);
    sp_array x = data_counted(SP_F16, SHAPE(3, 2), 0), y;
    sp_array floats = data_counted(SP_F32, SHAPE(3, 2), 0), one = INTS(0), three = INTS(0, 0, 0);
    const sp_array wrong_type[3] = {x, floats, x}, wrong_rank[3] = {x, one, one};
    sp_array deep[3] = {x, three, x}, wide[3] = {x, one, floats};
    deep[1].shape = SHAPE(1, 3);
    wide[1].shape = SHAPE(1, 1);
    CHECK_STATUS(data_run("Gather", 13, NULL, 0, wrong_type, 2, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("not supported: Gather version 13 with an input 1 of type f32");
    CHECK_STATUS(data_run("GatherElements", 13, NULL, 0, wrong_rank, 2, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("indices of shape [1] do not match data of shape [3,2]");
    CHECK_STATUS(data_run("GatherND", 12, NULL, 0, deep, 2, &y, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("ScatterND", 13, NULL, 0, deep, 3, &y, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("ScatterND", 13, NULL, 0, wide, 3, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("inputs of types f16 and f32");
    wide[2] = x;
    CHECK_STATUS(data_run("ScatterND", 13, NULL, 0, wide, 3, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE(
        "updates of shape [3,2] do not match indices of shape [1,1] and data of shape [3,2]");
    CHECK_STATUS(data_run("ScatterND", 16, &unknown, 1, wide, 3, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("reduction 'mean'");
    sp_array bools = data_counted(SP_BOOL, SHAPE(3, 2), 0);
    const sp_array of_bools[3] = {bools, wide[1], bools};
    CHECK_STATUS(data_run("ScatterND", 16, &sum, 1, of_bools, 3, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("reduction 'add' of type bool");
    data_free((sp_array[]){x, floats, one, three, bools}, 5);
}

/* ---- OneHot ---- */

TEST(one_hot_marks_what_is_in_range)
{
    const int64_t axis = 1;
    const sp_attribute attribute = data_attribute_int("axis", &axis);
    sp_array in[3] = {INTS(0, 2, -1, 3, -4, 1), INTS(3), INTS(7, 9)}, y;
    in[0].shape = SHAPE(2, 3);
    REQUIRE_OK(data_run("OneHot", 11, &attribute, 1, in, 3, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,3,3]");
    static const uint64_t want[] = {9, 7, 7, 7, 7, 7, 7, 9, 9, 7, 7, 7, 7, 7, 9, 7, 7, 7};
    for (uint64_t i = 0; i < SP_COUNT_OF(want); i++) CHECK_EQ_U64(data_element(&y, i), want[i]);
    sp__array_deinit(&y);
    sp_array numbers = data_counted(SP_F32, SHAPE(2), 0x7fc00000); /* NaNs are in no range */
    ((float *)numbers.data)[1] = 1.5f;
    const sp_array of_floats[3] = {numbers, in[1], in[2]};
    REQUIRE_OK(data_run("OneHot", 11, NULL, 0, of_floats, 3, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,3]");
    for (uint64_t i = 0; i < 6; i++) CHECK_EQ_U64(data_element(&y, i), i == 4 ? 9 : 7);
    sp__array_deinit(&y);
    const sp_array no_depth[3] = {in[0], INTS(0), in[2]}, one_value[3] = {in[0], in[1], in[1]};
    CHECK_STATUS(data_run("OneHot", 11, NULL, 0, no_depth, 3, &y, 1), SP_MISMATCH);
    CHECK_STATUS(data_run("OneHot", 11, NULL, 0, one_value, 3, &y, 1), SP_MISMATCH);
    sp_free(no_depth[1].data);
    sp__array_deinit(&numbers);
    data_free(in, 3);
}

TEST_MAIN
