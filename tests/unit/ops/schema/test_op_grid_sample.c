/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample against the definition in doubles, tap by tap, for each mode and padding; places that
 * are no numbers or far away; and what is refused. */
#include <math.h>

#include "support/model_data.h"
#include "support/test.h"

static const char *const modes[] = {"linear", "nearest", "cubic"};
static const char *const paddings[] = {"zeros", "border", "reflection"};

typedef struct grid_case {
    int mode, padding;
    int64_t align_corners, height, width;
} grid_case;

/* ---- the definition ---- */

/* Mirrors x at the ends of the axis until it is between them. */
static double reflected(double x, double low, double high)
{
    if (high <= low) return low;
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
    return x;
}

static double padded(const grid_case *g, double x, int64_t size)
{
    const double low = g->align_corners ? 0 : -0.5;
    const double high = g->align_corners ? (double)size - 1 : (double)size - 0.5;
    if (g->padding == 2) return reflected(x, low, high);
    if (g->padding == 0 || g->mode == 2) return x; /* the taps of a cubic are clamped each */
    return fmin(fmax(x, 0), (double)size - 1);
}

static double place_of(const grid_case *g, float number, int64_t size)
{
    const double n = (double)number, d = (double)size;
    const double x = g->align_corners ? (n + 1) / 2 * (d - 1) : ((n + 1) * d - 1) / 2;
    if (g->mode != 1) return padded(g, x, size);
    const float f = (float)size;
    const float near = g->align_corners ? (number + 1) / 2 * (f - 1) : ((number + 1) * f - 1) / 2;
    return padded(g, nearbyint((double)near), size);
}

/* The pixel of a tap, or -1. */
static int64_t pixel_of(const grid_case *g, double tap, int64_t size)
{
    if (g->padding == 0 && (tap < 0 || tap > (double)size - 1)) return -1;
    const double x = g->padding == 1 ? tap : padded(g, tap, size);
    return (int64_t)fmin(fmax(x, 0), (double)size - 1);
}

static double weight_of(const grid_case *g, double distance)
{
    const double d = fabs(distance), a = -0.75;
    if (g->mode == 1) return 1;
    if (g->mode == 0) return 1 - d;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
}

static double sample(const grid_case *g, const float *plane, const float *at)
{
    static const int first[] = {0, 0, -1}, last[] = {1, 0, 2};
    const double x = place_of(g, at[0], g->width), y = place_of(g, at[1], g->height);
    const double left = g->mode == 1 ? nearbyint(x) : floor(x);
    const double top = g->mode == 1 ? nearbyint(y) : floor(y);
    double sum = 0;
    for (int i = first[g->mode]; i <= last[g->mode]; i++) {
        for (int j = first[g->mode]; j <= last[g->mode]; j++) {
            const int64_t row = pixel_of(g, top + i, g->height);
            const int64_t column = pixel_of(g, left + j, g->width);
            if (row < 0 || column < 0) continue;
            sum += weight_of(g, y - top - i) * weight_of(g, x - left - j) *
                   (double)plane[row * g->width + column];
        }
    }
    return sum;
}

/* ---- calls ---- */

static sp_status run(const grid_case *g, const sp_array *in, sp_cpu_isa isa, sp_array *out)
{
    const sp_text mode = sp__text(modes[g->mode]), padding = sp__text(paddings[g->padding]);
    const sp_attribute attributes[] = {data_attribute_text("mode", &mode),
                                       data_attribute_text("padding_mode", &padding),
                                       data_attribute_int("align_corners", &g->align_corners)};
    const data_call call = {.op = "GridSample",
                            .version = 20,
                            .attributes = attributes,
                            .attribute_count = 3,
                            .inputs = in,
                            .input_count = 2,
                            .output_count = 1,
                            .isa = isa};
    return data_run_op(&call, out);
}

enum { IMAGES = 2, CHANNELS = 3, PIXELS = 40 };

static void check_values(const grid_case *g, const sp_array *in, const sp_array *y)
{
    for (int64_t i = 0; i < IMAGES * CHANNELS * PIXELS; i++) {
        const int64_t plane = i / PIXELS, pixel = plane / CHANNELS * PIXELS + i % PIXELS;
        const float got = ((const float *)y->data)[i];
        const double want = sample(g, (const float *)in[0].data + plane * g->height * g->width,
                                   (const float *)in[1].data + 2 * pixel);
        if (fabs((double)got - want) < 2e-6) continue;
        test_note("%s, %s, %d, %dx%d: %g, wanted %g", modes[g->mode], paddings[g->padding],
                  (int)g->align_corners, (int)g->height, (int)g->width, (double)got, want);
        CHECK(false);
    }
}

static void check_case(const grid_case *g, data_random *random)
{
    const sp_shape images = SHAPE(IMAGES, CHANNELS, g->height, g->width);
    const sp_shape grids = SHAPE(IMAGES, PIXELS / 5, 5, 2);
    sp_array in[2] = {data_floats(random, &images), data_floats(random, &grids)}, y, other;
    /* Beyond the image too. The middles of pixels and of their edges are exact. */
    for (int i = 0; i < IMAGES * PIXELS * 2; i++) {
        float *number = (float *)in[1].data + i;
        *number *= 3;
        if (i % 3 == 0) *number = (float)(int)(*number * 8) / 8;
    }
    REQUIRE_OK(run(g, in, SP_CPU_PORTABLE, &y));
    check_values(g, in, &y);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        REQUIRE_OK(run(g, in, (sp_cpu_isa)isa, &other));
        CHECK_EQ_MEM(other.data, y.data, (size_t)y.bytes);
        sp__array_deinit(&other);
    }
    sp__array_deinit(&y);
    data_free(in, 2);
}

TEST(values_are_those_of_the_definition)
{
    static const int64_t sizes[][2] = {{4, 8}, {5, 7}, {1, 1}, {2, 1}, {16, 3}};
    data_random random = {5};
    for (int i = 0; i < 3 * 3 * 2 * 5; i++) {
        const grid_case g = {.mode = i % 3,
                             .padding = i / 3 % 3,
                             .align_corners = i / 9 % 2,
                             .height = sizes[i / 18][0],
                             .width = sizes[i / 18][1]};
        check_case(&g, &random);
    }
}

/* Grids of half the pixels, and of all pixels and the places between them, whose numbers are
 * rounded: PyTorch and ONNX Runtime read these pixels. In double precision some are the next ones.
 */
TEST(a_place_between_two_pixels_is_that_of_single_precision)
{
    static const struct {
        int64_t align_corners, width, count;
        float want[7];
    } rows[] = {{0, 10, 5, {0, 2, 4, 6, 8}}, {1, 4, 7, {0, 0, 1, 2, 2, 2, 3}}};
    data_random random = {9};
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        const int64_t width = rows[i].width, count = rows[i].count;
        const grid_case g = {.mode = 1, .padding = 1, .align_corners = rows[i].align_corners};
        const sp_shape image = SHAPE(1, 1, 1, width), grid = SHAPE(1, 1, count, 2);
        sp_array in[2] = {data_floats(&random, &image), data_floats(&random, &grid)}, y;
        for (int k = 0; k < width; k++) ((float *)in[0].data)[k] = (float)k;
        for (int k = 0; k < count; k++) {
            float *at = (float *)in[1].data + 2 * k;
            at[0] =
                g.align_corners ? (float)(-1 + k / 3.0) : (float)(2 * k + 1) / (float)count - 1.0f;
            at[1] = 0;
        }
        REQUIRE_OK(run(&g, in, SP_CPU_PORTABLE, &y));
        CHECK_EQ_MEM(y.data, rows[i].want, (size_t)y.bytes);
        sp__array_deinit(&y);
        data_free(in, 2);
    }
}

/* Zeros outside; the other paddings read some pixel of the image, which is all ones. */
TEST(places_that_are_far_away_or_no_numbers_read_the_padding)
{
    static const float far[] = {1e30f, -1e30f, HUGE_VALF, -HUGE_VALF, NAN, 3e9f};
    static const sp_shape shapes[] = {{.rank = 4, .dims = {1, 1, 3, 4}},
                                      {.rank = 4, .dims = {1, 1, 6, 2}}};
    data_random random = {6};
    for (int i = 0; i < 18; i++) {
        const grid_case g = {.mode = i % 3, .padding = i / 3 % 3, .align_corners = i / 9};
        sp_array in[2] = {data_floats(&random, &shapes[0]), data_floats(&random, &shapes[1])}, y;
        for (int k = 0; k < 12; k++) ((float *)in[0].data)[k] = 1;
        for (int k = 0; k < 6; k++) {
            ((float *)in[1].data)[2 * k] = far[k];
            ((float *)in[1].data)[2 * k + 1] = 0;
        }
        REQUIRE_OK(run(&g, in, SP_CPU_PORTABLE, &y));
        for (int k = 0; k < 6; k++) {
            const float want = g.padding == 0 ? 0.0f : 1.0f;
            CHECK(fabsf(((const float *)y.data)[k] - want) < 1e-6f);
        }
        sp__array_deinit(&y);
        data_free(in, 2);
    }
}

TEST(modes_have_the_names_of_their_version)
{
    data_random random = {7};
    const sp_shape shapes[] = {SHAPE(1, 1, 3, 4), SHAPE(1, 2, 2, 2)};
    sp_array in[2] = {data_floats(&random, &shapes[0]), data_floats(&random, &shapes[1])}, y;
    static const struct {
        uint32_t version;
        const char *mode;
        sp_status status;
    } rows[] = {{16, "bilinear", SP_OK},
                {16, "bicubic", SP_OK},
                {22, "linear", SP_OK},
                {16, "linear", SP_UNSUPPORTED},
                {20, "bicubic", SP_UNSUPPORTED}};
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        const sp_text mode = sp__text(rows[i].mode);
        const sp_attribute attribute = data_attribute_text("mode", &mode);
        CHECK_STATUS(data_run("GridSample", rows[i].version, &attribute, 1, in, 2, &y, 1),
                     rows[i].status);
        if (rows[i].status == SP_OK) sp__array_deinit(&y);
        else CHECK_MESSAGE("is not supported");
    }
    data_free(in, 2);
}

TEST(shapes_that_do_not_fit_are_refused)
{
    static const struct {
        sp_shape x, grid;
        sp_status status;
    } rows[] = {{{.rank = 4, .dims = {1, 1, 3, 4}}, {.rank = 4, .dims = {1, 2, 2, 3}}, SP_MISMATCH},
                {{.rank = 4, .dims = {2, 1, 3, 4}}, {.rank = 4, .dims = {1, 2, 2, 2}}, SP_MISMATCH},
                {{.rank = 3, .dims = {1, 3, 4}}, {.rank = 4, .dims = {1, 2, 2, 2}}, SP_MISMATCH},
                {{.rank = 4, .dims = {1, 1, 0, 4}}, {.rank = 4, .dims = {1, 2, 2, 2}}, SP_MISMATCH},
                {{.rank = 5, .dims = {1, 1, 2, 3, 4}},
                 {.rank = 5, .dims = {1, 2, 2, 2, 3}},
                 SP_UNSUPPORTED}};
    data_random random = {8};
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        sp_array in[2] = {data_floats(&random, &rows[i].x), data_floats(&random, &rows[i].grid)}, y;
        CHECK_STATUS(data_run("GridSample", 16, NULL, 0, in, 2, &y, 1), rows[i].status);
        CHECK_MESSAGE(rows[i].status == SP_MISMATCH ? "images of shape" : "volumes");
        data_free(in, 2);
    }
}

TEST_MAIN
