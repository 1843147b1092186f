/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ups that a model writes as a product of one-hot rows: when they become one step, and that
 * the bits are those of the product, on every instruction set. */
#include "plan/plan_fuse.h"

#include <math.h>

#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I32 = 6, ONNX_I64 = 7, INPUTS = 3 };

/* What differs from the pattern. */
typedef enum difference {
    NO_DIFFERENCE,
    RANGE_FROM_ONE,
    RANGE_GIVEN,
    WEIGHTS_GIVEN,
    LESS_FOR_EQUAL,
    EQUAL_IS_READ,
    CAST_IS_READ,
    SUM_IS_SCALED,
    DIFFERENCES
} difference;

/* Inputs: x [rows, 1], or [images, rows, 1] of images; "range" [depth]; "given" [depth, columns].
 */
typedef struct look_up_case {
    int64_t images, rows, depth, columns; /* images 0: none */
    bool is_wide, is_second;              /* indices of i64; x is the second operand */
    bool has_bias, has_relu, has_specials;
    bool is_gemm; /* of transposed weights */
    difference other;
} look_up_case;

/* ---- graphs ---- */

static sp_shape x_shape(const look_up_case *c)
{
    return c->images > 0 ? SHAPE(c->images, c->rows, 1) : SHAPE(c->rows, 1);
}

static void add_floats(writer *graph, const char *name, const sp_shape *shape, bool has_specials,
                       data_random *random)
{
    static const float specials[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-42f};
    sp_array values = data_floats(random, shape);
    const uint64_t count = values.bytes / sizeof(float);
    float *value = values.data;
    for (uint64_t i = 0; has_specials && i < count; i += 1 + data_next(random) % 40) {
        value[i] = specials[data_next(random) % SP_COUNT_OF(specials)];
    }
    for (uint64_t i = 0; i < count; i += 7) value[i] = -0.0f;
    writer tensor = make_tensor(name, ONNX_F32, shape->dims, shape->rank, value, values.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&values);
}

/* Integers from `first` on. */
static sp_array make_range(const look_up_case *c, int64_t first)
{
    return data_counted(c->is_wide ? SP_I64 : SP_I32, SHAPE(c->depth), (uint64_t)first);
}

static void add_range(writer *graph, const look_up_case *c)
{
    const sp_shape shape = SHAPE(c->depth);
    sp_array range = make_range(c, c->other == RANGE_FROM_ONE ? 1 : 0);
    writer tensor = make_tensor("steps", c->is_wide ? ONNX_I64 : ONNX_I32, shape.dims, 1,
                                range.data, range.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&range);
}

static void add_comparison(writer *graph, const look_up_case *c)
{
    const char *op = c->other == LESS_FOR_EQUAL ? "Less" : "Equal";
    const char *operands = c->other == RANGE_GIVEN ? (c->is_second ? "range x" : "x range")
                                                   : (c->is_second ? "steps x" : "x steps");
    add_node(graph, make_node(op, operands, "is"));
}

static void add_product(writer *graph, const look_up_case *c)
{
    const char *weights = c->other == WEIGHTS_GIVEN ? "hot given" : "hot weights";
    writer node = make_node(c->is_gemm ? "Gemm" : "MatMul", weights, "sum");
    if (c->is_gemm && c->other != WEIGHTS_GIVEN) add_attribute_int(&node, "transB", 1);
    if (c->is_gemm && c->other == SUM_IS_SCALED) add_attribute_float(&node, "alpha", 0.5f);
    add_node(graph, node);
}

static const sp_graph *load(const look_up_case *c, data_random *random)
{
    const sp_shape x = x_shape(c), bias = SHAPE(c->columns);
    const sp_shape weights = c->is_gemm ? SHAPE(c->columns, c->depth) : SHAPE(c->depth, c->columns);
    const int64_t given[] = {c->depth, c->columns}, integers = c->is_wide ? ONNX_I64 : ONNX_I32;
    writer graph = {0};
    add_input(&graph, "x", integers, x.dims, (int)x.rank);
    add_input(&graph, "range", integers, given, 1);
    add_input(&graph, "given", ONNX_F32, given, 2);
    add_range(&graph, c);
    add_floats(&graph, "weights", &weights, c->has_specials, random);
    add_floats(&graph, "bias", &bias, c->has_specials, random);
    add_comparison(&graph, c);
    writer cast = make_node("Cast", "is", "hot");
    add_attribute_int(&cast, "to", ONNX_F32);
    add_node(&graph, cast);
    add_product(&graph, c);
    add_node(&graph, make_node(c->has_bias ? "Add" : "Identity", c->has_bias ? "sum bias" : "sum",
                               "biased"));
    add_node(&graph, make_node(c->has_relu ? "Relu" : "Identity", "biased", "y"));
    add_output(&graph, "y");
    if (c->other == EQUAL_IS_READ) add_output(&graph, "is");
    if (c->other == CAST_IS_READ) add_output(&graph, "hot");
    return fused_plans_load(&graph);
}

/* Some indices are outside of the range. */
static sp_array make_indices(const look_up_case *c, data_random *random)
{
    const int64_t count = c->rows * (c->images > 0 ? c->images : 1);
    sp_array x = data_counted(c->is_wide ? SP_I64 : SP_I32, x_shape(c), 0);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = (int64_t)(data_next(random) % (uint64_t)(c->depth + 4)) - 2;
        if (data_next(random) % 32 == 0) index = c->is_wide ? INT64_MIN + i : INT32_MAX - i;
        if (c->is_wide && data_next(random) % 32 == 0) index = INT64_C(1) << 32; /* 0 in 32 bits */
        if (c->is_wide) ((int64_t *)x.data)[i] = index;
        else ((int32_t *)x.data)[i] = (int32_t)index;
    }
    return x;
}

/* ---- the same run, fused and not ---- */

/* x, "range" and "given". */
static void make_inputs(const look_up_case *c, data_random *random, sp_array inputs[INPUTS])
{
    const sp_shape given = SHAPE(c->depth, c->columns);
    inputs[0] = make_indices(c, random);
    inputs[1] = make_range(c, 0);
    inputs[2] = data_floats(random, &given);
}

static void check_case(const look_up_case *c, uint64_t seed, uint32_t look_ups)
{
    data_random random = {seed};
    sp_array inputs[INPUTS];
    const sp_graph *graph = load(c, &random);
    REQUIRE(graph != NULL);
    make_inputs(c, &random, inputs);
    fused_plans_check(graph, inputs, INPUTS, SP_KERNEL_ID_look_up_f32, look_ups);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

/* ---- tests ---- */

static bool flip(data_random *random)
{
    return data_next(random) % 2 == 0;
}

TEST(a_product_of_one_hot_rows_is_one_step_of_the_same_bits)
{
    const uint64_t count = test_count(10000, 400);
    data_random random = {1};
    for (uint64_t i = 0; i < count; i++) {
        const bool is_gemm = i % 4 == 3;
        const look_up_case c = {.images = is_gemm ? 0 : (int64_t)(data_next(&random) % 3),
                                .rows = 2 + (int64_t)(data_next(&random) % 40),
                                .depth =
                                    2 + (int64_t)(data_next(&random) % (i % 8 == 0 ? 600 : 40)),
                                .columns = 1 + (int64_t)(data_next(&random) % 40),
                                .is_wide = flip(&random),
                                .is_second = flip(&random),
                                .has_bias = flip(&random),
                                .has_relu = flip(&random),
                                .has_specials = flip(&random),
                                .is_gemm = is_gemm};
        check_case(&c, i + 2, 1);
    }
}

TEST(many_rows_are_several_tiles)
{
    const look_up_case c = {
        .rows = 5000, .depth = 257, .columns = 64, .has_bias = true, .has_relu = true};
    check_case(&c, 3, 1);
}

TEST(what_differs_from_the_pattern_stays)
{
    for (difference d = NO_DIFFERENCE; d < DIFFERENCES; d++) {
        const look_up_case c = {.rows = 9,
                                .depth = 20,
                                .columns = 17,
                                .is_wide = d % 2 == 1,
                                .has_bias = true,
                                .is_gemm = d == SUM_IS_SCALED,
                                .other = d};
        check_case(&c, 4 + (uint64_t)d, d == NO_DIFFERENCE ? 1 : 0);
    }
    const look_up_case row = {.rows = 1, .depth = 20, .columns = 17};
    check_case(&row, 90, 0);
    const look_up_case one = {.rows = 9, .depth = 1, .columns = 17};
    check_case(&one, 91, 0);
}

TEST(the_step_has_the_names_of_its_nodes_and_reads_no_weights_but_the_table)
{
    const look_up_case c = {.rows = 9, .depth = 20, .columns = 17, .has_bias = true};
    data_random random = {5};
    const sp_graph *graph = load(&c, &random);
    sp_array inputs[INPUTS];
    REQUIRE(graph != NULL);
    make_inputs(&c, &random, inputs);
    const sp_graph_plan *plan = fused_plans_compile(graph, inputs, INPUTS, SP_CPU_PORTABLE, false);
    REQUIRE(plan != NULL);
    REQUIRE_EQ_INT(plan->step_count, 1);
    CHECK_EQ_STR(plan->steps[0].op_name, "Equal+Cast+MatMul+Add");
    CHECK_EQ_U64(plan->arena_bytes, 0);
    const uint32_t table = plan->steps[0].bindings[1].index;
    CHECK_EQ_U64(plan->packings[table].bytes, 21 * 17 * sizeof(float));
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    data_free(inputs, INPUTS);
}

TEST_MAIN
