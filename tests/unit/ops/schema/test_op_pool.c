/* SPDX-License-Identifier: Apache-2.0 */
/* AveragePool, MaxPool with indices, Conv and ConvTranspose over one to three dimensions: bits of
 * the rule in plain loops, on every instruction set, for random windows; refusals. */
#include "product_rule.h"
#include "unit/ops/schema/lane_rule.h"

/* Three dimensions, the leading unused ones of size 1; `spatial` of them are used. */
typedef struct window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3], end[3];
    uint32_t spatial;
} window;

/* `rounds_up`: the window may reach beyond the padded input, by less than a stride. */
static window random_window(data_random *random, bool rounds_up)
{
    window w = {.spatial = 1 + (uint32_t)(data_next(random) % 3)};
    for (uint32_t i = 0; i < 3; i++) {
        w.in[i] = w.out[i] = w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
        if (i < 3 - w.spatial) continue;
        w.kernel[i] = 1 + (int64_t)(data_next(random) % 4);
        w.stride[i] = 1 + (int64_t)(data_next(random) % 3);
        w.dilation[i] = 1 + (int64_t)(data_next(random) % 3);
        w.pad[i] = (int64_t)(data_next(random) % (uint64_t)w.kernel[i]);
        w.end[i] = (int64_t)(data_next(random) % (uint64_t)w.kernel[i]);
        const int64_t reach = (w.kernel[i] - 1) * w.dilation[i] + 1;
        const int64_t least = reach - w.pad[i] - w.end[i] - (rounds_up ? w.stride[i] - 1 : 0);
        const uint64_t more = i == 2 ? (data_next(random) % 4 == 0 ? 200 : 20) : 7;
        w.in[i] = (least > 1 ? least : 1) + (int64_t)(data_next(random) % more);
    }
    return w;
}

static void slide(window *w, bool rounds_up)
{
    for (uint32_t i = 3 - w->spatial; i < 3; i++) {
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t room = w->in[i] + w->pad[i] + w->end[i] - reach;
        w->out[i] =
            (rounds_up ? (room + w->stride[i] - 1) / w->stride[i] : room / w->stride[i]) + 1;
        if (rounds_up && (w->out[i] - 1) * w->stride[i] >= w->in[i] + w->pad[i]) w->out[i]--;
    }
}

static int64_t volume(const int64_t sizes[3])
{
    return sizes[0] * sizes[1] * sizes[2];
}

/* Splits flat index `index` into coordinates of `sizes`. */
static void unfold(int64_t index, const int64_t sizes[3], int64_t out[3])
{
    out[2] = index % sizes[2];
    out[1] = index / sizes[2] % sizes[1];
    out[0] = index / sizes[2] / sizes[1];
}

static sp_shape shape_of(const window *w, int64_t first, int64_t second, const int64_t sizes[3])
{
    sp_shape s = {.rank = 2 + w->spatial, .dims = {first, second}};
    for (uint32_t i = 0; i < w->spatial; i++) s.dims[2 + i] = sizes[3 - w->spatial + i];
    return s;
}

enum { MAX_ATTRIBUTES = 8 };
typedef struct attributes {
    sp_attribute list[MAX_ATTRIBUTES];
    int64_t pads[6];
} attributes;

/* strides, dilations, pads, kernel_shape */
static void fill_attributes(const window *w, attributes *out)
{
    const uint32_t first = 3 - w->spatial;
    for (uint32_t i = 0; i < w->spatial; i++) {
        out->pads[i] = w->pad[first + i];
        out->pads[w->spatial + i] = w->end[first + i];
    }
    out->list[0] = data_attribute_ints("strides", w->stride + first, w->spatial);
    out->list[1] = data_attribute_ints("dilations", w->dilation + first, w->spatial);
    out->list[2] = data_attribute_ints("pads", out->pads, 2 * w->spatial);
    out->list[3] = data_attribute_ints("kernel_shape", w->kernel + first, w->spatial);
}

static bool is_inside(const window *w, const int64_t at[3])
{
    for (int i = 0; i < 3; i++) {
        if (at[i] < 0 || at[i] >= w->in[i]) return false;
    }
    return true;
}

static int64_t offset_of(const window *w, const int64_t at[3])
{
    return (at[0] * w->in[1] + at[1]) * w->in[2] + at[2];
}

/* The input position of tap number `tap` of output `out`. */
static void tap_place(const window *w, int64_t out, int64_t tap, int64_t at[3])
{
    int64_t o[3], t[3];
    unfold(out, w->out, o);
    unfold(tap, w->kernel, t);
    for (int i = 0; i < 3; i++) at[i] = o[i] * w->stride[i] - w->pad[i] + t[i] * w->dilation[i];
}

/* ---- AveragePool ---- */

/* A tap in the padding joins no lane; 0, which it is here, changes none. */
static float average_at(const window *w, const float *plane, int64_t out, bool counts_padding)
{
    static float taps[LONGEST];
    int64_t count = 0;
    for (int64_t tap = 0; tap < volume(w->kernel); tap++) {
        int64_t at[3];
        tap_place(w, out, tap, at);
        bool counts = true;
        for (int i = 0; i < 3; i++) counts &= at[i] < w->in[i] + w->end[i];
        count += counts_padding ? counts : is_inside(w, at);
        taps[tap] = is_inside(w, at) ? plane[offset_of(w, at)] : 0;
    }
    return rule_f32(SUM, taps, volume(w->kernel)) / (float)count;
}

static bool is_same(float got, float want)
{
    return isnan(want) ? isnan(got) : data_is_same(got, want);
}

static void check_average(window *w, int64_t images, int64_t rounds_up, int64_t counts_padding,
                          data_random *random)
{
    slide(w, rounds_up != 0);
    const sp_shape shape = shape_of(w, images, 3, w->in);
    const int64_t planes = images * 3, out = volume(w->out);
    sp_array x = data_floats(random, &shape), y;
    attributes a;
    fill_attributes(w, &a);
    a.list[4] = data_attribute_int("ceil_mode", &rounds_up);
    a.list[5] = data_attribute_int("count_include_pad", &counts_padding);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = "AveragePool",
                                .version = 19,
                                .attributes = a.list,
                                .attribute_count = 6,
                                .inputs = &x,
                                .input_count = 1,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &y));
        REQUIRE((int64_t)y.bytes == planes * out * 4);
        uint64_t wrong = 0;
        for (int64_t i = 0; i < planes * out; i++) {
            const float *plane = (const float *)x.data + i / out * volume(w->in);
            wrong += !is_same(((const float *)y.data)[i],
                              average_at(w, plane, i % out, counts_padding != 0));
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&y);
    }
    sp__array_deinit(&x);
}

TEST(average_pool_has_the_bits_of_the_rule)
{
    data_random random = {41};
    const uint64_t count = test_count(20000, 1000);
    for (uint64_t n = 0; n < count; n++) {
        const int64_t rounds_up = (int64_t)(data_next(&random) % 2);
        window w = random_window(&random, rounds_up != 0);
        const int64_t counts_padding = (int64_t)(data_next(&random) % 2);
        check_average(&w, 2, rounds_up, counts_padding, &random);
    }
}

/* Windows of several blocks. Of the third, whole blocks are in the padding. */
TEST(average_pool_of_several_blocks_has_the_bits_of_the_rule)
{
    static const window windows[] = {
        {{1, 1, 4170}, {1, 1, 1}, {1, 1, 4097}, {1, 1, 1}, {1, 1, 1}, {0, 0, 9}, {0, 0, 3}, 1},
        {{1, 70, 73}, {1, 1, 1}, {1, 64, 64}, {1, 5, 4}, {1, 1, 1}, {0, 5, 7}, {0, 9, 3}, 2},
        {{1, 1, 1900}, {1, 1, 1}, {1, 1, 9999}, {1, 1, 900}, {1, 1, 1}, {0, 0, 9000}, {0, 0, 0}, 1},
        {{1, 80, 79}, {1, 1, 1}, {1, 63, 67}, {1, 5, 4}, {1, 1, 1}, {0, 5, 7}, {0, 9, 3}, 2},
        {{18, 21, 29}, {1, 1, 1}, {17, 19, 27}, {3, 4, 5}, {1, 1, 1}, {3, 4, 5}, {2, 1, 6}, 3},
        {{1, 9, 140}, {1, 1, 1}, {1, 61, 69}, {1, 9, 5}, {1, 1, 2}, {0, 60, 3}, {0, 60, 1}, 2},
        {{1, 2, 33000}, {1, 1, 1}, {1, 2, 32772}, {1, 1, 120}, {1, 1, 1}, {0, 1, 90}, {0, 0, 9}, 2},
    };
    data_random random = {46};
    for (size_t i = 0; i < SP_COUNT_OF(windows) * 2; i++) {
        window w = windows[i / 2];
        check_average(&w, 1, 0, (int64_t)(i % 2), &random);
    }
}

/* ---- MaxPool ---- */

static double element(const sp_array *a, int64_t i)
{
    if (a->dtype == SP_F32) return (double)((const float *)a->data)[i];
    if (a->dtype == SP_F64) return ((const double *)a->data)[i];
    return a->dtype == SP_U8 ? ((const uint8_t *)a->data)[i] : ((const int8_t *)a->data)[i];
}

/* Wrong outputs of plane `plane`. */
static uint64_t wrong_maxima(const window *w, const sp_array *x, const sp_array out[2],
                             int64_t plane, bool is_column_major)
{
    uint64_t wrong = 0;
    for (int64_t i = 0; i < volume(w->out); i++) {
        double best = 0;
        int64_t place = -1;
        for (int64_t tap = 0; tap < volume(w->kernel); tap++) {
            int64_t at[3];
            tap_place(w, i, tap, at);
            if (!is_inside(w, at)) continue;
            const double v = element(x, plane * volume(w->in) + offset_of(w, at));
            if (place >= 0 && !(v > best || (isnan(v) && !isnan(best)))) continue;
            best = v;
            place = plane * volume(w->in) + (is_column_major
                                                 ? at[0] + w->in[0] * (at[1] + w->in[1] * at[2])
                                                 : offset_of(w, at));
        }
        const int64_t index = plane * volume(w->out) + i;
        const double got = element(&out[0], index);
        wrong += ((const int64_t *)out[1].data)[index] != place;
        if (place >= 0 && (isnan(best) ? !isnan(got) : got != best)) wrong++;
    }
    return wrong;
}

TEST(max_pool_finds_the_first_maximum_and_its_place)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_U8, SP_I8};
    data_random random = {42};
    const uint64_t count = test_count(20000, 1000);
    for (uint64_t n = 0; n < count; n++) {
        const int64_t order = (int64_t)(data_next(&random) % 2);
        const int64_t rounds_up = (int64_t)(data_next(&random) % 2);
        window w = random_window(&random, rounds_up != 0);
        slide(&w, rounds_up != 0);
        const sp_shape shape = shape_of(&w, 2, 2, w.in);
        sp_array x = {0}, out[2], same;
        REQUIRE_OK(sp__array_init(&x, dtypes[n % 4], &shape));
        for (uint64_t i = 0; i < sp__shape_count(&shape); i++) {
            const int64_t value = (int64_t)(data_next(&random) % 9);
            if (x.dtype == SP_F32) ((float *)x.data)[i] = value == 8 ? NAN : (float)(value - 4);
            else if (x.dtype == SP_F64) ((double *)x.data)[i] = (double)(value - 4);
            else ((int8_t *)x.data)[i] = (int8_t)(value * 30);
        }
        attributes a;
        fill_attributes(&w, &a);
        a.list[4] = data_attribute_int("storage_order", &order);
        a.list[5] = data_attribute_int("ceil_mode", &rounds_up);
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            data_call call = {.op = "MaxPool",
                              .version = 12,
                              .attributes = a.list,
                              .attribute_count = 6,
                              .inputs = &x,
                              .input_count = 1,
                              .output_count = 2,
                              .isa = (sp_cpu_isa)isa};
            if (sp__cpu_kernels(call.isa) == NULL) continue;
            REQUIRE_OK(data_run_op(&call, out));
            uint64_t wrong = 0;
            for (int64_t p = 0; p < 4; p++) wrong += wrong_maxima(&w, &x, out, p, order == 1);
            CHECK_EQ_U64(wrong, 0);
            call.output_count = 1; /* another kernel, for f32 over images */
            REQUIRE_OK(data_run_op(&call, &same));
            CHECK_EQ_MEM(same.data, out[0].data, (size_t)same.bytes);
            sp__array_deinit(&same);
            sp__array_deinit(&out[0]);
            sp__array_deinit(&out[1]);
        }
        sp__array_deinit(&x);
    }
}

/* ---- Conv over volumes, ConvTranspose ---- */

typedef struct conv_case {
    window w;
    int64_t images, groups, channels, filters; /* channels and filters of one group */
    bool has_bias;
} conv_case;

static conv_case random_conv(data_random *random)
{
    conv_case c = {.w = random_window(random, false),
                   .images = 1 + (int64_t)(data_next(random) % 2),
                   .groups = 1 + (int64_t)(data_next(random) % 3),
                   .channels = 1 + (int64_t)(data_next(random) % 4),
                   .filters = 1 + (int64_t)(data_next(random) % 8),
                   .has_bias = data_next(random) % 2 == 0};
    return c;
}

static float conv_at(const conv_case *c, const sp_array *in, int64_t plane, int64_t out)
{
    const window *w = &c->w;
    const int64_t group = plane / c->filters, filter = plane % (c->groups * c->filters);
    const float *weights = (const float *)in[1].data + filter * c->channels * volume(w->kernel);
    product_sum sum = product_begin(volume(w->kernel));
    for (int64_t ch = 0; ch < c->channels; ch++) {
        const float *x = (const float *)in[0].data + (group * c->channels + ch) * volume(w->in);
        for (int64_t tap = 0; tap < volume(w->kernel); tap++) {
            int64_t at[3];
            tap_place(w, out, tap, at);
            product_step(&sum, *weights++, is_inside(w, at) ? x[offset_of(w, at)] : 0);
        }
    }
    const float y = product_end(&sum);
    return c->has_bias ? y + ((const float *)in[2].data)[filter] : y;
}

/* The sum over the taps inside the input; the others keep their place. */
static float transposed_at(const conv_case *c, const sp_array *in, int64_t plane, int64_t out)
{
    const window *w = &c->w;
    const int64_t group = plane / c->filters, filter = plane % (c->groups * c->filters);
    int64_t o[3], t[3], at[3];
    unfold(out, w->out, o);
    product_sum sum = product_begin(volume(w->kernel));
    for (int64_t ch = 0; ch < c->channels; ch++) {
        const int64_t from = filter / c->filters * c->channels + ch;
        const float *weights = (const float *)in[1].data +
                               (from * c->filters + filter % c->filters) * volume(w->kernel);
        const float *x = (const float *)in[0].data + (group * c->channels + ch) * volume(w->in);
        for (int64_t tap = 0; tap < volume(w->kernel); tap++) {
            bool meets = true;
            unfold(tap, w->kernel, t);
            for (int i = 0; i < 3; i++) {
                const int64_t distance = o[i] + w->pad[i] - t[i] * w->dilation[i];
                meets &= distance >= 0 && distance % w->stride[i] == 0;
                at[i] = distance / w->stride[i];
            }
            if (meets && is_inside(w, at)) product_step(&sum, weights[tap], x[offset_of(w, at)]);
            else product_skip(&sum);
        }
    }
    const float y = product_end(&sum);
    return c->has_bias ? y + ((const float *)in[2].data)[filter] : y;
}

typedef float (*conv_rule)(const conv_case *c, const sp_array *in, int64_t plane, int64_t out);

/* Runs the call with `more` extra attributes; w.out is the expected shape. */
static void check_conv(const char *op, conv_rule rule, const conv_case *c, attributes *a,
                       uint32_t more, data_random *random)
{
    const window *w = &c->w;
    const bool is_transposed = rule == transposed_at;
    const int64_t channels = c->groups * c->channels, filters = c->groups * c->filters;
    const sp_shape shapes[3] = {shape_of(w, c->images, channels, w->in),
                                is_transposed ? shape_of(w, channels, c->filters, w->kernel)
                                              : shape_of(w, filters, c->channels, w->kernel),
                                {.rank = 1, .dims = {filters}}};
    sp_array in[3], y;
    for (int i = 0; i < 3; i++) in[i] = data_floats(random, &shapes[i]);
    const sp_shape want = shape_of(w, c->images, filters, w->out);
    a->list[4] = data_attribute_int("group", &c->groups);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = op,
                                .version = 11,
                                .attributes = a->list,
                                .attribute_count = 5 + more,
                                .inputs = in,
                                .input_count = c->has_bias ? 3 : 2,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &y));
        REQUIRE(sp__shape_equal(&y.shape, &want));
        const int64_t out = volume(w->out);
        uint64_t wrong = 0;
        for (int64_t i = 0; i < c->images * filters * out; i++) {
            wrong += !data_is_same(((const float *)y.data)[i], rule(c, in, i / out, i % out));
        }
        CHECK_EQ_U64(wrong, 0);
        if (wrong > 0) {
            test_note("%s of %s by %s", op, sp__shape_print(&shapes[0]).text,
                      sp__shape_print(&shapes[1]).text);
        }
        sp__array_deinit(&y);
    }
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
}

TEST(conv_over_volumes_has_the_bits_of_the_rule)
{
    data_random random = {43};
    const uint64_t count = test_count(5000, 300);
    for (uint64_t n = 0; n < count; n++) {
        conv_case c = random_conv(&random);
        attributes a;
        if (n % 16 == 0) c.channels += 20; /* several segments, if the kernel is large */
        slide(&c.w, false);
        fill_attributes(&c.w, &a);
        check_conv("Conv", conv_at, &c, &a, 0, &random);
    }
}

TEST(conv_transpose_has_the_bits_of_the_rule)
{
    data_random random = {44};
    const uint64_t count = test_count(5000, 150);
    for (uint64_t n = 0; n < count; n++) {
        conv_case c = random_conv(&random);
        window *w = &c.w;
        if (n % 8 == 0) c.channels += 40;
        int64_t extra[3] = {0};
        for (uint32_t i = 3 - w->spatial; i < 3; i++) {
            extra[i] = (int64_t)(data_next(&random) % (uint64_t)w->stride[i]);
            const int64_t whole =
                (w->in[i] - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 + extra[i];
            if (whole < w->pad[i] + w->end[i]) w->pad[i] = w->end[i] = 0;
            w->out[i] = whole - w->pad[i] - w->end[i];
        }
        const int64_t products = volume(w->out) * volume(w->kernel) * c.channels;
        if (products * c.filters * c.groups * c.images > 1000000) continue; /* too slow a loop */
        attributes a;
        fill_attributes(w, &a);
        a.list[5] = data_attribute_ints("output_padding", extra + 3 - w->spatial, w->spatial);
        check_conv("ConvTranspose", transposed_at, &c, &a, 1, &random);
    }
}

TEST(conv_transpose_cuts_a_kernel_that_is_longer_than_a_segment)
{
    data_random random = {46};
    for (int64_t stride = 1; stride < 4; stride++) {
        conv_case c = {.w = {.in = {1, 3, 4},
                             .kernel = {1, 24, 25},
                             .stride = {1, stride, 1},
                             .dilation = {1, 1, 1},
                             .spatial = 2},
                       .images = 1,
                       .groups = 1,
                       .channels = 2,
                       .filters = 2};
        attributes a;
        for (int i = 0; i < 3; i++) {
            c.w.out[i] = (c.w.in[i] - 1) * c.w.stride[i] + c.w.kernel[i];
        }
        fill_attributes(&c.w, &a);
        check_conv("ConvTranspose", transposed_at, &c, &a, 0, &random);
    }
}

/* output_shape and SAME_*: the amount that is cropped, and at which end. */
TEST(conv_transpose_makes_the_output_that_is_asked_for)
{
    data_random random = {45};
    static const char *const modes[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER"};
    for (int mode = 0; mode < 3; mode++) {
        for (int64_t wanted = 0; wanted < 14; wanted++) {
            if (wanted == 0 && mode == 0) continue;
            conv_case c = {.w = {.in = {1, 1, 5},
                                 .out = {1, 1, 1},
                                 .kernel = {1, 1, 4},
                                 .stride = {1, 1, 2},
                                 .dilation = {1, 1, 1},
                                 .spatial = 1},
                           .images = 1,
                           .groups = 1,
                           .channels = 2,
                           .filters = 2};
            const sp_text text = sp__text(modes[mode]);
            attributes a;
            fill_attributes(&c.w, &a);
            a.list[2] = data_attribute_text("auto_pad", &text); /* instead of pads */
            a.list[5] = data_attribute_ints("output_shape", &wanted, 1);
            c.w.out[2] = wanted > 0 ? wanted : 10;
            const int64_t cut = c.w.out[2] < 12 ? 12 - c.w.out[2] : 0;
            c.w.pad[2] = mode == 1 ? cut / 2 : cut - cut / 2;
            check_conv("ConvTranspose", transposed_at, &c, &a, wanted > 0, &random);
        }
    }
}

/* ---- errors ---- */

static sp_status run_transpose(const sp_attribute *list, uint32_t count, int64_t in_channels,
                               int64_t weight_channels)
{
    data_random random = {1};
    const sp_shape x = {.rank = 3, .dims = {1, in_channels, 5}};
    const sp_shape w = {.rank = 3, .dims = {weight_channels, 2, 3}};
    sp_array in[2] = {data_floats(&random, &x), data_floats(&random, &w)}, y = {0};
    const data_call call = {.op = "ConvTranspose",
                            .version = 11,
                            .attributes = list,
                            .attribute_count = count,
                            .inputs = in,
                            .input_count = 2,
                            .output_count = 1};
    const sp_status status = data_run_op(&call, &y);
    for (int i = 0; i < 2; i++) sp__array_deinit(&in[i]);
    sp__array_deinit(&y);
    return status;
}

TEST(transposed_windows_that_make_no_sense_are_refused)
{
    const int64_t pads[2] = {5, 5}, negative[1] = {-1}, two = 2, huge = INT64_MAX;
    CHECK_STATUS(run_transpose(NULL, 0, 2, 3), SP_MISMATCH);
    sp_attribute a = data_attribute_int("group", &two);
    CHECK_STATUS(run_transpose(&a, 1, 3, 3), SP_MISMATCH);
    CHECK_MESSAGE("2 groups do not fit an input of shape [1,3,5] and weights of shape [3,2,3]");
    a = data_attribute_ints("pads", pads, 2);
    CHECK_STATUS(run_transpose(&a, 1, 2, 2), SP_MISMATCH);
    CHECK_MESSAGE("exceed an output of 7");
    a = data_attribute_ints("output_padding", negative, 1);
    CHECK(run_transpose(&a, 1, 2, 2) != SP_OK);
    a = data_attribute_ints("output_shape", &huge, 1);
    CHECK_STATUS(run_transpose(&a, 1, 2, 2), SP_MISMATCH);
}

TEST(inputs_of_four_spatial_dimensions_are_refused)
{
    data_random random = {1};
    const int64_t kernel[4] = {1, 1, 1, 1};
    const sp_shape shape = {.rank = 6, .dims = {1, 1, 2, 2, 2, 2}};
    const sp_attribute a = data_attribute_ints("kernel_shape", kernel, 4);
    sp_array x = data_floats(&random, &shape), y;
    const data_call call = {.op = "AveragePool",
                            .version = 11,
                            .attributes = &a,
                            .attribute_count = 1,
                            .inputs = &x,
                            .input_count = 1,
                            .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &y), SP_UNSUPPORTED);
    CHECK_MESSAGE("1 to 3 spatial dimensions");
    sp__array_deinit(&x);
}

TEST_MAIN
