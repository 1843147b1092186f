/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations: bits of the written steps in plain loops, on every instruction set; refused
 * forms. */
#include "unit/ops/schema/lane_rule.h"

static float mean_of(const float *x, int64_t n)
{
    return rule_f32(MEAN, x, n);
}

static float variance_of(const float *x, int64_t n, float mean)
{
    static float distances[LONGEST];
    if (x == NULL || n > (int64_t)SP_COUNT_OF(distances)) abort();
    for (int64_t i = 0; i < n; i++) distances[i] = x[i] - mean;
    return rule_f32(SUM_SQUARE, distances, n) / (float)n;
}

static sp_array positive(data_random *random, const sp_shape *shape)
{
    sp_array a = data_floats(random, shape);
    for (uint64_t i = 0; i < a.bytes / 4; i++) {
        ((float *)a.data)[i] = ((float *)a.data)[i] + 1.25f;
    }
    return a;
}

typedef struct norm_call {
    data_call call;
    sp_array in[5], out[3];
} norm_call;

static void free_inputs(norm_call *n)
{
    for (uint32_t i = 0; i < n->call.input_count; i++) sp__array_deinit(&n->in[i]);
}

static void free_outputs(norm_call *n)
{
    for (uint32_t i = 0; i < n->call.output_count; i++) sp__array_deinit(&n->out[i]);
}

/* ---- BatchNormalization ---- */

static void make_batch_norm(norm_call *n, data_random *random, const sp_shape *x)
{
    const sp_shape list = {.rank = 1, .dims = {x->rank > 1 ? x->dims[1] : 1}};
    *n = (norm_call){.call = {.op = "BatchNormalization",
                              .version = 15,
                              .inputs = n->in,
                              .input_count = 5,
                              .output_count = 1}};
    n->in[0] = data_floats(random, x);
    for (int i = 1; i < 5; i++) n->in[i] = positive(random, &list);
}

TEST(batch_norm_has_the_bits_of_its_steps)
{
    static const sp_shape shapes[] = {{.rank = 1, .dims = {9}},
                                      {.rank = 2, .dims = {5, 33}},
                                      {.rank = 3, .dims = {2, 7, 1}},
                                      {.rank = 4, .dims = {3, 5, 7, 9}},
                                      {.rank = 5, .dims = {2, 3, 4, 2, 5}},
                                      {.rank = 4, .dims = {2, 3, 0, 4}}};
    data_random random = {51};
    const float epsilon = 1e-3f;
    const sp_attribute attribute = data_attribute_float("epsilon", &epsilon);
    for (size_t s = 0; s < SP_COUNT_OF(shapes) * SP_CPU_ISA_COUNT; s++) {
        const sp_shape *x = &shapes[s / SP_CPU_ISA_COUNT];
        norm_call n;
        make_batch_norm(&n, &random, x);
        n.call.attributes = &attribute;
        n.call.attribute_count = 1;
        n.call.isa = (sp_cpu_isa)(s % SP_CPU_ISA_COUNT);
        if (sp__cpu_kernels(n.call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&n.call, n.out));
            const float *in[5];
            for (int i = 0; i < 5; i++) in[i] = n.in[i].data;
            const int64_t plane = (int64_t)sp__shape_range_count(x, x->rank < 2 ? 1 : 2, x->rank);
            uint64_t wrong = 0;
            for (int64_t i = 0; i < (int64_t)sp__shape_count(x); i++) {
                const int64_t c = x->rank > 1 ? i / plane % x->dims[1] : 0;
                const float factor = in[1][c] / sqrtf(in[4][c] + epsilon);
                const float moved = (in[0][i] - in[3][c]) * factor, want = moved + in[2][c];
                wrong += !data_is_same(((float *)n.out[0].data)[i], want);
            }
            CHECK_EQ_U64(wrong, 0);
            free_outputs(&n);
        }
        free_inputs(&n);
    }
}

TEST(batch_norm_in_training_takes_the_statistics_of_the_batch)
{
    enum { IMAGES = 3, CHANNELS = 4, PLANE = 10 };
    data_random random = {52};
    const sp_shape shape = {.rank = 3, .dims = {IMAGES, CHANNELS, PLANE}};
    const int64_t one = 1;
    const float momentum = 0.75f;
    const sp_attribute attributes[] = {data_attribute_int("training_mode", &one),
                                       data_attribute_float("momentum", &momentum)};
    norm_call n;
    make_batch_norm(&n, &random, &shape);
    n.call.attributes = attributes;
    n.call.attribute_count = 2;
    n.call.output_count = 3;
    REQUIRE_OK(data_run_op(&n.call, n.out));
    const float *in[5], *out[3];
    for (int i = 0; i < 5; i++) in[i] = n.in[i].data;
    for (int i = 0; i < 3; i++) out[i] = n.out[i].data;
    for (int c = 0; c < CHANNELS; c++) {
        float values[IMAGES * PLANE];
        for (int i = 0; i < IMAGES * PLANE; i++) {
            values[i] = in[0][(i / PLANE * CHANNELS + c) * PLANE + i % PLANE];
        }
        const float mean = mean_of(values, IMAGES * PLANE);
        const float variance = variance_of(values, IMAGES * PLANE, mean);
        const float old_mean = in[3][c] * momentum, new_mean = mean * 0.25f;
        const float old_variance = in[4][c] * momentum, new_variance = variance * 0.25f;
        CHECK(data_is_same(out[1][c], old_mean + new_mean));
        CHECK(data_is_same(out[2][c], old_variance + new_variance));
        const float factor = in[1][c] / sqrtf(variance + 1e-5f);
        const float moved = (in[0][c * PLANE] - mean) * factor;
        CHECK(data_is_same(out[0][c * PLANE], moved + in[2][c]));
    }
    free_outputs(&n);
    free_inputs(&n);
}

TEST(batch_norms_that_are_not_inference_are_refused)
{
    data_random random = {53};
    const sp_shape shape = {.rank = 3, .dims = {2, 4, 3}};
    const int64_t zero = 0;
    const sp_attribute spatial = data_attribute_int("spatial", &zero);
    norm_call n;
    make_batch_norm(&n, &random, &shape);
    n.call.output_count = 3;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_MISMATCH);
    CHECK_MESSAGE("3 outputs without training_mode");
    n.call.version = 9;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
    CHECK_MESSAGE("training before version 14");
    n.call.output_count = 1;
    n.call.version = 6;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
    n.call.version = 7;
    n.call.attributes = &spatial;
    n.call.attribute_count = 1;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
    CHECK_MESSAGE("spatial = 0");
    n.call.attribute_count = 0;
    n.in[2].shape.dims[0] = 3;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_MISMATCH);
    CHECK_MESSAGE("input 2 has shape [3]; expected [4]");
    free_inputs(&n);
}

/* ---- rows with their own statistics ---- */

/* Every row of `extent`: the number of its first scale is given by `row` and `span`. */
static uint64_t wrong_rows(const norm_call *n, int64_t rows, int64_t extent, int64_t scale_rows,
                           int64_t scale_row, int64_t span)
{
    uint64_t wrong = 0;
    const float *scale = n->in[1].data, *bias = n->call.input_count > 2 ? n->in[2].data : NULL;
    for (int64_t r = 0; r < rows; r++) {
        const float *x = (const float *)n->in[0].data + r * extent;
        const float *y = (const float *)n->out[0].data + r * extent;
        const float mean = mean_of(x, extent);
        const float variance = variance_of(x, extent, mean);
        const float inverse = 1.0f / sqrtf(variance + 1e-5f);
        for (int64_t i = 0; i < extent; i++) {
            const int64_t at = r % scale_rows * scale_row + i / span;
            const float centred = (x[i] - mean) * inverse, scaled = centred * scale[at];
            wrong += !data_is_same(y[i], bias ? scaled + bias[at] : scaled);
        }
        if (n->call.output_count < 3) continue;
        wrong += !data_is_same(((const float *)n->out[1].data)[r], mean);
        wrong += !data_is_same(((const float *)n->out[2].data)[r], inverse);
    }
    return wrong;
}

static void make_norm(norm_call *n, const char *op, uint32_t version, data_random *random,
                      const sp_shape *x, const sp_shape *scale)
{
    *n = (norm_call){
        .call = {
            .op = op, .version = version, .inputs = n->in, .input_count = 3, .output_count = 1}};
    n->in[0] = data_floats(random, x);
    n->in[1] = data_floats(random, scale);
    n->in[2] = data_floats(random, scale);
}

TEST(layer_norm_has_the_bits_of_its_steps_for_every_axis)
{
    data_random random = {54};
    const sp_shape x = {.rank = 4, .dims = {3, 2, 5, 7}};
    for (int64_t at = 0; at < 4 * SP_CPU_ISA_COUNT * 2; at++) {
        const int64_t axis = at % 4;
        const bool has_bias = at / 4 % 2 == 0;
        const sp_attribute attribute = data_attribute_int("axis", &axis);
        sp_shape scale = {.rank = (uint32_t)(4 - axis)};
        for (uint32_t i = 0; i < scale.rank; i++) scale.dims[i] = x.dims[axis + i];
        norm_call n;
        make_norm(&n, "LayerNormalization", 17, &random, &x, &scale);
        n.call.attributes = &attribute;
        n.call.attribute_count = 1;
        n.call.isa = (sp_cpu_isa)(at / 8);
        n.call.output_count = 3;
        if (!has_bias) {
            n.call.input_count = 2;
            sp__array_deinit(&n.in[2]);
        }
        if (sp__cpu_kernels(n.call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&n.call, n.out));
            const int64_t rows = (int64_t)sp__shape_range_count(&x, 0, (uint32_t)axis);
            CHECK_EQ_U64(wrong_rows(&n, rows, 210 / rows, 1, 0, 1), 0);
            CHECK_EQ_INT(n.out[1].shape.dims[3], 1);
            free_outputs(&n);
        }
        free_inputs(&n);
    }
}

/* Elements of an operand of shape `from`, repeated to `to`. */
static sp_array repeated(const sp_array *from, const sp_shape *to)
{
    int64_t strides[SP_MAX_RANK];
    sp_array all = data_counted(SP_F32, *to, 0);
    sp__shape_broadcast_strides(&from->shape, to, strides);
    for (uint64_t i = 0; i < sp__shape_count(to); i++) {
        int64_t at = 0;
        uint64_t rest = i;
        for (uint32_t d = to->rank; d-- > 0; rest /= (uint64_t)to->dims[d]) {
            at += (int64_t)(rest % (uint64_t)to->dims[d]) * strides[d];
        }
        ((float *)all.data)[i] = ((const float *)from->data)[at];
    }
    return all;
}

/* As if it were given in the row's own shape. */
TEST(layer_norm_repeats_a_scale_and_a_bias_that_broadcast_to_the_row)
{
    static const sp_shape shapes[][2] = {{{1, {7}}, {2, {5, 1}}},
                                         {{0, {0}}, {1, {1}}},
                                         {{2, {5, 7}}, {1, {7}}},
                                         {{4, {1, 1, 5, 1}}, {3, {1, 5, 7}}},
                                         {{3, {1, 1, 7}}, {2, {1, 1}}}};
    const sp_shape x = {.rank = 4, .dims = {3, 2, 5, 7}}, row = {.rank = 2, .dims = {5, 7}};
    const int64_t axis = 2;
    const sp_attribute attribute = data_attribute_int("axis", &axis);
    data_random random = {59};
    for (size_t i = 0; i < SP_COUNT_OF(shapes) * SP_CPU_ISA_COUNT; i++) {
        const sp_shape *of = shapes[i % SP_COUNT_OF(shapes)];
        norm_call n;
        make_norm(&n, "LayerNormalization", 17, &random, &x, &of[0]);
        sp__array_deinit(&n.in[2]);
        n.in[2] = data_floats(&random, &of[1]);
        n.call.attributes = &attribute;
        n.call.attribute_count = 1;
        n.call.isa = (sp_cpu_isa)(i / SP_COUNT_OF(shapes));
        n.call.output_count = 3;
        if (sp__cpu_kernels(n.call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&n.call, n.out));
            for (int k = 1; k < 3; k++) {
                if (n.in[k].shape.rank > 2) { /* with the 1s in front, it is that of the row */
                    sp_shape *given = &n.in[k].shape;
                    memmove(given->dims, given->dims + given->rank - 2, 2 * sizeof(int64_t));
                    given->rank = 2;
                }
                const sp_array all = repeated(&n.in[k], &row);
                sp__array_deinit(&n.in[k]);
                n.in[k] = all;
            }
            CHECK_EQ_U64(wrong_rows(&n, 6, 35, 1, 0, 1), 0);
            free_outputs(&n);
        }
        free_inputs(&n);
    }
}

TEST(operands_that_do_not_broadcast_to_the_row_are_refused)
{
    static const sp_shape scales[] = {{1, {5}}, {2, {6, 1}}, {3, {2, 5, 7}}, {2, {7, 5}}, {1, {0}}};
    const sp_shape x = {.rank = 4, .dims = {3, 2, 5, 7}};
    const int64_t axis = 2;
    const sp_attribute attribute = data_attribute_int("axis", &axis);
    data_random random = {60};
    for (size_t i = 0; i < SP_COUNT_OF(scales); i++) {
        norm_call n;
        make_norm(&n, "LayerNormalization", 17, &random, &x, &scales[i]);
        n.call.attributes = &attribute;
        n.call.attribute_count = 1;
        CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
        CHECK_MESSAGE("does not broadcast to rows of shape [5,7]");
        free_inputs(&n);
    }
}

TEST(rows_of_no_elements_have_a_mean_that_is_no_number)
{
    const sp_shape x = {.rank = 2, .dims = {3, 0}}, row = {.rank = 1, .dims = {0}};
    data_random random = {58};
    norm_call n = {.call = {.op = "LayerNormalization",
                            .version = 17,
                            .inputs = n.in,
                            .input_count = 2,
                            .output_count = 3}};
    n.in[0] = data_floats(&random, &x);
    n.in[1] = data_floats(&random, &row);
    REQUIRE_OK(data_run_op(&n.call, n.out));
    CHECK_EQ_U64(n.out[0].bytes, 0);
    for (int i = 1; i < 3; i++) {
        const float *statistics = n.out[i].data;
        REQUIRE(statistics != NULL);
        for (int k = 0; k < 3; k++) CHECK(data_is_same(statistics[k], NAN));
    }
    free_outputs(&n);
    free_inputs(&n);
}

TEST(instance_and_group_norm_take_their_scales_by_channel_or_group)
{
    data_random random = {55};
    const sp_shape x = {.rank = 4, .dims = {2, 6, 3, 5}};
    const int64_t groups = 2;
    const sp_attribute attribute = data_attribute_int("num_groups", &groups);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        const sp_shape channels = {.rank = 1, .dims = {6}}, by_group = {.rank = 1, .dims = {2}};
        norm_call n;
        make_norm(&n, "InstanceNormalization", 6, &random, &x, &channels);
        n.call.isa = (sp_cpu_isa)isa;
        REQUIRE_OK(data_run_op(&n.call, n.out));
        CHECK_EQ_U64(wrong_rows(&n, 12, 15, 6, 1, 15), 0);
        free_outputs(&n);
        free_inputs(&n);
        for (uint32_t version = 18; version <= 21; version += 3) {
            const bool is_new = version == 21;
            make_norm(&n, "GroupNormalization", version, &random, &x,
                      is_new ? &channels : &by_group);
            n.call.isa = (sp_cpu_isa)isa;
            n.call.attributes = &attribute;
            n.call.attribute_count = 1;
            REQUIRE_OK(data_run_op(&n.call, n.out));
            CHECK_EQ_U64(wrong_rows(&n, 4, 45, 2, is_new ? 3 : 1, is_new ? 15 : 45), 0);
            free_outputs(&n);
            free_inputs(&n);
        }
    }
}

/* ---- rows of more than one block ---- */

static void check_long_norm(const char *op, uint32_t version, const sp_shape *x,
                            const sp_shape *scale, int64_t extent, data_random *random)
{
    const int64_t groups = 2, rows = (int64_t)sp__shape_count(x) / extent;
    const int64_t scales = (int64_t)sp__shape_count(scale);
    const bool is_layer = version == 17;
    const sp_attribute attribute = data_attribute_int("num_groups", &groups);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        norm_call n;
        make_norm(&n, op, version, random, x, scale);
        n.call.isa = (sp_cpu_isa)isa;
        n.call.attributes = &attribute;
        n.call.attribute_count = version == 21;
        if (sp__cpu_kernels(n.call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&n.call, n.out));
            CHECK_EQ_U64(is_layer ? wrong_rows(&n, rows, extent, 1, 0, 1)
                                  : wrong_rows(&n, rows, extent, rows, scales / rows,
                                               extent * rows / scales),
                         0);
            free_outputs(&n);
        }
        free_inputs(&n);
    }
}

TEST(rows_of_several_blocks_have_the_statistics_of_the_rule)
{
    data_random random = {61};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents); i++) {
        const int64_t extent = long_extents[i], half = (extent + 1) / 2;
        const sp_shape row = {.rank = 1, .dims = {extent}}, rows = {.rank = 2, .dims = {2, extent}};
        const sp_shape two = {.rank = 1, .dims = {2}}, four = {.rank = 1, .dims = {4}};
        const sp_shape planes = {.rank = 3, .dims = {1, 2, extent}};
        const sp_shape halves = {.rank = 3, .dims = {1, 4, half}};
        check_long_norm("LayerNormalization", 17, &rows, &row, extent, &random);
        check_long_norm("InstanceNormalization", 6, &planes, &two, extent, &random);
        check_long_norm("GroupNormalization", 21, &halves, &four, 2 * half, &random);
    }
}

/* Wrong elements of channel `channel`; all other dimensions are reduced. */
static uint64_t wrong_in_channel(const sp_array *x, const sp_array *y, int64_t channel)
{
    static float values[LONGEST];
    const int64_t channels = x->shape.dims[1];
    const int64_t plane = (int64_t)sp__shape_range_count(&x->shape, 2, x->shape.rank);
    const int64_t n = x->shape.dims[0] * plane;
    const float *in = x->data, *out = y->data;
    uint64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        values[i] = in[(i / plane * channels + channel) * plane + i % plane];
    }
    const float mean = mean_of(values, n), variance = variance_of(values, n, mean);
    for (int64_t i = 0; i < n; i++) {
        const float want = (values[i] - mean) / (sqrtf(variance) + 1e-9f);
        wrong += !data_is_same(out[(i / plane * channels + channel) * plane + i % plane], want);
    }
    return wrong;
}

TEST(mean_variance_normalization_of_several_blocks_has_the_bits_of_its_steps)
{
    data_random random = {62};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents) * 2; i++) {
        const int64_t half = (long_extents[i / 2] + 1) / 2;
        const sp_shape planes = {.rank = 4, .dims = {2, 3, 1, half}};
        const sp_shape columns = {.rank = 4, .dims = {2 * half, 3, 1, 1}};
        sp_array x = data_floats(&random, i % 2 == 0 ? &planes : &columns), y;
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            const data_call call = {.op = "MeanVarianceNormalization",
                                    .version = 13,
                                    .inputs = &x,
                                    .input_count = 1,
                                    .output_count = 1,
                                    .isa = (sp_cpu_isa)isa};
            if (sp__cpu_kernels(call.isa) == NULL) continue;
            REQUIRE_OK(data_run_op(&call, &y));
            uint64_t wrong = 0;
            for (int64_t c = 0; c < 3; c++) wrong += wrong_in_channel(&x, &y, c);
            CHECK_EQ_U64(wrong, 0);
            sp__array_deinit(&y);
        }
        sp__array_deinit(&x);
    }
}

/* ---- refusals ---- */

TEST(norms_whose_operands_do_not_fit_are_refused)
{
    data_random random = {56};
    const sp_shape x = {.rank = 3, .dims = {2, 6, 5}}, five = {.rank = 1, .dims = {5}};
    const sp_shape six = {.rank = 1, .dims = {6}};
    const int64_t four = 4, far = 3, wide = 11;
    norm_call n;
    make_norm(&n, "LayerNormalization", 17, &random, &x, &six);
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
    CHECK_MESSAGE("input 1 of shape [6] does not broadcast to rows of shape [5]");
    sp_attribute attribute = data_attribute_int("axis", &far);
    n.call.attributes = &attribute;
    n.call.attribute_count = 1;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_MISMATCH);
    attribute = data_attribute_int("stash_type", &wide);
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_UNSUPPORTED);
    CHECK_MESSAGE("stash_type is 11");
    free_inputs(&n);
    make_norm(&n, "GroupNormalization", 21, &random, &x, &six);
    attribute = data_attribute_int("num_groups", &four);
    n.call.attributes = &attribute;
    n.call.attribute_count = 1;
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_MISMATCH);
    CHECK_MESSAGE("num_groups is 4, which does not divide the channels of shape [2,6,5]");
    free_inputs(&n);
    make_norm(&n, "InstanceNormalization", 6, &random, &x, &five);
    CHECK_STATUS(data_run_op(&n.call, n.out), SP_MISMATCH);
    free_inputs(&n);
}

TEST_MAIN
