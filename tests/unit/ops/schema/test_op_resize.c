/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample compared with ONNX's definition: along each axis, the weights of all inputs
 * for each output, in doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/model_data.h"
#include "support/test.h"

#define FLOATS(...) floats((float[]){__VA_ARGS__}, sizeof((float[]){__VA_ARGS__}) / sizeof(float))

static sp_array floats(const float *values, int64_t count)
{
    sp_array array;
    if (sp__array_init(&array, SP_F32, &SHAPE(count)) != SP_OK) abort();
    memcpy(array.data, values, (size_t)array.bytes);
    return array;
}

/* The attributes of a case. */
typedef struct resize_case {
    const char *mode, *coordinate, *rounding;
    bool is_antialiased, excludes_outside;
    double start, end; /* of the crop, along each axis */
} resize_case;

/* ---- the definition, along one axis whose size is given ---- */

static double place_of(const resize_case *c, double x, int64_t in, int64_t out)
{
    const double before = (double)in, after = (double)out;
    if (strcmp(c->coordinate, "align_corners") == 0) {
        return out == 1 ? 0 : x * (double)(in - 1) / (double)(out - 1);
    }
    if (strcmp(c->coordinate, "asymmetric") == 0) return x * before / after;
    if (strcmp(c->coordinate, "tf_half_pixel_for_nn") == 0) return (x + 0.5) * before / after;
    if (strcmp(c->coordinate, "tf_crop_and_resize") == 0) {
        const double reach = (c->end - c->start) * (double)(in - 1);
        const double step = out == 1 ? reach / 2 : x * reach / (double)(out - 1);
        return c->start * (double)(in - 1) + step;
    }
    if (strcmp(c->coordinate, "pytorch_half_pixel") == 0 && out == 1) return 0;
    /* half_pixel_symmetric has no offset: the size is that of the scale. */
    return (x + 0.5) * before / after - 0.5;
}

static double cubic(double x)
{
    const double a = -0.75;
    x = fabs(x);
    if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

static double nearest(const resize_case *c, double place)
{
    if (strcmp(c->rounding, "floor") == 0) return floor(place);
    if (strcmp(c->rounding, "ceil") == 0) return ceil(place);
    return strcmp(c->rounding, "round_prefer_floor") == 0 ? ceil(place - 0.5) : floor(place + 0.5);
}

/* The weights of inputs -margin ... in + margin, added up at the edges. */
static void weights_of(const resize_case *c, double place, double scale, int64_t in, double *out)
{
    enum { MARGIN = 64 };
    const double shrink = c->is_antialiased && scale < 1 ? scale : 1;
    double total = 0;
    for (int64_t i = 0; i < in; i++) out[i] = 0;
    for (int64_t i = -MARGIN; i < in + MARGIN; i++) {
        const double distance = ((double)i - place) * shrink;
        double weight = c->mode[0] == 'c' ? cubic(distance) : fmax(0, 1 - fabs(distance));
        if (c->mode[0] == 'n') weight = (double)i == nearest(c, place);
        if (c->excludes_outside && (i < 0 || i >= in)) weight = 0;
        total += weight;
        out[i < 0 ? 0 : i >= in ? in - 1 : i] += weight;
    }
    if (!c->is_antialiased && !c->excludes_outside) total = 1;
    for (int64_t i = 0; i < in; i++) out[i] /= total;
}

/* data[outer][in][inner] becomes [outer][out][inner]. */
static double *resize_axis(const resize_case *c, const double *data, int64_t outer, int64_t in,
                           int64_t out, int64_t inner, double scale)
{
    double *y = calloc((size_t)(outer * out * inner), sizeof(*y));
    double *weights = calloc((size_t)in, sizeof(*weights));
    for (int64_t at = 0; at < out; at++) {
        const double place = place_of(c, (double)at, in, out);
        const bool is_out = strcmp(c->coordinate, "tf_crop_and_resize") == 0 &&
                            (place < 0 || place > (double)(in - 1));
        weights_of(c, place, scale, in, weights);
        for (int64_t i = 0; i < outer * inner; i++) {
            const double *x = data + i / inner * in * inner + i % inner;
            double *to = &y[(i / inner * out + at) * inner + i % inner];
            if (is_out) *to = 7.5;
            for (int64_t k = 0; k < in && !is_out; k++) *to += weights[k] * x[k * inner];
        }
    }
    free(weights);
    return y;
}

/* ---- cases ---- */

static uint32_t make_attributes(const resize_case *c, sp_attribute *out, sp_text texts[3])
{
    static const int64_t one = 1;
    static const float outside = 7.5f;
    uint32_t count = 0;
    texts[0] = sp__text(c->mode);
    texts[1] = sp__text(c->coordinate);
    texts[2] = sp__text(c->rounding);
    out[count++] = data_attribute_text("mode", &texts[0]);
    out[count++] = data_attribute_text("coordinate_transformation_mode", &texts[1]);
    out[count++] = data_attribute_text("nearest_mode", &texts[2]);
    out[count++] = data_attribute_float("extrapolation_value", &outside);
    if (c->is_antialiased) out[count++] = data_attribute_int("antialias", &one);
    if (c->excludes_outside) out[count++] = data_attribute_int("exclude_outside", &one);
    return count;
}

/* A [2, 5, 7] tensor to `sizes`; the first axis changes only on request. */
static void check_resize(const resize_case *c, const int64_t *sizes)
{
    data_random random = {17};
    const sp_shape shape = SHAPE(2, 5, 7);
    const float s = (float)c->start, e = (float)c->end;
    const bool is_crop = strcmp(c->coordinate, "tf_crop_and_resize") == 0;
    sp_array y,
        in[4] = {data_floats(&random, &shape), FLOATS(0, s, s, 1, e, e), {0}, data_ints(sizes, 3)};
    sp_attribute attributes[8];
    sp_text texts[3];
    const uint32_t count = make_attributes(c, attributes, texts);
    REQUIRE_OK(data_run("Resize", c->is_antialiased ? 18 : 11, attributes, count, in, 4, &y, 1));
    double *want = calloc(70, sizeof(*want));
    for (int i = 0; i < 70; i++) want[i] = (double)((float *)in[0].data)[i];
    int64_t dims[3] = {2, 5, 7};
    for (int axis = 2; axis >= 0; axis--) {
        if (axis == 0 && sizes[0] == 2) continue;
        if (!is_crop && sizes[axis] == dims[axis]) continue;
        const int64_t outer = axis == 2 ? dims[0] * dims[1] : axis == 1 ? dims[0] : 1;
        const int64_t inner = axis == 2 ? 1 : axis == 1 ? dims[2] : dims[1] * dims[2];
        const double scale = (double)sizes[axis] / (double)dims[axis];
        resize_case here = *c;
        if (axis == 0) here.start = 0, here.end = 1;
        double *next = resize_axis(&here, want, outer, dims[axis], sizes[axis], inner, scale);
        free(want);
        want = next;
        dims[axis] = sizes[axis];
    }
    for (int64_t i = 0; i < dims[0] * dims[1] * dims[2]; i++) {
        const double difference = fabs((double)((float *)y.data)[i] - want[i]);
        const bool is_close = difference <= (c->mode[0] == 'n' ? 0 : 2e-6);
        CHECK(is_close);
        if (!is_close) {
            test_note("%s, %s, %s to %lldx%lldx%lld: %g is off by %g", c->mode, c->coordinate,
                      c->rounding, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                      want[i], difference);
            break;
        }
    }
    free(want);
    sp__array_deinit(&y);
    data_free(in, 4);
}

static const int64_t sizes[][3] = {{2, 10, 14}, {2, 3, 4},  {2, 5, 9},   {2, 1, 1},
                                   {2, 8, 2},   {3, 6, 20}, {1, 40, 33}, {2, 5, 7}};

TEST(every_mode_in_every_coordinate_system)
{
    static const char *const coordinates[] = {
        "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
        "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    for (size_t i = 0; i < SP_COUNT_OF(coordinates) * SP_COUNT_OF(sizes); i++) {
        const int64_t *to = sizes[i / SP_COUNT_OF(coordinates)];
        resize_case c = {.coordinate = coordinates[i % SP_COUNT_OF(coordinates)],
                         .rounding = "floor",
                         .start = 0.125,
                         .end = 1.25};
        c.mode = "linear";
        check_resize(&c, to);
        c.mode = "cubic";
        check_resize(&c, to);
        c.excludes_outside = true;
        check_resize(&c, to);
        c.excludes_outside = false;
        c.mode = "nearest";
        for (size_t r = 0; r < SP_COUNT_OF(roundings); r++) {
            c.rounding = roundings[r];
            check_resize(&c, to);
        }
    }
}

TEST(antialias_widens_the_filter_where_it_shrinks)
{
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        resize_case c = {.mode = "linear",
                         .coordinate = "half_pixel",
                         .rounding = "floor",
                         .is_antialiased = true};
        check_resize(&c, sizes[i]);
        c.mode = "cubic";
        check_resize(&c, sizes[i]);
        c.excludes_outside = true;
        check_resize(&c, sizes[i]);
    }
}

/* More neighbours than the kernel keeps at a time. */
TEST(a_long_axis_becomes_one_element)
{
    const int64_t one = 1;
    const sp_text linear = sp__text("linear");
    const sp_attribute attributes[] = {data_attribute_text("mode", &linear),
                                       data_attribute_int("antialias", &one)};
    sp_array y, in[4] = {data_counted(SP_F32, SHAPE(1000), 0), {0}, {0}, INTS(1)};
    for (int i = 0; i < 1000; i++) ((float *)in[0].data)[i] = (float)(i % 2);
    REQUIRE_OK(data_run("Resize", 18, attributes, 2, in, 4, &y, 1));
    CHECK(fabsf(*(float *)y.data - 0.5f) < 1e-3f);
    sp__array_deinit(&y);
    data_free(in, 4);
}

/* One output of 0, 1, ... in - 1 resized to `out` elements, of which [0, 1] is the crop. */
static float resized_element(const resize_case *c, int64_t in, int64_t out, int64_t at)
{
    sp_attribute attributes[8];
    sp_text texts[3];
    const uint32_t count = make_attributes(c, attributes, texts);
    sp_array y, inputs[4] = {data_counted(SP_F32, SHAPE(in), 0), FLOATS(0, 1), {0}, INTS(out)};
    for (int64_t i = 0; i < in; i++) ((float *)inputs[0].data)[i] = (float)i;
    if (data_run("Resize", 11, attributes, count, inputs, 4, &y, 1) != SP_OK) abort();
    const float element = ((float *)y.data)[at];
    sp__array_deinit(&y);
    data_free(inputs, 4);
    return element;
}

/* (1 / 49) * 49, (15 / 11) * 11, ... are not integers in doubles. */
TEST(sizes_are_exact_whatever_the_scale_rounds_to)
{
    static const struct {
        const char *mode, *coordinate;
        int64_t in, out, at;
        float want;
    } cases[] = {{"linear", "pytorch_half_pixel", 49, 1, 0, 0},
                 {"linear", "tf_crop_and_resize", 49, 1, 0, 24},
                 {"linear", "align_corners", 49, 1, 0, 0},
                 {"linear", "tf_crop_and_resize", 11, 15, 14, 10},
                 {"linear", "tf_crop_and_resize", 13, 15, 14, 12},
                 {"nearest", "tf_crop_and_resize", 11, 15, 14, 10},
                 {"nearest", "align_corners", 7, 29, 14, 3}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const resize_case c = {
            .mode = cases[i].mode, .coordinate = cases[i].coordinate, .rounding = "floor"};
        const float got = resized_element(&c, cases[i].in, cases[i].out, cases[i].at);
        if (got != cases[i].want) {
            test_note("%s, %s, %d to %d: %g, wanted %g", c.mode, c.coordinate, (int)cases[i].in,
                      (int)cases[i].out, (double)got, (double)cases[i].want);
        }
        CHECK(got == cases[i].want);
    }
}

/* With scales the width has a fraction: 3 * 0.5 elements, of which one exists. */
TEST(one_element_by_a_scale_is_the_first_in_pytorchs_coordinates)
{
    const sp_text linear = sp__text("linear"), pytorch = sp__text("pytorch_half_pixel");
    const sp_attribute attributes[] = {
        data_attribute_text("mode", &linear),
        data_attribute_text("coordinate_transformation_mode", &pytorch)};
    sp_array y, in[3] = {FLOATS(5, 6, 7), {0}, FLOATS(0.5f)};
    REQUIRE_OK(data_run("Resize", 13, attributes, 2, in, 3, &y, 1));
    CHECK_EQ_INT(y.shape.dims[0], 1);
    CHECK(*(float *)y.data == 5.0f);
    sp__array_deinit(&y);
    data_free(in, 3);
}

TEST(scales_axes_and_policies)
{
    const int64_t axes[] = {-1, 0}, twice[] = {1, 1};
    const sp_text larger = sp__text("not_larger"), smaller = sp__text("not_smaller");
    sp_attribute attributes[] = {data_attribute_ints("axes", axes, 2),
                                 data_attribute_text("keep_aspect_ratio_policy", &larger)};
    sp_array y, in[4] = {data_counted(SP_U8, SHAPE(4, 3, 6), 0), {0}, FLOATS(2.5f, 0.5f), {0}};
    REQUIRE_OK(data_run("Resize", 18, attributes, 1, in, 4, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[2,3,15]");
    sp__array_deinit(&y);
    sp_array with_sizes[4] = {in[0], {0}, {0}, INTS(12, 12)};
    REQUIRE_OK(data_run("Resize", 18, attributes, 2, with_sizes, 4, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[8,3,12]");
    sp__array_deinit(&y);
    attributes[1] = data_attribute_text("keep_aspect_ratio_policy", &smaller);
    REQUIRE_OK(data_run("Resize", 18, attributes, 2, with_sizes, 4, &y, 1));
    CHECK_EQ_STR(sp__shape_print(&y.shape).text, "[12,3,18]");
    sp__array_deinit(&y);
    attributes[0] = data_attribute_ints("axes", twice, 2);
    CHECK_STATUS(data_run("Resize", 18, attributes, 1, in, 4, &y, 1), SP_MISMATCH);
    CHECK_MESSAGE("axis 1 is given twice");
    data_free(in, 3);
    sp_free(with_sizes[3].data);
}

TEST(old_versions_floor_at_the_left_corner)
{
    const float scales[] = {1.0f, 2.0f};
    const sp_text linear = sp__text("linear");
    sp_attribute attributes[2] = {data_attribute_text("mode", &linear)};
    attributes[1] = (sp_attribute){.name = sp__text("scales"), .type = SP_ATTRIBUTE_FLOATS};
    attributes[1].count = 2;
    attributes[1].as.floats = scales;
    sp_array y, in[2] = {FLOATS(0, 1, 2, 3), FLOATS(1, 2)};
    in[0].shape = SHAPE(2, 2);
    static const float linear_want[] = {0, 0.5f, 1, 1, 2, 2.5f, 3, 3};
    static const float nearest_want[] = {0, 0, 1, 1, 2, 2, 3, 3};
    REQUIRE_OK(data_run("Upsample", 7, attributes, 2, in, 1, &y, 1));
    CHECK_EQ_MEM(y.data, linear_want, sizeof(linear_want));
    sp__array_deinit(&y);
    REQUIRE_OK(data_run("Upsample", 9, attributes, 1, in, 2, &y, 1));
    CHECK_EQ_MEM(y.data, linear_want, sizeof(linear_want));
    sp__array_deinit(&y);
    REQUIRE_OK(data_run("Resize", 10, NULL, 0, in, 2, &y, 1));
    CHECK_EQ_MEM(y.data, nearest_want, sizeof(nearest_want));
    sp__array_deinit(&y);
    data_free(in, 2);
}

TEST(resize_refuses_what_has_no_meaning)
{
    const sp_text cubic_mode = sp__text("cubic"), odd = sp__text("odd");
    const sp_attribute of_mode[] = {data_attribute_text("mode", &cubic_mode)};
    const sp_attribute unknown[] = {data_attribute_text("nearest_mode", &odd)};
    sp_array y, x = data_counted(SP_I32, SHAPE(2, 2), 0);
    sp_array in[][4] = {{x, {0}, {0}, {0}},
                        {x, {0}, FLOATS(1), {0}},
                        {x, {0}, FLOATS(1, 0), {0}},
                        {x, {0}, {0}, INTS(1)},
                        {x, {0}, {0}, INTS(-1, 1)},
                        {x, {0}, FLOATS(1, NAN), {0}},
                        {x, {0}, FLOATS(1, 1e30f), {0}}};
    static const char *const messages[] = {"neither sizes nor scales are given",
                                           "1 scales are given for 2 axes",
                                           "a scale of 0 does not fit a dimension of 2",
                                           "1 sizes are given for 2 axes",
                                           "a size of -1 does not fit a dimension of 2",
                                           "a scale of nan",
                                           "a scale of 1e+30"};
    for (size_t i = 0; i < SP_COUNT_OF(in); i++) {
        CHECK_STATUS(data_run("Resize", 13, NULL, 0, in[i], 4, &y, 1), SP_MISMATCH);
        CHECK_MESSAGE(messages[i]);
    }
    CHECK_STATUS(data_run("Resize", 13, of_mode, 1, in[1], 4, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("mode 'cubic' of type i32");
    CHECK_STATUS(data_run("Resize", 13, unknown, 1, in[1], 4, &y, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("nearest_mode 'odd' is not supported");
    for (size_t i = 0; i < SP_COUNT_OF(in); i++) data_free(in[i] + 1, 3);
    sp__array_deinit(&x);
}

TEST_MAIN
