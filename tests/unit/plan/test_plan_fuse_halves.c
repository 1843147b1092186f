/* SPDX-License-Identifier: Apache-2.0 */
/* Queries, keys and values that one narrow product computes are rounded by it: when, and that the
 * bits are those of rounding them in attention. */
#include "plan/plan_fuse.h"

#include <stdio.h>

#include "base/macros.h"
#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_F32 = 1, ONNX_I64 = 7 };

/* y = Attention(q, k, v), where q, k and v are parts of MatMul(x, w) + bias, x [images, rows,
 * depth]. A row of the product has all queries, then all keys, then all values, each of all heads.
 */
typedef struct projection {
    int64_t images, rows, depth, heads, size;
    const char *query_scale, *key_scale; /* an op on it and `number`, or NULL */
    bool is_key_first, is_output;        /* keys are before queries; the product's result, too */
    bool has_relu;
    sp_precision precision;
} projection;

static void add_text_node(writer *graph, const char *text)
{
    writer node = make_text_node(text);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static void add_tensor(writer *graph, const char *name, const sp_shape *shape, uint64_t seed)
{
    data_random random = {seed};
    sp_array array = data_floats(&random, shape);
    writer tensor = make_tensor(name, ONNX_F32, shape->dims, shape->rank, array.data, array.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
}

static void add_numbers(writer *graph, const char *name, const int64_t *values, int64_t count)
{
    writer tensor = make_tensor(name, ONNX_I64, &count, 1, values, (size_t)count * sizeof *values);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_transpose(writer *graph, const char *text, const int64_t order[4])
{
    writer node = make_text_node(text);
    add_attribute_ints(&node, "perm", order, 4);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

/* Columns [part * width, (part + 1) * width) of the product as heads. */
static void add_part(writer *graph, const projection *c, const char *name, int64_t part,
                     const int64_t order[4])
{
    char text[96], first[24], last[24];
    const int64_t width = c->heads * c->size;
    (void)snprintf(first, sizeof first, "first_%s", name);
    (void)snprintf(last, sizeof last, "last_%s", name);
    add_numbers(graph, first, (int64_t[]){part * width}, 1);
    add_numbers(graph, last, (int64_t[]){(part + 1) * width}, 1);
    (void)snprintf(text, sizeof text, "Slice h %s %s axes > part_%s", first, last, name);
    add_text_node(graph, text);
    (void)snprintf(text, sizeof text, "Reshape part_%s sizes > heads_%s", name, name);
    add_text_node(graph, text);
    (void)snprintf(text, sizeof text, "Transpose heads_%s > %s", name, name);
    add_transpose(graph, text, order);
}

static void add_scale(writer *graph, const char *op, const char *name)
{
    char text[64];
    if (op == NULL) (void)snprintf(text, sizeof text, "Identity %s > scaled_%s", name, name);
    else (void)snprintf(text, sizeof text, "%s %s number > scaled_%s", op, name, name);
    add_text_node(graph, text);
}

static const sp_graph *load(const projection *c)
{
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys_last[] = {0, 2, 3, 1};
    const int64_t width = c->heads * c->size, x[] = {c->images, c->rows, c->depth};
    const float number = 5.656854f;
    writer graph = {0};
    add_input(&graph, "x", ONNX_F32, x, 3);
    add_tensor(&graph, "w", &SHAPE(c->depth, 3 * width), 70);
    add_tensor(&graph, "bias", &SHAPE(3 * width), 71);
    writer scale = make_tensor("number", ONNX_F32, NULL, 0, &number, sizeof number);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &scale);
    add_numbers(&graph, "axes", (int64_t[]){2}, 1);
    add_numbers(&graph, "sizes", (int64_t[]){c->images, c->rows, c->heads, c->size}, 4);
    add_text_node(&graph, "MatMul x w > product");
    add_text_node(&graph, "Add product bias > sum");
    add_text_node(&graph, c->has_relu ? "Relu sum > h" : "Identity sum > h");
    add_part(&graph, c, "q", c->is_key_first ? 1 : 0, heads_first);
    add_part(&graph, c, "k", c->is_key_first ? 0 : 1, keys_last);
    add_part(&graph, c, "v", 2, heads_first);
    add_scale(&graph, c->query_scale, "q");
    add_scale(&graph, c->key_scale, "k");
    add_text_node(&graph, "MatMul scaled_q scaled_k > scores");
    add_text_node(&graph, "Softmax scores > weights");
    add_text_node(&graph, "MatMul weights v > y");
    add_output(&graph, "y");
    if (c->is_output) add_output(&graph, "h");
    return fused_plans_load(&graph);
}

static const sp_graph_plan *compile(const projection *c, const sp_graph *graph, bool packs_left,
                                    bool is_unfused)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(c->images, c->rows, c->depth)};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(SP_CPU_PORTABLE),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .precision = c->precision,
                                     .packs_left = packs_left,
                                     .is_strided = !is_unfused,
                                     .is_unfused = is_unfused};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* Is there one attention, and has it operands of two bytes? */
static bool has_halves(const sp_graph_plan *plan)
{
    CHECK_EQ_INT(fused_plans_steps(plan, SP_KERNEL_ID_attention_f32), 1);
    for (uint32_t s = 0; s < plan->step_count; s++) {
        if (plan->steps[s].kernel != SP_KERNEL_ID_attention_f32) continue;
        return ((const sp_attention_constants *)plan->steps[s].constants)->is_half;
    }
    return false;
}

static void check(const projection *c, uint64_t seed, bool is_wanted)
{
    data_random random = {seed};
    const sp_graph *graph = load(c);
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&random, &SHAPE(c->images, c->rows, c->depth)), want[2] = {0};
    const sp_graph_plan *apart = compile(c, graph, false, true);
    REQUIRE(apart != NULL);
    REQUIRE_OK(data_run_plan(apart, &x, want));
    for (int packs_left = 0; packs_left < 2; packs_left++) {
        const sp_graph_plan *fused = compile(c, graph, packs_left != 0, false);
        REQUIRE(fused != NULL);
        CHECK(has_halves(fused) == (is_wanted && packs_left != 0));
        fused_plans_check_outputs(fused, &x, want, "halves");
        sp__plan_destroy(fused);
    }
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__array_deinit(&x);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
}

static const projection usual = {.images = 2,
                                 .rows = 12,
                                 .depth = 24,
                                 .heads = 2,
                                 .size = 16,
                                 .query_scale = "Div",
                                 .precision = SP_PRECISION_BF16};

TEST(a_product_rounds_what_attention_would)
{
    static const char *const scales[] = {NULL, "Mul", "Div"};
    data_random random = {4};
    for (uint64_t i = 0; i < test_count(200, 24); i++) {
        projection c = {.images = 1 + (int64_t)(data_next(&random) % 3),
                        .rows = 8 + (int64_t)(data_next(&random) % 30),
                        .depth = 2 + (int64_t)(data_next(&random) % 40),
                        .heads = 2 + (int64_t)(data_next(&random) % 3),
                        .size = 8 * (1 + (int64_t)(data_next(&random) % 5)),
                        .query_scale = scales[data_next(&random) % 3],
                        .key_scale = scales[data_next(&random) % 3],
                        .precision = i % 2 == 0 ? SP_PRECISION_F16 : SP_PRECISION_BF16};
        c.is_key_first = c.query_scale == NULL && c.key_scale == NULL && i % 3 == 0;
        check(&c, i + 1, true);
    }
}

/* Scaled columns are the first ones, the queries' before the keys'. */
TEST(scaled_columns_in_another_order_are_rounded_by_attention)
{
    projection c = usual;
    c.is_key_first = true;
    check(&c, 60, false);
}

TEST(what_others_read_and_an_activation_stay)
{
    projection c = usual;
    check(&c, 61, true);
    c.is_output = true;
    check(&c, 62, false);
    c.is_output = false;
    c.has_relu = true;
    check(&c, 63, false);
}

TEST(sizes_that_are_not_copied_by_units_stay)
{
    projection c = usual;
    c.size = 12;
    check(&c, 64, false);
}

/* Attention is f32 then. */
TEST(products_of_tf32_stay)
{
    projection c = usual;
    c.precision = SP_PRECISION_TF32;
    check(&c, 65, false);
}

TEST_MAIN
