/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax, ArgMin, Hardmax, CumSum, LpNormalization, LRN and MeanVarianceNormalization compared with
 * plain loops, on every instruction set; refusals. */
#include "ops/cpu/arch/math_f64.h"
#include "ops/math/pow_f32.h"
#include "unit/ops/schema/lane_rule.h"

/* Rows along `axis`: the numbers of elements before, along and after it. */
typedef struct rows {
    sp_shape shape;
    int64_t axis, outer, extent, inner;
} rows;

static rows random_rows(data_random *random)
{
    rows r = {.shape = {.rank = 1 + (uint32_t)(data_next(random) % 4)}};
    for (uint32_t i = 0; i < r.shape.rank; i++) {
        r.shape.dims[i] = 1 + (int64_t)(data_next(random) % (data_next(random) % 4 == 0 ? 90 : 6));
    }
    r.axis = (int64_t)(data_next(random) % r.shape.rank);
    r.outer = (int64_t)sp__shape_range_count(&r.shape, 0, (uint32_t)r.axis);
    r.extent = r.shape.dims[r.axis];
    r.inner = (int64_t)sp__shape_range_count(&r.shape, (uint32_t)r.axis + 1, r.shape.rank);
    return r;
}

/* The index of element 0 of row `row`. */
static int64_t first_of(const rows *r, int64_t row)
{
    return row / r->inner * r->extent * r->inner + row % r->inner;
}

/* Few different numbers, so that some are equal; NaNs among floats. */
static sp_array few_numbers(data_random *random, sp_dtype dtype, const sp_shape *shape)
{
    sp_array a = {0};
    CHECK_OK(sp__array_init(&a, dtype, shape));
    for (uint64_t i = 0; i < sp__shape_count(shape); i++) {
        const int64_t value = (int64_t)(data_next(random) % 11) - (dtype == SP_U8 ? 0 : 5);
        if (dtype == SP_F32) ((float *)a.data)[i] = value == 5 ? NAN : (float)value;
        else if (dtype == SP_F64) ((double *)a.data)[i] = (double)value;
        else memcpy((char *)a.data + i * sp_dtype_bytes(dtype), &value, sp_dtype_bytes(dtype));
    }
    return a;
}

static double element(const sp_array *a, int64_t i)
{
    switch (a->dtype) {
    case SP_F32:
        return (double)((const float *)a->data)[i];
    case SP_F64:
        return ((const double *)a->data)[i];
    case SP_I32:
        return ((const int32_t *)a->data)[i];
    case SP_I64:
        return (double)((const int64_t *)a->data)[i];
    case SP_I8:
        return ((const int8_t *)a->data)[i];
    default:
        return ((const uint8_t *)a->data)[i];
    }
}

static int64_t extreme(const rows *r, const sp_array *x, int64_t row, bool least, bool last)
{
    int64_t place = 0;
    for (int64_t i = 1; i < r->extent; i++) {
        const double value = element(x, first_of(r, row) + i * r->inner);
        const double best = element(x, first_of(r, row) + place * r->inner);
        const bool wins = !isnan(best) && (isnan(value) || (least ? value < best : value > best));
        const bool ties = value == best || (isnan(value) && isnan(best));
        if (wins || (ties && last)) place = i;
    }
    return place;
}

static data_call call_of(const char *op, uint32_t version, const sp_array *x, int isa)
{
    return (data_call){.op = op,
                       .version = version,
                       .inputs = x,
                       .input_count = 1,
                       .output_count = 1,
                       .isa = (sp_cpu_isa)isa};
}

TEST(arg_max_and_arg_min_find_the_first_or_the_last_extreme)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I32, SP_I64, SP_I8, SP_U8};
    data_random random = {61};
    const uint64_t count = test_count(10000, 600);
    for (uint64_t n = 0; n < count; n++) {
        const rows r = random_rows(&random);
        const bool least = data_next(&random) % 2 == 0;
        const int64_t last = (int64_t)(data_next(&random) % 2), keeps = 0;
        sp_array x = few_numbers(&random, dtypes[n % 6], &r.shape), y;
        const sp_attribute attributes[] = {data_attribute_int("axis", &r.axis),
                                           data_attribute_int("select_last_index", &last),
                                           data_attribute_int("keepdims", &keeps)};
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            data_call call = call_of(least ? "ArgMin" : "ArgMax", 13, &x, isa);
            call.attributes = attributes;
            call.attribute_count = 3;
            if (sp__cpu_kernels(call.isa) == NULL) continue;
            REQUIRE_OK(data_run_op(&call, &y));
            CHECK_EQ_U64(y.shape.rank, r.shape.rank - 1);
            uint64_t wrong = 0;
            for (int64_t row = 0; row < r.outer * r.inner; row++) {
                wrong += ((const int64_t *)y.data)[row] != extreme(&r, &x, row, least, last != 0);
            }
            CHECK_EQ_U64(wrong, 0);
            sp__array_deinit(&y);
        }
        sp__array_deinit(&x);
    }
}

TEST(hardmax_is_1_at_the_first_maximum)
{
    data_random random = {62};
    for (int n = 0; n < 100 * SP_CPU_ISA_COUNT; n++) {
        const rows r = random_rows(&random);
        sp_array x = few_numbers(&random, SP_F32, &r.shape), y;
        const sp_attribute axis = data_attribute_int("axis", &r.axis);
        data_call call = call_of("Hardmax", 13, &x, n % SP_CPU_ISA_COUNT);
        call.attributes = &axis;
        call.attribute_count = 1;
        if (sp__cpu_kernels(call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&call, &y));
            uint64_t wrong = 0;
            for (int64_t row = 0; row < r.outer * r.inner; row++) {
                const int64_t place = extreme(&r, &x, row, false, false);
                for (int64_t i = 0; i < r.extent; i++) {
                    wrong += element(&y, first_of(&r, row) + i * r.inner) != (i == place ? 1 : 0);
                }
            }
            CHECK_EQ_U64(wrong, 0);
            sp__array_deinit(&y);
        }
        sp__array_deinit(&x);
    }
}

TEST(cumsum_runs_forwards_and_backwards_with_and_without_its_element)
{
    static const sp_dtype dtypes[] = {SP_F32, SP_F64, SP_I32, SP_I64};
    data_random random = {63};
    for (int n = 0; n < 200 * SP_CPU_ISA_COUNT; n++) {
        const rows r = random_rows(&random);
        const int64_t exclusive = (int64_t)(data_next(&random) % 2);
        const int64_t reverse = (int64_t)(data_next(&random) % 2);
        sp_array in[2] = {few_numbers(&random, dtypes[n / 2 % 4], &r.shape), data_ints(&r.axis, 1)};
        sp_array y;
        const sp_attribute attributes[] = {data_attribute_int("exclusive", &exclusive),
                                           data_attribute_int("reverse", &reverse)};
        data_call call = call_of("CumSum", 14, in, n % SP_CPU_ISA_COUNT);
        call.input_count = 2;
        call.attributes = attributes;
        call.attribute_count = 2;
        if (sp__cpu_kernels(call.isa) != NULL) {
            REQUIRE_OK(data_run_op(&call, &y));
            uint64_t wrong = 0;
            for (int64_t row = 0; row < r.outer * r.inner; row++) {
                double sum = 0; /* of few small integers: exact in every type */
                for (int64_t i = 0; i < r.extent; i++) {
                    const int64_t at =
                        first_of(&r, row) + (reverse ? r.extent - 1 - i : i) * r.inner;
                    const double before = sum;
                    sum += element(&in[0], at);
                    const double want = exclusive ? before : sum, got = element(&y, at);
                    if (isnan(want) ? !isnan(got) : got != want) wrong++;
                }
            }
            CHECK_EQ_U64(wrong, 0);
            sp__array_deinit(&y);
        }
        sp__array_deinit(&in[0]);
        sp__array_deinit(&in[1]);
    }
}

static float norm_of(const rows *r, const float *x, bool squares)
{
    static float row[LONGEST];
    if (r->extent > (int64_t)SP_COUNT_OF(row)) abort();
    for (int64_t i = 0; i < r->extent; i++) row[i] = x[i * r->inner];
    return rule_f32(squares ? L2 : L1, row, r->extent);
}

static void check_lp_norm(const rows *r, int64_t p, const sp_array *x, int isa)
{
    const sp_attribute attributes[] = {data_attribute_int("axis", &r->axis),
                                       data_attribute_int("p", &p)};
    data_call call = call_of("LpNormalization", 22, x, isa);
    sp_array y;
    call.attributes = attributes;
    call.attribute_count = 2;
    if (sp__cpu_kernels(call.isa) == NULL) return;
    REQUIRE_OK(data_run_op(&call, &y));
    const float *in = x->data, *out = y.data;
    uint64_t wrong = 0;
    for (int64_t row = 0; row < r->outer * r->inner; row++) {
        const float norm = norm_of(r, in + first_of(r, row), p == 2);
        for (int64_t i = 0; i < r->extent; i++) {
            const int64_t at = first_of(r, row) + i * r->inner;
            wrong += !data_is_same(out[at], norm == 0 ? 0 : in[at] / norm);
        }
    }
    CHECK_EQ_U64(wrong, 0);
    sp__array_deinit(&y);
}

TEST(lp_normalization_divides_by_the_norm_and_leaves_zeros)
{
    data_random random = {64};
    for (int n = 0; n < 200 * SP_CPU_ISA_COUNT; n++) {
        const rows r = random_rows(&random);
        const int64_t p = 1 + (int64_t)(data_next(&random) % 2);
        sp_array x = data_floats(&random, &r.shape);
        if (n % 5 == 0) memset(x.data, 0, (size_t)x.bytes);
        check_lp_norm(&r, p, &x, n % SP_CPU_ISA_COUNT);
        sp__array_deinit(&x);
    }
}

TEST(lp_normalization_of_several_blocks_divides_by_the_norm_of_the_rule)
{
    data_random random = {67};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents); i++) {
        const int64_t extent = long_extents[i], columns = long_columns(extent);
        const rows cases[] = {{{.rank = 2, .dims = {2, extent}}, 1, 2, extent, 1},
                              {{.rank = 2, .dims = {extent, columns}}, 0, 1, extent, columns}};
        for (int n = 0; n < 4 * SP_CPU_ISA_COUNT; n++) {
            const rows *r = &cases[n % 2];
            sp_array x = data_floats(&random, &r->shape);
            check_lp_norm(r, 1 + n / 2 % 2, &x, n / 4);
            sp__array_deinit(&x);
        }
    }
}

TEST(lrn_divides_by_a_power_of_the_channels_around)
{
    enum { IMAGES = 2, CHANNELS = 7, PLANE = 70 };
    data_random random = {65};
    const sp_shape shape = {.rank = 3, .dims = {IMAGES, CHANNELS, PLANE}};
    sp_array x = data_floats(&random, &shape), y[SP_CPU_ISA_COUNT] = {0};
    const float alpha = 0.5f, beta = 0.6f, bias = 1.5f;
    for (int64_t size = 1; size < 12; size++) {
        const sp_attribute attributes[] = {
            data_attribute_float("alpha", &alpha), data_attribute_float("beta", &beta),
            data_attribute_float("bias", &bias), data_attribute_int("size", &size)};
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            data_call call = call_of("LRN", 13, &x, isa);
            call.attributes = attributes;
            call.attribute_count = 4;
            if (sp__cpu_kernels(call.isa) == NULL) continue;
            REQUIRE_OK(data_run_op(&call, &y[isa]));
            CHECK_EQ_MEM(y[isa].data, y[0].data, (size_t)y[0].bytes);
        }
        const float *in = x.data, *out = y[0].data;
        REQUIRE(out != NULL);
        for (int64_t i = 0; i < IMAGES * CHANNELS * PLANE; i++) {
            const int64_t c = i / PLANE % CHANNELS, begin = c - (size - 1) / 2;
            double sum = 0;
            for (int64_t k = begin; k < begin + size; k++) {
                if (k < 0 || k >= CHANNELS) continue;
                sum += pow((double)in[i + (k - c) * PLANE], 2);
            }
            const double want = (double)in[i] / pow(1.5 + 0.5 / (double)size * sum, 0.6000000238);
            CHECK(fabs((double)out[i] - want) <= 3e-7);
        }
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) sp__array_deinit(&y[isa]);
    }
    sp__array_deinit(&x);
}

/* The sums begin with the first channel that exists. */
TEST(lrn_over_several_blocks_of_channels_has_the_bits_of_the_rule)
{
    enum { CHANNELS = BLOCK + 104, PLANE = 3 };
    static const int64_t channels[] = {0, 60, CHANNELS / 2, CHANNELS - 1};
    static float around[CHANNELS];
    data_random random = {68};
    const sp_shape shape = {.rank = 3, .dims = {1, CHANNELS, PLANE}};
    const int64_t size = 2 * BLOCK + 107, before = (size - 1) / 2;
    const float alpha = 5000.0f, beta = 0.9f, bias = 0.5f; /* such that the sum's last bit shows */
    const sp_attribute attributes[] = {
        data_attribute_float("alpha", &alpha), data_attribute_float("beta", &beta),
        data_attribute_float("bias", &bias), data_attribute_int("size", &size)};
    sp_array x = data_floats(&random, &shape), y;
    const float *in = x.data;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        data_call call = call_of("LRN", 13, &x, isa);
        call.attributes = attributes;
        call.attribute_count = 4;
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &y));
        for (size_t i = 0; i < SP_COUNT_OF(channels) * PLANE; i++) {
            const int64_t c = channels[i / PLANE], at = c * PLANE + (int64_t)(i % PLANE);
            int64_t n = 0;
            for (int64_t k = c - before; k < c - before + size; k++) {
                if (k >= 0 && k < CHANNELS) around[n++] = in[k * PLANE + (int64_t)(i % PLANE)];
            }
            CHECK(n > BLOCK);
            const float scaled = alpha / (float)size * rule_f32(SUM_SQUARE, around, n);
            const float power = sp_powf(bias + scaled, -beta);
            CHECK(data_is_same(((const float *)y.data)[at], in[at] * power));
        }
        sp__array_deinit(&y);
    }
    sp__array_deinit(&x);
}

TEST(mean_variance_normalization_centres_and_scales_over_its_axes)
{
    data_random random = {66};
    const sp_shape shape = {.rank = 4, .dims = {3, 4, 5, 6}};
    sp_array x = data_floats(&random, &shape), y[SP_CPU_ISA_COUNT] = {0};
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const data_call call = call_of("MeanVarianceNormalization", 13, &x, isa);
        if (sp__cpu_kernels(call.isa) == NULL) continue;
        REQUIRE_OK(data_run_op(&call, &y[isa]));
        CHECK_EQ_MEM(y[isa].data, y[0].data, (size_t)y[0].bytes);
    }
    const float *out = y[0].data;
    REQUIRE(out != NULL);
    for (int c = 0; c < 4; c++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < 90; i++) {
            const double v = (double)out[(i / 30 * 4 + c) * 30 + i % 30];
            sum += v;
            squares += v * v;
        }
        CHECK(fabs(sum) < 1e-4);
        CHECK(fabs(squares - 90) < 1e-3);
    }
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) sp__array_deinit(&y[isa]);
    sp__array_deinit(&x);
}

static sp_status run_with(const char *op, const sp_shape *shape, const char *name,
                          const int64_t *value)
{
    data_random random = {1};
    sp_array x = data_floats(&random, shape), y = {0};
    const sp_attribute attribute = data_attribute_int(name, value);
    data_call call = call_of(op, 13, &x, SP_CPU_PORTABLE);
    call.attributes = &attribute;
    call.attribute_count = 1;
    const sp_status status = data_run_op(&call, &y);
    sp__array_deinit(&x);
    sp__array_deinit(&y);
    return status;
}

TEST(calls_that_make_no_sense_are_refused)
{
    const sp_shape none = {.rank = 2, .dims = {0, 3}}, shape = {.rank = 2, .dims = {2, 3}};
    const int64_t zero = 0, three = 3;
    CHECK_STATUS(run_with("ArgMax", &none, "axis", &zero), SP_MISMATCH);
    CHECK_MESSAGE("the reduced dimension of shape [0,3] is empty");
    CHECK_STATUS(run_with("ArgMin", &shape, "axis", &three), SP_MISMATCH);
    CHECK_STATUS(run_with("LpNormalization", &shape, "p", &three), SP_MISMATCH);
    CHECK_MESSAGE("p is 3; expected 1 or 2");
    CHECK_STATUS(run_with("LRN", &shape, "size", &zero), SP_MISMATCH);
    CHECK_MESSAGE("a size of 0 does not fit the channels of shape [2,3]");
    const sp_shape flat = {.rank = 1, .dims = {4}};
    data_random random = {1};
    sp_array in[2] = {data_floats(&random, &flat), data_ints(&zero, 0)}, y;
    data_call call = call_of("CumSum", 14, in, SP_CPU_PORTABLE);
    call.input_count = 2;
    CHECK_STATUS(data_run_op(&call, &y), SP_MISMATCH);
    CHECK_MESSAGE("input 1 is empty");
    call = call_of("MeanVarianceNormalization", 13, in, SP_CPU_PORTABLE);
    CHECK_STATUS(data_run_op(&call, &y), SP_MISMATCH);
    sp__array_deinit(&in[0]);
    sp__array_deinit(&in[1]);
}

TEST_MAIN
