/* SPDX-License-Identifier: Apache-2.0 */
/* Shape-determining values, op by op: the inputs of the model that a plan must know, and chains
 * over shapes that are folded when a plan is compiled. */
#include <string.h>

#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7 };

static void add_ints(writer *graph, const char *name, const int64_t *values, int64_t count)
{
    writer tensor =
        make_tensor(name, ONNX_INT64, &count, 1, values, (size_t)count * sizeof(*values));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static const sp_graph *finish(writer *graph)
{
    add_output(graph, "y");
    writer model = make_model(graph, 14);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

/* As PyTorch exports x.reshape(x.shape[0], -1, 2): with the elements of x's shape. */
TEST(a_chain_over_shapes_is_folded_when_the_plan_is_made)
{
    static const int64_t zero = 0, rest[] = {-1, 2}, start[] = {1}, end[] = {INT64_MAX};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    add_ints(&graph, "zero", &zero, 1);
    add_ints(&graph, "rest", rest, 2);
    add_ints(&graph, "start", start, 1);
    add_ints(&graph, "end", end, 1);
    add_node(&graph, make_node("Shape", "x", "all"));
    add_node(&graph, make_node("Squeeze", "zero", "first"));
    add_node(&graph, make_node("Gather", "all first", "n"));
    add_node(&graph, make_node("Unsqueeze", "n zero", "list"));
    writer concat = make_node("Concat", "list rest", "shape");
    add_attribute_int(&concat, "axis", 0);
    add_node(&graph, concat);
    add_node(&graph, make_node("Reshape", "x shape", "blocks"));
    add_node(&graph, make_node("Size", "x", "size"));
    add_node(&graph, make_node("Unsqueeze", "size zero", "sizes"));
    add_node(&graph, make_node("Slice", "blocks start end", "tail")); /* of axis 0 */
    add_node(&graph, make_node("Shape", "tail", "tail_shape"));
    writer both = make_node("Concat", "tail_shape sizes", "y");
    add_attribute_int(&both, "axis", 0);
    add_node(&graph, both);
    const sp_graph *loaded = finish(&graph);
    REQUIRE(loaded != NULL);
    CHECK(!loaded->inputs[0].determines_shapes); /* its shape does, its values do not */
    const sp_plan_input x = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {3, 8}}};
    const sp_plan_request request = {.inputs = &x, .input_count = 1};
    const sp_graph_plan *plan;
    REQUIRE_OK(sp__plan_compile(loaded, &request, &plan));
    float data[24] = {0};
    sp_array in = {.dtype = SP_F32, .shape = x.shape, .bytes = sizeof(data), .data = data}, y;
    REQUIRE_OK(data_run_plan(plan, &in, &y));
    static const int64_t want[] = {2, 4, 2, 24};
    CHECK_EQ_U64(y.bytes, sizeof(want));
    CHECK_EQ_MEM(y.data, want, sizeof(want));
    sp__array_deinit(&y);
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* All inputs of a Reshape's shape are shape-determining; its data is not. */
TEST(inputs_behind_a_shape_determining_one_are_too)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "a", ONNX_INT64, NULL, -1);
    add_input(&graph, "b", ONNX_INT64, NULL, -1);
    add_node(&graph, make_node("Add", "a b", "shape"));
    add_node(&graph, make_node("Reshape", "x shape", "y"));
    const sp_graph *loaded = finish(&graph);
    REQUIRE(loaded != NULL);
    CHECK(!loaded->inputs[0].determines_shapes);
    CHECK(loaded->inputs[1].determines_shapes);
    CHECK(loaded->inputs[2].determines_shapes);
    static const int64_t a[] = {1, 2}, b[] = {1, 1};
    const sp_plan_input inputs[] = {
        {.dtype = SP_F32, .shape = {.rank = 2, .dims = {1, 6}}},
        {.dtype = SP_I64, .shape = {.rank = 1, .dims = {2}}, .data = a},
        {.dtype = SP_I64, .shape = {.rank = 1, .dims = {2}}, .data = b}};
    const sp_plan_request request = {.inputs = inputs, .input_count = 3};
    const sp_graph_plan *plan;
    REQUIRE_OK(sp__plan_compile(loaded, &request, &plan));
    CHECK_EQ_STR(sp__shape_print(&plan->outputs[0].shape).text, "[2,3]");
    sp__plan_destroy(plan);
    sp__graph_destroy(loaded);
}

/* One node over inputs x (data), i (integers) and f (floats). `marked` are the shape-determining
 * ones; without their values the plan stops before the node. */
static const struct shape_input_case {
    const char *op, *inputs, *marked;
} cases[] = {
    {"ConstantOfShape", "i", "i"},
    {"CumSum", "x i", "i"},
    {"NonZero", "x", "x"},
    {"OneHot", "x i f", "i"},
    {"Range", "i i i", "i"},
    {"ReduceSum", "x i", "i"},
    {"Resize", "x - f", "f"},
    {"Resize", "x - - i", "i"},
    {"Slice", "x i i", "i"},
    {"Split", "x i", "i"},
    {"Squeeze", "x i", "i"},
    {"Tile", "x i", "i"},
    {"TopK", "x i", "i"},
    {"Trilu", "x i", "i"},
    {"Unsqueeze", "x i", "i"},
    {"Gather", "x i", ""},
    {"ScatterElements", "x i f", ""},
};

static const sp_graph *graph_of(const struct shape_input_case *c)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "f", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "i", ONNX_INT64, NULL, -1);
    add_node(&graph, make_node(c->op, c->inputs, strcmp(c->op, "TopK") == 0 ? "y z" : "y"));
    return finish(&graph);
}

TEST(every_op_that_must_know_values_has_them_marked)
{
    static const sp_plan_input given[] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {4, 6}}},
                                          {.dtype = SP_F32, .shape = {.rank = 1, .dims = {2}}},
                                          {.dtype = SP_I64, .shape = {.rank = 1, .dims = {1}}}};
    const sp_plan_request request = {.inputs = given, .input_count = 3};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const sp_graph *graph = graph_of(&cases[i]);
        REQUIRE(graph != NULL);
        for (uint32_t k = 0; k < graph->input_count; k++) {
            const bool is_marked = strstr(cases[i].marked, graph->inputs[k].name) != NULL;
            CHECK_EQ_INT(graph->inputs[k].determines_shapes, is_marked);
        }
        if (cases[i].marked[0] != '\0') {
            const sp_graph_plan *plan;
            REQUIRE_OK(sp__plan_compile(graph, &request, &plan));
            CHECK(plan->is_partial);
            CHECK_EQ_U64(plan->stop_count, 1);
            CHECK_EQ_U64(plan->step_count + plan->output_count, 0);
            sp__plan_destroy(plan);
        }
        sp__graph_destroy(graph);
    }
}

TEST_MAIN
