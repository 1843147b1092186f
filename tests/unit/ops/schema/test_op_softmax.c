/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and LogSoftmax: the bits of the written rule in plain loops, for both meanings of the
 * axis, on every instruction set; refused axes. */
#include "unit/ops/schema/lane_rule.h"

enum { MOST = 6000 };

typedef struct softmax_case {
    sp_dtype dtype;
    sp_shape shape;
    int64_t axis;
    uint32_t version;
    bool is_log;
} softmax_case;

#define SOFTMAX_RULE(suffix, type, exponential, logarithm)                                         \
    static void softmax_##suffix(bool is_log, const type *x, type *y, int64_t n)                   \
    {                                                                                              \
        const type most = lanes_##suffix(MAX, x, n, 0);                                            \
        const type sum = lanes_##suffix(LSE, x, n, most);                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            y[i] = is_log ? (x[i] - most) - logarithm(sum) : exponential(x[i] - most) / sum;       \
        }                                                                                          \
    }

SOFTMAX_RULE(f32, float, sp_expf, sp_logf)
SOFTMAX_RULE(f64, double, sp_exp, sp_log)

/* The number of wrong elements of row `row`. */
static uint64_t wrong_in_row(const softmax_case *c, const sp_array *x, const sp_array *y,
                             int64_t row)
{
    static float f32[2][LONGEST];
    static double f64[2][LONGEST];
    const uint32_t axis = (uint32_t)c->axis, rank = c->shape.rank;
    const uint32_t end = c->version < 13 ? rank : axis + 1;
    const int64_t n = (int64_t)sp__shape_range_count(&c->shape, axis, end);
    const int64_t inner = (int64_t)sp__shape_range_count(&c->shape, end, rank);
    const int64_t first = row / inner * n * inner + row % inner;
    for (int64_t i = 0; i < n; i++) {
        f64[0][i] = get_float(x, (uint64_t)(first + i * inner));
        f32[0][i] = (float)f64[0][i];
    }
    if (c->dtype == SP_F64) softmax_f64(c->is_log, f64[0], f64[1], n);
    else softmax_f32(c->is_log, f32[0], f32[1], n);
    uint64_t wrong = 0;
    for (int64_t i = 0; i < n; i++) {
        const double want = c->dtype == SP_F64 ? f64[1][i] : (double)f32[1][i];
        wrong += !is_wanted(y, (uint64_t)(first + i * inner), want);
    }
    return wrong;
}

static void check_softmax_of(const softmax_case *c, const sp_array *x)
{
    sp_array y;
    const sp_attribute axis = data_attribute_int("axis", &c->axis);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = {.op = c->is_log ? "LogSoftmax" : "Softmax",
                                .version = c->version,
                                .attributes = &axis,
                                .attribute_count = 1,
                                .inputs = x,
                                .input_count = 1,
                                .output_count = 1,
                                .isa = (sp_cpu_isa)isa};
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &y));
        const uint32_t end = c->version < 13 ? c->shape.rank : (uint32_t)c->axis + 1;
        const uint64_t rows = sp__shape_range_count(&c->shape, 0, (uint32_t)c->axis) *
                              sp__shape_range_count(&c->shape, end, c->shape.rank);
        uint64_t wrong = 0;
        for (uint64_t row = 0; row < rows; row++) wrong += wrong_in_row(c, x, &y, (int64_t)row);
        if (wrong > 0) {
            test_note("%s %s axis %lld version %u", sp_dtype_name(c->dtype),
                      sp__shape_print(&c->shape).text, (long long)c->axis, c->version);
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&y);
    }
}

static void check_softmax(const softmax_case *c, data_random *random)
{
    sp_array x = random_array(random, c->dtype, &c->shape);
    check_softmax_of(c, &x);
    sp__array_deinit(&x);
}

TEST(softmax_has_the_bits_of_the_rule_for_every_axis_version_and_type)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F32, SP_F64, SP_F16};
    data_random random = {34};
    const uint64_t count = test_count(20000, 500);
    for (uint64_t i = 0; i < count; i++) {
        softmax_case c = {.dtype = dtypes[data_next(&random) % 4],
                          .version = data_next(&random) % 3 == 0 ? 11 : 13,
                          .is_log = data_next(&random) % 2 == 0};
        c.shape.rank = 1 + (uint32_t)(data_next(&random) % 5);
        int64_t room = 2000;
        for (uint32_t d = 0; d < c.shape.rank; d++) {
            const int64_t most = data_next(&random) % 2 == 0 ? room : (room < 6 ? room : 6);
            c.shape.dims[d] = 1 + (int64_t)(data_next(&random) % (uint64_t)most);
            room = room / c.shape.dims[d] + 1;
        }
        if (sp__shape_count(&c.shape) > MOST) continue;
        c.axis = (int64_t)(data_next(&random) % c.shape.rank);
        check_softmax(&c, &random);
    }
}

TEST(rows_and_columns_of_several_blocks_have_the_bits_of_the_rule)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_F16};
    data_random random = {36};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents) * SP_COUNT_OF(dtypes) * 4; i++) {
        const int64_t extent = long_extents[i / 4 % SP_COUNT_OF(long_extents)];
        softmax_case c = {.dtype = dtypes[i / 4 / SP_COUNT_OF(long_extents)],
                          .version = 13,
                          .shape = {.rank = 2, .dims = {2, extent}},
                          .axis = 1,
                          .is_log = i % 2 == 0};
        if (i / 2 % 2 == 0) {
            c.axis = 0;
            c.shape.dims[0] = extent;
            c.shape.dims[1] = long_columns(extent);
        }
        sp_array x = array_in_range(&random, c.dtype, &c.shape, -4, 8);
        check_softmax_of(&c, &x);
        sp__array_deinit(&x);
    }
}

TEST(axes_outside_the_shape_are_refused_but_the_rank_means_rows_of_one_before_version_13)
{
    data_random random = {37};
    const sp_shape shape = {.rank = 2, .dims = {2, 3}};
    const int64_t two = 2;
    const sp_attribute axis = data_attribute_int("axis", &two);
    sp_array x = data_floats(&random, &shape), y;
    data_call call = {.op = "Softmax",
                      .version = 13,
                      .attributes = &axis,
                      .attribute_count = 1,
                      .inputs = &x,
                      .input_count = 1,
                      .output_count = 1};
    CHECK_STATUS(data_run_op(&call, &y), SP_MISMATCH);
    call.version = 11;
    REQUIRE_OK(data_run_op(&call, &y));
    for (int i = 0; i < 6; i++) CHECK(data_is_same(((const float *)y.data)[i], 1.0f));
    sp__array_deinit(&x);
    sp__array_deinit(&y);
}

TEST_MAIN
