/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: the bits of the written rule (16 lanes, one tree, blocks) in plain loops, for random
 * shapes, axes and types, on every instruction set; refused axes. */
#include "unit/ops/schema/lane_rule.h"

static const char *const names[] = {"ReduceSum",    "ReduceMean",      "ReduceMax", "ReduceMin",
                                    "ReduceProd",   "ReduceSumSquare", "ReduceL1",  "ReduceL2",
                                    "ReduceLogSum", "ReduceLogSumExp"};

static int64_t rule_int(reduction how, const int64_t *x, int64_t n)
{
    uint64_t y = how == PROD ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t value = (uint64_t)x[i];
        if (how == SUM || how == MEAN) y += value;
        if (how == SUM_SQUARE) y += value * value;
        if (how == L1) y += x[i] < 0 ? 0 - value : value;
        if (how == PROD) y *= value;
        if (how == MAX) y = i == 0 || x[i] > (int64_t)y ? value : y;
        if (how == MIN) y = i == 0 || x[i] < (int64_t)y ? value : y;
    }
    return (int64_t)y;
}

static int64_t get_int(const sp_array *a, uint64_t i)
{
    switch (a->dtype) {
    case SP_I64:
        return ((const int64_t *)a->data)[i];
    case SP_I32:
        return ((const int32_t *)a->data)[i];
    case SP_I8:
        return ((const int8_t *)a->data)[i];
    default:
        return ((const uint8_t *)a->data)[i];
    }
}

/* ---- one call ---- */

enum { MOST = 6000 };

typedef struct reduce_case {
    reduction how;
    sp_dtype dtype;
    sp_shape shape;
    uint32_t axes; /* bits */
    int64_t keeps;
} reduce_case;

/* The numbers of the elements of output `index`, in logical order; returns their count. */
static int64_t elements_of(const reduce_case *c, uint64_t index, uint64_t out[LONGEST])
{
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(&c->shape, strides);
    uint64_t base = 0;
    for (uint32_t i = c->shape.rank; i-- > 0;) {
        if (c->axes >> i & 1) continue;
        base += index % (uint64_t)c->shape.dims[i] * (uint64_t)strides[i];
        index /= (uint64_t)c->shape.dims[i];
    }
    int64_t extent = 1;
    for (uint32_t i = 0; i < c->shape.rank; i++) {
        if (c->axes >> i & 1) extent *= c->shape.dims[i];
    }
    for (int64_t e = 0; e < extent; e++) {
        uint64_t at = base, left = (uint64_t)e;
        for (uint32_t i = c->shape.rank; i-- > 0;) {
            if (!(c->axes >> i & 1)) continue;
            at += left % (uint64_t)c->shape.dims[i] * (uint64_t)strides[i];
            left /= (uint64_t)c->shape.dims[i];
        }
        out[e] = at;
    }
    return extent;
}

static bool output_is_right(const reduce_case *c, const sp_array *x, const sp_array *y, uint64_t i)
{
    static uint64_t at[LONGEST];
    static float f32[LONGEST];
    static double f64[LONGEST];
    static int64_t ints[LONGEST];
    const int64_t n = elements_of(c, i, at);
    for (int64_t e = 0; e < n; e++) {
        if (!is_float(c->dtype)) ints[e] = get_int(x, at[e]);
        else if (c->dtype == SP_F64) f64[e] = get_float(x, at[e]);
        else f32[e] = (float)get_float(x, at[e]);
    }
    if (c->dtype == SP_F64) return is_wanted(y, i, rule_f64(c->how, f64, n));
    if (is_float(c->dtype)) return is_wanted(y, i, (double)rule_f32(c->how, f32, n));
    int64_t want = rule_int(c->how, ints, n);
    if (c->dtype == SP_I32) want = (int32_t)want;
    if (c->how == MEAN) want /= n;
    return get_int(y, i) == want;
}

static sp_status run_reduce(const reduce_case *c, const sp_array *x, sp_cpu_isa isa, sp_array *out)
{
    int64_t axes[SP_MAX_RANK] = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->shape.rank; i++) {
        if (c->axes >> i & 1) axes[count++] = i % 2 ? (int64_t)i : (int64_t)i - c->shape.rank;
    }
    sp_array inputs[2] = {*x, data_ints(axes, count)};
    const int64_t noop = count == 0;
    const sp_attribute attributes[] = {data_attribute_int("keepdims", &c->keeps),
                                       data_attribute_int("noop_with_empty_axes", &noop)};
    const sp_attribute old[] = {attributes[0], data_attribute_ints("axes", axes, count)};
    /* Versions before 18 have the axes as an attribute. */
    const bool is_old = count > 0 && (c->axes & 1) && c->how != SUM && c->dtype != SP_BOOL;
    const data_call call = {.op = names[c->how],
                            .version = is_old ? 11 : 20,
                            .attributes = is_old ? old : attributes,
                            .attribute_count = 2,
                            .inputs = inputs,
                            .input_count = is_old ? 1 : 2,
                            .output_count = 1,
                            .isa = isa};
    const sp_status status = data_run_op(&call, out);
    sp__array_deinit(&inputs[1]);
    return status;
}

static void check_reduce_of(const reduce_case *c, const sp_array *x)
{
    sp_array y;
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        REQUIRE_OK(run_reduce(c, x, (sp_cpu_isa)isa, &y));
        sp_shape want = {.rank = 0};
        for (uint32_t i = 0; i < c->shape.rank; i++) {
            if (!(c->axes >> i & 1)) want.dims[want.rank++] = c->shape.dims[i];
            else if (c->keeps) want.dims[want.rank++] = 1;
        }
        CHECK(sp__shape_equal(&y.shape, &want));
        uint64_t wrong = 0;
        const bool is_copy = c->axes == 0 && c->how <= PROD;
        if (is_copy) {
            CHECK_EQ_MEM(y.data, x->data, (size_t)x->bytes);
        } else {
            for (uint64_t i = 0; i < sp__shape_count(&y.shape); i++) {
                wrong += !output_is_right(c, x, &y, i);
            }
        }
        if (wrong > 0) {
            test_note("%s %s %s, axes 0x%x, %s", names[c->how], sp_dtype_name(c->dtype),
                      sp__shape_print(&c->shape).text, c->axes, sp__cpu_isa_name((sp_cpu_isa)isa));
        }
        CHECK_EQ_U64(wrong, 0);
        sp__array_deinit(&y);
    }
}

static void check_reduce(const reduce_case *c, data_random *random)
{
    sp_array x = random_array(random, c->dtype, &c->shape);
    check_reduce_of(c, &x);
    sp__array_deinit(&x);
}

static sp_dtype pick_dtype(reduction how, data_random *random)
{
    static const sp_dtype all[] = {SP_F32, SP_F32, SP_F64, SP_F16, SP_I32,
                                   SP_I64, SP_U8,  SP_I8,  SP_BOOL};
    const uint64_t count = how == MAX || how == MIN ? 9 : how >= L2 ? 4 : 6;
    return all[data_next(random) % count];
}

static reduce_case random_case(data_random *random)
{
    reduce_case c = {.how = (reduction)(data_next(random) % SP_COUNT_OF(names)),
                     .keeps = (int64_t)(data_next(random) % 2)};
    c.dtype = pick_dtype(c.how, random);
    c.shape.rank = (uint32_t)(data_next(random) % (SP_MAX_RANK + 1));
    int64_t room = MOST / 2;
    for (uint32_t i = 0; i < c.shape.rank; i++) {
        const uint64_t most = (uint64_t)(data_next(random) % 3 == 0 ? room : (room < 5 ? room : 5));
        c.shape.dims[i] = 1 + (int64_t)(data_next(random) % most);
        if (data_next(random) % 40 == 0 && is_float(c.dtype)) c.shape.dims[i] = 0;
        if (c.shape.dims[i] > 1) room = room / c.shape.dims[i] + 1;
    }
    c.axes = (uint32_t)data_next(random) & ((1u << c.shape.rank) - 1);
    return c;
}

TEST(reductions_have_the_bits_of_the_rule_for_all_axes_and_types)
{
    data_random random = {31};
    const uint64_t count = test_count(40000, 3000);
    for (uint64_t i = 0; i < count; i++) {
        const reduce_case c = random_case(&random);
        if (sp__shape_count(&c.shape) <= MOST) check_reduce(&c, &random);
    }
}

TEST(long_rows_and_wide_columns)
{
    data_random random = {32};
    for (int how = SUM; how <= LSE; how++) {
        const reduce_case row = {.how = (reduction)how,
                                 .dtype = SP_F32,
                                 .shape = {.rank = 2, .dims = {3, 5003}},
                                 .axes = 2,
                                 .keeps = 1};
        const reduce_case column = {.how = (reduction)how,
                                    .dtype = SP_F32,
                                    .shape = {.rank = 3, .dims = {2, 333, 200}},
                                    .axes = 2,
                                    .keeps = 1};
        check_reduce(&row, &random);
        check_reduce(&column, &random);
    }
}

/* ---- more than one block ---- */

/* Numbers whose product or sum is neither 0 nor infinite, and not negative if its logarithm is
 * taken. */
static sp_array long_array(const reduce_case *c, data_random *random)
{
    if (c->how == PROD) return array_in_range(random, c->dtype, &c->shape, 1 - 1.0 / 64, 1.0 / 32);
    return array_in_range(random, c->dtype, &c->shape, c->how == LOG_SUM ? 0 : -4, 8);
}

static void check_long(reduction how, sp_dtype dtype, int64_t extent, data_random *random)
{
    /* A dimension of 7 does not divide a block, so the runs of two dimensions are cut. */
    const int64_t inner = 7, outer = (extent + inner - 1) / inner;
    const struct {
        sp_shape shape;
        uint32_t axes;
    } layouts[] = {{{.rank = 2, .dims = {2, extent}}, 2},
                   {{.rank = 2, .dims = {extent, long_columns(extent)}}, 1},
                   {{.rank = 3, .dims = {outer, 2, inner}}, 5},
                   {{.rank = 4, .dims = {outer, 2, inner, 3}}, 5}};
    for (size_t i = 0; i < SP_COUNT_OF(layouts); i++) {
        const reduce_case c = {
            .how = how, .dtype = dtype, .shape = layouts[i].shape, .axes = layouts[i].axes};
        sp_array x = long_array(&c, random);
        check_reduce_of(&c, &x);
        sp__array_deinit(&x);
    }
}

TEST(reductions_of_several_blocks_have_the_bits_of_the_rule_in_every_layout)
{
    data_random random = {38};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents); i++) {
        for (int how = SUM; how <= LSE; how++) {
            check_long((reduction)how, SP_F32, long_extents[i], &random);
            check_long((reduction)how, SP_F64, long_extents[i], &random);
        }
        check_long(SUM, SP_F16, long_extents[i], &random);
        check_long(LSE, SP_F16, long_extents[i], &random);
        check_long(SUM_SQUARE, SP_F16, long_extents[i], &random);
    }
}

/* The results of more than BLOCK blocks are cut in turn. */
TEST(blocks_of_blocks_have_the_bits_of_the_rule)
{
    const int64_t extent = (int64_t)BLOCK * BLOCK + BLOCK + 3;
    const reduce_case c = {
        .how = SUM, .dtype = SP_F32, .shape = {.rank = 1, .dims = {extent}}, .axes = 1};
    data_random random = {39};
    sp_array x = long_array(&c, &random), y;
    const double want = (double)rule_f32(SUM, x.data, extent);
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        if (sp__cpu_kernels((sp_cpu_isa)isa) == NULL) continue;
        REQUIRE_OK(run_reduce(&c, &x, (sp_cpu_isa)isa, &y));
        CHECK(is_wanted(&y, 0, want));
        sp__array_deinit(&y);
    }
    sp__array_deinit(&x);
}

TEST(global_average_pool_of_several_blocks_has_the_bits_of_the_rule)
{
    data_random random = {47};
    for (size_t i = 0; i < SP_COUNT_OF(long_extents); i++) {
        const int64_t n = long_extents[i];
        const sp_shape shape = {.rank = 4, .dims = {1, 3, 1, n}};
        sp_array x = data_floats(&random, &shape), y;
        for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
            const data_call call = {.op = "GlobalAveragePool",
                                    .version = 1,
                                    .inputs = &x,
                                    .input_count = 1,
                                    .output_count = 1,
                                    .isa = (sp_cpu_isa)isa};
            if (sp__cpu_kernels(call.isa) == NULL) continue;
            REQUIRE_OK(data_run_op(&call, &y));
            for (int64_t c = 0; c < 3; c++) {
                const float want = rule_f32(MEAN, (const float *)x.data + c * n, n);
                CHECK(data_is_same(((const float *)y.data)[c], want));
            }
            sp__array_deinit(&y);
        }
        sp__array_deinit(&x);
    }
}

/* The same numbers in another layout give the same bits. */
TEST(a_transposed_layout_reduces_to_the_same_bits)
{
    enum { ROWS = 70, COLUMNS = 123 };
    data_random random = {33};
    const sp_shape shape = {.rank = 2, .dims = {ROWS, COLUMNS}};
    const sp_shape flipped = {.rank = 2, .dims = {COLUMNS, ROWS}};
    sp_array x = data_floats(&random, &shape), t = data_floats(&random, &flipped), a, b;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        ((float *)t.data)[i % COLUMNS * ROWS + i / COLUMNS] = ((const float *)x.data)[i];
    }
    for (int how = SUM; how <= LSE; how++) {
        reduce_case c = {.how = (reduction)how, .dtype = SP_F32, .shape = shape, .axes = 2};
        REQUIRE_OK(run_reduce(&c, &x, sp__cpu_isa_selected(), &a));
        c.shape = flipped;
        c.axes = 1;
        REQUIRE_OK(run_reduce(&c, &t, sp__cpu_isa_selected(), &b));
        CHECK_EQ_MEM(a.data, b.data, (size_t)a.bytes);
        sp__array_deinit(&a);
        sp__array_deinit(&b);
    }
    sp__array_deinit(&x);
    sp__array_deinit(&t);
}

/* ---- refusals ---- */

static sp_status reduce_with(const char *op, sp_dtype dtype, const sp_attribute *axes,
                             const sp_shape *shape)
{
    sp_array x = {0}, y = {0};
    CHECK_OK(sp__array_init(&x, dtype, shape));
    const data_call call = {.op = op,
                            .version = 11,
                            .attributes = axes,
                            .attribute_count = axes != NULL,
                            .inputs = &x,
                            .input_count = 1,
                            .output_count = 1};
    const sp_status status = data_run_op(&call, &y);
    sp__array_deinit(&x);
    sp__array_deinit(&y);
    return status;
}

TEST(bad_axes_and_types_are_refused_with_the_reason)
{
    const int64_t twice[2] = {1, -1}, outside[1] = {2}, many[9] = {0};
    const sp_shape shape = {.rank = 2, .dims = {2, 3}}, none = {.rank = 2, .dims = {2, 0}};
    sp_attribute axes = data_attribute_ints("axes", twice, 2);
    CHECK_STATUS(reduce_with("ReduceSum", SP_F32, &axes, &shape), SP_MISMATCH);
    CHECK_MESSAGE("axis 1 is given twice");
    axes = data_attribute_ints("axes", outside, 1);
    CHECK_STATUS(reduce_with("ReduceMax", SP_F32, &axes, &shape), SP_MISMATCH);
    axes = data_attribute_ints("axes", many, 9);
    CHECK_STATUS(reduce_with("ReduceMin", SP_F32, &axes, &shape), SP_MISMATCH);
    CHECK_MESSAGE("9 axes");
    CHECK_STATUS(reduce_with("ReduceMean", SP_I32, NULL, &none), SP_MISMATCH);
    CHECK_MESSAGE("the mean over no integers");
    CHECK_STATUS(reduce_with("ReduceMax", SP_BOOL, NULL, &shape), SP_UNSUPPORTED);
    CHECK_STATUS(reduce_with("ReduceL2", SP_I64, NULL, &shape), SP_UNSUPPORTED);
}

TEST(an_empty_reduction_of_integers_gives_the_least_and_the_largest)
{
    const sp_shape none = {.rank = 1, .dims = {0}};
    static const struct {
        reduction how;
        sp_dtype dtype;
        int64_t want;
    } cases[] = {{MAX, SP_I32, INT32_MIN}, {MIN, SP_I64, INT64_MAX}, {MAX, SP_U8, 0},
                 {MIN, SP_I8, 127},        {SUM, SP_I32, 0},         {PROD, SP_I64, 1}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const reduce_case c = {
            .how = cases[i].how, .dtype = cases[i].dtype, .shape = none, .axes = 1};
        sp_array x = {0}, y;
        REQUIRE_OK(sp__array_init(&x, c.dtype, &none));
        REQUIRE_OK(run_reduce(&c, &x, SP_CPU_PORTABLE, &y));
        CHECK_EQ_INT(get_int(&y, 0), cases[i].want);
        sp__array_deinit(&x);
        sp__array_deinit(&y);
    }
}

TEST_MAIN
