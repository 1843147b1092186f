/* SPDX-License-Identifier: Apache-2.0 */
/* AveragePool and MaxPool over one to three dimensions: bits of the rule in plain loops, on every
 * instruction set, for random windows; refusals. */
#include "base/heap.h"
#include "unit/ops/schema/lane_rule.h"
#include "unit/ops/schema/window_rule.h"

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

/* The averages of all planes, in a list that the caller frees. */
static float *averages(const window *w, const sp_array *x, bool counts_padding)
{
    const int64_t in = volume(w->in), out = volume(w->out);
    const int64_t count = (int64_t)(x->bytes / sizeof(float)) / in * out;
    float *want = sp_malloc(((size_t)count + 1) * sizeof *want);
    for (int64_t i = 0; want != NULL && i < count; i++) {
        const float *plane = (const float *)x->data + i / out * in;
        want[i] = average_at(w, plane, i % out, counts_padding);
    }
    return want;
}

static void check_average(window *w, int64_t images, int64_t rounds_up, int64_t counts_padding,
                          data_random *random)
{
    slide(w, rounds_up != 0);
    const sp_shape shape = shape_of(w, images, 3, w->in);
    const int64_t count = images * 3 * volume(w->out);
    sp_array x = data_floats(random, &shape), y;
    attributes a;
    fill_attributes(w, &a);
    a.list[4] = data_attribute_int("ceil_mode", &rounds_up);
    a.list[5] = data_attribute_int("count_include_pad", &counts_padding);
    float *want = averages(w, &x, counts_padding != 0);
    REQUIRE(want != NULL);
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
        REQUIRE((int64_t)y.bytes == count * 4);
        uint64_t wrong = 0;
        for (int64_t i = 0; i < count; i++) {
            wrong += !is_same(((const float *)y.data)[i], want[i]);
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&y);
    }
    sp_free(want);
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

/* Small integers, so that many are equal, with what needs care. */
static float max_input(data_random *random)
{
    static const float special[] = {NAN, -0.0f, -INFINITY};
    const uint64_t value = data_next(random) % 12;
    return value < 9 ? (float)value - 4 : special[value - 9];
}

static void fill_max_input(sp_array *x, data_random *random)
{
    for (uint64_t i = 0; i < sp__shape_count(&x->shape); i++) {
        const float value = max_input(random);
        if (x->dtype == SP_F32) ((float *)x->data)[i] = value;
        else if (x->dtype == SP_F64) ((double *)x->data)[i] = (double)value;
        else ((int8_t *)x->data)[i] = (int8_t)(data_next(random) % 9 * 30);
    }
}

static void check_max(window *w, sp_dtype dtype, int64_t rounds_up, int64_t order,
                      data_random *random)
{
    slide(w, rounds_up != 0);
    const sp_shape shape = shape_of(w, 2, 2, w->in);
    sp_array x = {0}, out[2], same;
    REQUIRE_OK(sp__array_init(&x, dtype, &shape));
    fill_max_input(&x, random);
    attributes a;
    fill_attributes(w, &a);
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
        for (int64_t p = 0; p < 4; p++) wrong += wrong_maxima(w, &x, out, p, order == 1);
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

TEST(max_pool_finds_the_first_maximum_and_its_place)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_U8, SP_I8};
    data_random random = {42};
    const uint64_t count = test_count(20000, 1000);
    for (uint64_t n = 0; n < count; n++) {
        const int64_t order = (int64_t)(data_next(&random) % 2);
        const int64_t rounds_up = (int64_t)(data_next(&random) % 2);
        window w = random_window(&random, rounds_up != 0);
        check_max(&w, dtypes[n % 4], rounds_up, order, &random);
    }
}

/* Planes of several blocks of rows and columns; windows of many taps, also of more than blocks are
 * made for, and with gaps between them. */
TEST(pools_of_large_planes_and_windows_have_the_bits_of_the_rule)
{
    static const window windows[] = {
        {{1, 90, 101}, {1, 1, 1}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}, 2},
        {{1, 65, 131}, {1, 1, 1}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}, 2},
        {{1, 2, 9001}, {1, 1, 1}, {1, 2, 5}, {1, 1, 3}, {1, 1, 1}, {0, 1, 2}, {0, 0, 4}, 2},
        {{1, 1, 6007}, {1, 1, 1}, {1, 1, 4}, {1, 1, 2}, {1, 1, 1}, {0, 0, 3}, {0, 0, 3}, 1},
        {{1, 21, 300}, {1, 1, 1}, {1, 16, 16}, {1, 1, 1}, {1, 1, 1}, {0, 15, 9}, {0, 3, 15}, 2},
        {{1, 21, 30}, {1, 1, 1}, {1, 17, 16}, {1, 1, 2}, {1, 1, 1}, {0, 5, 9}, {0, 3, 15}, 2},
        {{1, 33, 47}, {1, 1, 1}, {1, 3, 3}, {1, 2, 1}, {1, 5, 7}, {0, 2, 2}, {0, 1, 2}, 2},
        {{1, 40, 51}, {1, 1, 1}, {1, 2, 3}, {1, 3, 7}, {1, 1, 2}, {0, 1, 2}, {0, 0, 1}, 2},
        {{1, 1, 3}, {1, 1, 1}, {1, 5, 9}, {1, 2, 2}, {1, 1, 1}, {0, 4, 8}, {0, 4, 8}, 2},
        {{1, 64, 1}, {1, 1, 1}, {1, 5, 1}, {1, 1, 1}, {1, 1, 1}, {0, 2, 0}, {0, 2, 0}, 2},
    };
    data_random random = {47};
    const size_t step =
        test_scale() < 1 ? 3 : 1; /* instrumented code: another order for each window */
    for (size_t i = 0; i < SP_COUNT_OF(windows) * 4; i += step) {
        window w = windows[i / 4];
        check_max(&w, SP_F32, (int64_t)(i % 2), 0, &random);
        check_average(&w, 2, (int64_t)(i % 2), (int64_t)(i / 2 % 2), &random);
    }
}

/* ---- errors ---- */

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
