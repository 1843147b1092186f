/* SPDX-License-Identifier: Apache-2.0 */
/* Narrow products whose results only another one reads write them packed: which ones, and that the
 * bits are those of packing them afterwards. */
#include "plan/plan_fuse.h"

#include <string.h>

#include "base/macros.h"
#include "support/fused_plans.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* y = MatMul(between(MatMul(x, v) + bias), w) */
typedef struct two_products {
    int64_t rows, depth, middle, columns;
    bool has_bias, is_output; /* the first result too */
    const char *between;      /* of "h" to "s" */
    sp_precision precision;
} two_products;

static void add_matrix(writer *graph, data_random *random, const char *name, const sp_shape *shape)
{
    sp_array array = data_floats(random, shape);
    writer tensor = make_tensor(name, 1, shape->dims, shape->rank, array.data, array.bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    sp__array_deinit(&array);
}

static void add_text_node(writer *graph, const char *text)
{
    writer node = make_text_node(text);
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

static const sp_graph *load(const two_products *g, data_random *random)
{
    writer graph = {0};
    const int64_t x[] = {g->rows, g->depth};
    add_input(&graph, "x", 1, x, 2);
    add_matrix(&graph, random, "v", &SHAPE(g->depth, g->middle));
    add_matrix(&graph, random, "w", &SHAPE(g->middle, g->columns));
    add_matrix(&graph, random, "bias", &SHAPE(g->middle));
    add_text_node(&graph, g->has_bias ? "MatMul x v > product" : "MatMul x v > h");
    if (g->has_bias) add_text_node(&graph, "Add product bias > h");
    add_text_node(&graph, g->between != NULL ? g->between : "Identity h > s");
    add_text_node(&graph, "MatMul s w > y");
    add_output(&graph, "y");
    if (g->is_output) add_output(&graph, "s");
    return fused_plans_load(&graph);
}

static const sp_graph_plan *compile(const two_products *g, const sp_graph *graph, bool is_unfused)
{
    const sp_plan_input input = {.dtype = SP_F32, .shape = SHAPE(g->rows, g->depth)};
    const sp_plan_request request = {.kernels = sp__cpu_kernels(SP_CPU_PORTABLE),
                                     .inputs = &input,
                                     .input_count = 1,
                                     .precision = g->precision,
                                     .packs_left = true,
                                     .is_unfused = is_unfused};
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &request, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

/* `packings` are left in the fused plan, that of x among them. */
static void check_products(const two_products *g, uint64_t seed, uint32_t packings)
{
    data_random random = {seed};
    const sp_graph *graph = load(g, &random);
    REQUIRE(graph != NULL);
    sp_array x = data_floats(&random, &SHAPE(g->rows, g->depth)), want[2] = {0};
    const sp_graph_plan *apart = compile(g, graph, true), *fused = compile(g, graph, false);
    REQUIRE(apart != NULL && fused != NULL);
    CHECK_EQ_INT(fused_plans_packings(apart), 2);
    CHECK_EQ_INT(fused_plans_packings(fused), packings);
    REQUIRE_OK(data_run_plan(apart, &x, want));
    fused_plans_check_outputs(fused, &x, want, "two products");
    for (uint32_t i = 0; i < apart->output_count; i++) sp__array_deinit(&want[i]);
    sp__array_deinit(&x);
    sp__plan_destroy(apart);
    sp__plan_destroy(fused);
    sp__graph_destroy(graph);
}

static const sp_precision precisions[] = {SP_PRECISION_TF32, SP_PRECISION_F16, SP_PRECISION_BF16};

TEST(a_product_packs_its_result_for_the_next_one)
{
    data_random random = {3};
    for (uint64_t i = 0; i < test_count(300, 30); i++) {
        const two_products g = {.rows = 8 * (1 + (int64_t)(data_next(&random) % 6)),
                                .depth = 2 + (int64_t)(data_next(&random) % 90),
                                .middle = 64 * (1 + (int64_t)(data_next(&random) % 4)),
                                .columns = 1 + (int64_t)(data_next(&random) % 70),
                                .has_bias = data_next(&random) % 2 == 0,
                                .between = data_next(&random) % 2 == 0 ? "Relu h > s" : NULL,
                                .precision = precisions[i % SP_COUNT_OF(precisions)]};
        check_products(&g, i + 1, 1);
    }
}

/* Groups of 32 steps of tf32, and of 64 of the others. */
TEST(a_result_of_parts_of_groups_or_lines_is_packed_afterwards)
{
    two_products g = {.rows = 16, .depth = 20, .middle = 96, .columns = 9};
    for (size_t i = 0; i < SP_COUNT_OF(precisions); i++) {
        g.precision = precisions[i];
        check_products(&g, 50 + i, precisions[i] == SP_PRECISION_TF32 ? 1 : 2);
    }
    g = (two_products){
        .rows = 15, .depth = 20, .middle = 64, .columns = 9, .precision = SP_PRECISION_BF16};
    check_products(&g, 60, 2);
}

TEST(a_result_that_others_read_or_a_long_activation_is_packed_afterwards)
{
    two_products g = {.rows = 16,
                      .depth = 20,
                      .middle = 64,
                      .columns = 9,
                      .is_output = true,
                      .precision = SP_PRECISION_BF16};
    check_products(&g, 61, 2);
    g.is_output = false;
    g.between = "Tanh h > s";
    check_products(&g, 62, 2);
}

TEST_MAIN
