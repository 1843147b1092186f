/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and MaxPool: bits of the rule in plain loops, on every instruction set, for random groups,
 * strides, dilations and paddings; images of a batch are independent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "product_rule.h"
#include "support/model_data.h"
#include "support/test.h"

typedef struct window_case {
    int64_t images, channels, filters, groups, spatial;
    int64_t in[2], kernel[2], stride[2], dilation[2], pads[4]; /* pads: begins, then ends */
    bool has_bias;
} window_case;

/* Random numbers that are consistent with each other. */
static window_case random_case(data_random *random)
{
    window_case c = {.images = 1 + (int64_t)(data_next(random) % 3),
                     .spatial = 1 + (int64_t)(data_next(random) % 2),
                     .has_bias = data_next(random) % 2 == 0};
    c.groups = 1 + (int64_t)(data_next(random) % 4);
    c.channels = c.groups * (1 + (int64_t)(data_next(random) % 5));
    c.filters = c.groups * (1 + (int64_t)(data_next(random) % 9));
    if (data_next(random) % 3 == 0) c.channels = c.groups; /* depthwise */
    for (int i = 0; i < c.spatial; i++) {
        c.kernel[i] = 1 + (int64_t)(data_next(random) % 5);
        c.stride[i] = 1 + (int64_t)(data_next(random) % 3);
        c.dilation[i] = 1 + (int64_t)(data_next(random) % 3);
        c.pads[i] = (int64_t)(data_next(random) % 4);
        c.pads[c.spatial + i] = (int64_t)(data_next(random) % 4);
        const int64_t reach = (c.kernel[i] - 1) * c.dilation[i] + 1;
        const int64_t least = reach - c.pads[i] - c.pads[c.spatial + i];
        c.in[i] = (least > 1 ? least : 1) + (int64_t)(data_next(random) % 40);
    }
    return c;
}

static int64_t out_size(const window_case *c, int i)
{
    const int64_t reach = (c->kernel[i] - 1) * c->dilation[i] + 1;
    return (c->in[i] + c->pads[i] + c->pads[c->spatial + i] - reach) / c->stride[i] + 1;
}

/* The input at a padded position; outside it is `outside`. One spatial dimension has height 1. */
static float at(const window_case *c, const float *plane, int64_t y, int64_t x, float outside)
{
    const int64_t height = c->spatial == 2 ? c->in[0] : 1;
    const int64_t width = c->in[c->spatial - 1];
    return y >= 0 && y < height && x >= 0 && x < width ? plane[y * width + x] : outside;
}

/* One window's first tap and sizes, with one spatial dimension widened to two. */
typedef struct place {
    int64_t y, x, kernel_h, kernel_w, step_y, step_x;
} place;

static place place_of(const window_case *c, int64_t oy, int64_t ox)
{
    const int64_t last = c->spatial - 1;
    place p = {.x = ox * c->stride[last] - c->pads[last],
               .kernel_h = 1,
               .kernel_w = c->kernel[last],
               .step_x = c->dilation[last]};
    if (c->spatial == 2) {
        p.y = oy * c->stride[0] - c->pads[0];
        p.kernel_h = c->kernel[0];
        p.step_y = c->dilation[0];
    }
    return p;
}

static float conv_at(const window_case *c, const sp_array *in, int64_t image, int64_t filter,
                     int64_t oy, int64_t ox)
{
    const place p = place_of(c, oy, ox);
    const int64_t height = c->spatial == 2 ? c->in[0] : 1, width = c->in[c->spatial - 1];
    const int64_t per_group = c->channels / c->groups;
    const int64_t group = filter / (c->filters / c->groups);
    const float *w = (const float *)in[1].data + filter * per_group * p.kernel_h * p.kernel_w;
    product_sum sum = product_begin(p.kernel_h * p.kernel_w);
    for (int64_t ch = 0; ch < per_group; ch++) {
        const float *plane = (const float *)in[0].data +
                             (image * c->channels + group * per_group + ch) * height * width;
        for (int64_t i = 0; i < p.kernel_h; i++) {
            for (int64_t j = 0; j < p.kernel_w; j++) {
                const float x = at(c, plane, p.y + i * p.step_y, p.x + j * p.step_x, 0);
                product_step(&sum, *w++, x);
            }
        }
    }
    const float y = product_end(&sum);
    return c->has_bias ? y + ((const float *)in[2].data)[filter] : y;
}

static sp_shape spatial_shape(const window_case *c, int64_t first, int64_t second,
                              const int64_t *sizes)
{
    sp_shape s = {.rank = 2 + (uint32_t)c->spatial, .dims = {first, second}};
    for (int64_t i = 0; i < c->spatial; i++) s.dims[2 + i] = sizes[i];
    return s;
}

static void check_conv(const window_case *c, data_random *random)
{
    const sp_shape shapes[3] = {spatial_shape(c, c->images, c->channels, c->in),
                                spatial_shape(c, c->filters, c->channels / c->groups, c->kernel),
                                {.rank = 1, .dims = {c->filters}}};
    sp_array in[3], out;
    for (int i = 0; i < 3; i++) in[i] = data_floats(random, &shapes[i]);
    const uint32_t n = (uint32_t)c->spatial;
    const sp_attribute attributes[] = {data_attribute_ints("strides", c->stride, n),
                                       data_attribute_ints("dilations", c->dilation, n),
                                       data_attribute_ints("pads", c->pads, 2 * n),
                                       data_attribute_int("group", &c->groups)};
    const int64_t out_h = c->spatial == 2 ? out_size(c, 0) : 1;
    const int64_t out_w = out_size(c, (int)c->spatial - 1);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = "Conv",
                                .version = 11,
                                .attributes = attributes,
                                .attribute_count = 4,
                                .inputs = in,
                                .input_count = c->has_bias ? 3 : 2,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &out));
        const float *got = out.data;
        uint64_t wrong = 0;
        for (int64_t image = 0; image < c->images; image++) {
            for (int64_t f = 0; f < c->filters; f++) {
                for (int64_t p = 0; p < out_h * out_w; p++) {
                    const float want = conv_at(c, in, image, f, p / out_w, p % out_w);
                    wrong += !data_is_same(*got++, want);
                }
            }
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&out);
    }
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

TEST(conv_gives_the_bits_of_the_rule_for_random_windows)
{
    data_random random = {11};
    const uint64_t count = test_count(20000, 250);
    for (uint64_t i = 0; i < count; i++) {
        const window_case c = random_case(&random);
        check_conv(&c, &random);
    }
}

TEST(conv_of_many_taps_and_many_tiles)
{
    data_random random = {12};
    const window_case deep = {.images = 2,
                              .channels = 70,
                              .filters = 37,
                              .groups = 1,
                              .spatial = 2,
                              .in = {9, 11},
                              .kernel = {3, 3},
                              .stride = {1, 1},
                              .dilation = {1, 1},
                              .pads = {1, 1, 1, 1},
                              .has_bias = true};
    const window_case pointwise = {.images = 1,
                                   .channels = 130,
                                   .filters = 50,
                                   .groups = 1,
                                   .spatial = 2,
                                   .in = {33, 31},
                                   .kernel = {1, 1},
                                   .stride = {1, 1},
                                   .dilation = {1, 1}};
    const window_case wide = {.images = 1,
                              .channels = 3,
                              .filters = 3,
                              .groups = 3,
                              .spatial = 1,
                              .in = {3000},
                              .kernel = {7},
                              .stride = {1},
                              .dilation = {200},
                              .pads = {600, 600}};
    check_conv(&deep, &random);
    check_conv(&pointwise, &random);
    check_conv(&wide, &random); /* too far apart for the depthwise kernel */
}

/* Blocks of outputs whose inputs are one piece of memory, rows of it, or every second element. */
TEST(conv_reads_rows_of_all_widths)
{
    static const int64_t kernels[][2] = {{1, 1}, {3, 3}, {5, 1}, {1, 34}, {2, 3}};
    data_random random = {15};
    for (int64_t width = 1; width < 70; width++) {
        for (size_t n = 0; n < SP_COUNT_OF(kernels) * 3; n++) {
            const int64_t *kernel = kernels[n / 3], step = 1 + (int64_t)n % 3;
            const int64_t dilation = width % 4 == 0 ? 2 : 1;
            const int64_t pad_y = dilation * (kernel[0] - 1) / 2, pad_x = dilation * kernel[1] / 2;
            const window_case c = {.images = 1,
                                   .channels = 2,
                                   .filters = 3,
                                   .groups = 1,
                                   .spatial = 2,
                                   .in = {width % 7 + 5, width},
                                   .kernel = {kernel[0], kernel[1]},
                                   .stride = {1 + width % 2, step},
                                   .dilation = {dilation, dilation},
                                   .pads = {pad_y, pad_x, pad_y, width % 3 + pad_x},
                                   .has_bias = true};
            check_conv(&c, &random);
        }
    }
}

/* A case of stride 1 with one row of padding, or of 3 groups of one channel if `channels` is 1. */
static window_case segments_case(int64_t channels, int64_t height, int64_t width)
{
    const int64_t groups = channels == 1 ? 3 : 1;
    return (window_case){.images = 1,
                         .channels = channels * groups,
                         .filters = 7 * groups,
                         .groups = groups,
                         .spatial = 2,
                         .in = {height + 1, width + 16},
                         .kernel = {height, width},
                         .stride = {1, 1},
                         .dilation = {1, 1},
                         .pads = {1, 1, 1, 1},
                         .has_bias = channels % 2 == 0};
}

TEST(long_sums_are_cut_into_segments_of_whole_channels)
{
    /* Channels of a segment: 256, 128, 32, 16, 8, 2, 1; and kernels that are longer than one. */
    static const int64_t sizes[][3] = {{256, 1, 1}, {257, 1, 1}, {600, 1, 1},  {130, 1, 3},
                                       {31, 3, 3},  {32, 3, 3},  {33, 3, 3},   {70, 3, 3},
                                       {17, 5, 5},  {25, 7, 7},  {5, 15, 15},  {3, 20, 20},
                                       {1, 16, 32}, {1, 27, 19}, {1, 3, 1000}, {2, 3, 171}};
    data_random random = {14};
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        const window_case c = segments_case(sizes[i][0], sizes[i][1], sizes[i][2]);
        check_conv(&c, &random);
    }
}

TEST(row_i_of_a_conv_batch_has_the_bits_of_the_row_alone)
{
    enum { MAX = 64, CHANNELS = 3, SIZE = 10, FILTERS = 7 };
    data_random random = {13};
    const sp_shape x = {.rank = 4, .dims = {MAX, CHANNELS, SIZE, SIZE}};
    const sp_shape w = {.rank = 4, .dims = {FILTERS, CHANNELS, 3, 3}};
    sp_array in[2] = {data_floats(&random, &x), data_floats(&random, &w)}, out, all;
    const data_call call = {.op = "Conv",
                            .version = 11,
                            .inputs = in,
                            .input_count = 2,
                            .output_count = 1,
                            .isa = sp__cpu_isa_selected()};
    REQUIRE_OK(data_run_op(&call, &all));
    const size_t row_bytes = (size_t)all.bytes / MAX;
    float *images = in[0].data;
    for (int64_t batch = 1; batch < MAX; batch++) {
        const int64_t first = (int64_t)(data_next(&random) % (uint64_t)(MAX - batch));
        in[0].shape.dims[0] = batch;
        in[0].data = images + first * CHANNELS * SIZE * SIZE;
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_MEM(out.data, (char *)all.data + (size_t)first * row_bytes,
                     (size_t)batch * row_bytes);
        sp__array_deinit(&out);
    }
    in[0].data = images;
    sp__array_deinit(&all);
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
}

/* One plane whose only window begins in the padding before it: its output is the bias. */
TEST(a_volume_of_one_plane_that_no_window_meets_gives_the_bias)
{
    data_random random = {14};
    const int64_t strides[3] = {2, 1, 1}, pads[6] = {1, 0, 0, 0, 0, 0};
    const sp_attribute attributes[] = {data_attribute_ints("strides", strides, 3),
                                       data_attribute_ints("pads", pads, 6)};
    const sp_shape shapes[3] = {{.rank = 5, .dims = {1, 2, 1, 3, 4}},
                                {.rank = 5, .dims = {1, 2, 1, 1, 1}},
                                {.rank = 1, .dims = {1}}};
    sp_array in[3], out;
    for (int i = 0; i < 3; i++) in[i] = data_floats(&random, &shapes[i]);
    const data_call call = {.op = "Conv",
                            .version = 11,
                            .attributes = attributes,
                            .attribute_count = 2,
                            .inputs = in,
                            .input_count = 3,
                            .output_count = 1};
    REQUIRE_OK(data_run_op(&call, &out));
    CHECK_EQ_U64(out.bytes, 12 * sizeof(float));
    for (int i = 0; i < 12; i++) {
        CHECK(data_is_same(((const float *)out.data)[i], *(const float *)in[2].data));
    }
    sp__array_deinit(&out);
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

/* ---- padding and output sizes, as ONNX gives them in its own text ---- */

static sp_status conv_shape(const sp_attribute *attributes, uint32_t count, const int64_t in[2],
                            const int64_t kernel[2], sp_array *out)
{
    data_random random = {1};
    const sp_shape x = {.rank = 4, .dims = {1, 1, in[0], in[1]}};
    const sp_shape w = {.rank = 4, .dims = {1, 1, kernel[0], kernel[1]}};
    sp_array inputs[2] = {data_floats(&random, &x), data_floats(&random, &w)};
    const data_call call = {.op = "Conv",
                            .version = 11,
                            .attributes = attributes,
                            .attribute_count = count,
                            .inputs = inputs,
                            .input_count = 2,
                            .output_count = 1};
    const sp_status status = data_run_op(&call, out);
    for (int i = 0; i < 2; i++) sp__array_deinit(&inputs[i]);
    return status;
}

TEST(auto_pad_follows_onnx)
{
    static const struct {
        const char *mode;
        int64_t out;
    } modes[] = {{"SAME_UPPER", 3}, {"SAME_LOWER", 3}, {"VALID", 2}, {"NOTSET", 2}};
    const int64_t two[2] = {2, 2}, in[2] = {5, 6}, kernel[2] = {3, 3};
    for (size_t i = 0; i < SP_COUNT_OF(modes); i++) {
        const sp_text mode = sp__text(modes[i].mode);
        const sp_attribute attributes[] = {data_attribute_text("auto_pad", &mode),
                                           data_attribute_ints("strides", two, 2)};
        sp_array out;
        REQUIRE_OK(conv_shape(attributes, 2, in, kernel, &out));
        CHECK_EQ_INT(out.shape.dims[2], modes[i].out);
        CHECK_EQ_INT(out.shape.dims[3], modes[i].out);
        sp__array_deinit(&out);
    }
}

TEST(same_upper_and_same_lower_put_the_odd_pad_at_their_end)
{
    const int64_t in[2] = {1, 4}, kernel[2] = {1, 2};
    const sp_text modes[2] = {sp__text("SAME_UPPER"), sp__text("SAME_LOWER")};
    for (int i = 0; i < 2; i++) {
        const sp_attribute mode = data_attribute_text("auto_pad", &modes[i]);
        const int64_t pads[4] = {0, i, 0, 1 - i};
        const sp_attribute explicit_pads = data_attribute_ints("pads", pads, 4);
        sp_array got, want;
        REQUIRE_OK(conv_shape(&mode, 1, in, kernel, &got));
        REQUIRE_OK(conv_shape(&explicit_pads, 1, in, kernel, &want));
        CHECK_EQ_MEM(got.data, want.data, (size_t)want.bytes);
        sp__array_deinit(&got);
        sp__array_deinit(&want);
    }
}

TEST(windows_that_make_no_sense_are_refused)
{
    const int64_t in[2] = {5, 5}, kernel[2] = {3, 3}, zero[2] = {0, 1}, big[2] = {INT64_MAX, 1};
    const int64_t large[2] = {7, 3}, negative[4] = {-1, 0, 0, 0}, one[1] = {1};
    const int64_t huge[4] = {INT64_MAX, 0, 0, 0};
    const sp_text wrong = sp__text("SAME");
    sp_array out;
    const sp_attribute bad[] = {
        data_attribute_ints("strides", zero, 2),      data_attribute_ints("dilations", big, 2),
        data_attribute_ints("strides", one, 1),       data_attribute_ints("pads", huge, 4),
        data_attribute_text("auto_pad", &wrong),      data_attribute_ints("pads", negative, 4),
        data_attribute_ints("kernel_shape", large, 2)};
    for (size_t i = 0; i < SP_COUNT_OF(bad); i++) {
        CHECK(conv_shape(&bad[i], 1, in, kernel, &out) != SP_OK);
    }
    CHECK_STATUS(conv_shape(NULL, 0, in, large, &out), SP_MISMATCH);
    CHECK_MESSAGE("a window of 7 does not fit an input of 5");
}

/* ---- MaxPool ---- */

static float pool_at(const window_case *c, const float *plane, int64_t oy, int64_t ox)
{
    const place p = place_of(c, oy, ox);
    float best = -HUGE_VALF;
    for (int64_t i = 0; i < p.kernel_h; i++) {
        for (int64_t j = 0; j < p.kernel_w; j++) {
            const float v = at(c, plane, p.y + i * p.step_y, p.x + j * p.step_x, -HUGE_VALF);
            if (isnan(v) || isnan(best)) best = NAN;
            else if (v > best) best = v;
        }
    }
    return best;
}

static void check_pool(window_case *c, data_random *random)
{
    const sp_shape shape = spatial_shape(c, c->images, c->channels, c->in);
    sp_array in = data_floats(random, &shape), out;
    ((float *)in.data)[data_next(random) % (in.bytes / 4)] = NAN;
    const uint32_t n = (uint32_t)c->spatial;
    const sp_attribute attributes[] = {data_attribute_ints("kernel_shape", c->kernel, n),
                                       data_attribute_ints("strides", c->stride, n),
                                       data_attribute_ints("dilations", c->dilation, n),
                                       data_attribute_ints("pads", c->pads, 2 * n)};
    const int64_t out_h = c->spatial == 2 ? out_size(c, 0) : 1;
    const int64_t out_w = out_size(c, (int)c->spatial - 1);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = "MaxPool",
                                .version = 12,
                                .attributes = attributes,
                                .attribute_count = 4,
                                .inputs = &in,
                                .input_count = 1,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &out));
        const float *got = out.data;
        const int64_t plane = (int64_t)(in.bytes / 4) / (c->images * c->channels);
        uint64_t wrong = 0;
        for (int64_t i = 0; i < c->images * c->channels * out_h * out_w; i++) {
            const float *from = (const float *)in.data + i / (out_h * out_w) * plane;
            const int64_t p = i % (out_h * out_w);
            const float want = pool_at(c, from, p / out_w, p % out_w);
            if (!(isnan(want) ? isnan(got[i]) : data_is_same(got[i], want))) wrong++;
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&out);
    }
    sp__array_deinit(&in);
}

TEST(max_pool_takes_the_maximum_and_passes_nans_on)
{
    data_random random = {14};
    const uint64_t count = test_count(20000, 250);
    for (uint64_t i = 0; i < count; i++) {
        window_case c = random_case(&random);
        check_pool(&c, &random);
    }
}

TEST(ceil_mode_rounds_up_but_no_window_starts_behind_the_input)
{
    const int64_t kernel[1] = {3}, stride[1] = {2}, one = 1, pads[2] = {1, 1};
    /* size: 0 padded by 1 each side; outputs by ONNX's formula and its rule for the last one. */
    static const int64_t sizes[][2] = {{4, 3}, {5, 3}, {6, 4}, {7, 4}};
    const sp_attribute attributes[] = {
        data_attribute_ints("kernel_shape", kernel, 1), data_attribute_ints("strides", stride, 1),
        data_attribute_ints("pads", pads, 2), data_attribute_int("ceil_mode", &one)};
    data_random random = {1};
    for (size_t i = 0; i < SP_COUNT_OF(sizes); i++) {
        const sp_shape shape = {.rank = 3, .dims = {1, 1, sizes[i][0]}};
        sp_array in = data_floats(&random, &shape), out;
        const data_call call = {.op = "MaxPool",
                                .version = 12,
                                .attributes = attributes,
                                .attribute_count = 4,
                                .inputs = &in,
                                .input_count = 1,
                                .output_count = 1};
        REQUIRE_OK(data_run_op(&call, &out));
        CHECK_EQ_INT(out.shape.dims[2], sizes[i][1]);
        sp__array_deinit(&in);
        sp__array_deinit(&out);
    }
}

TEST_MAIN
