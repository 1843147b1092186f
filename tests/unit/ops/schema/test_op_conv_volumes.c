/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and ConvTranspose over one to three dimensions: bits of the rule in plain loops, on every
 * instruction set, for random windows; refusals. */
#include "product_rule.h"
#include "unit/ops/schema/window_rule.h"

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

TEST_MAIN
