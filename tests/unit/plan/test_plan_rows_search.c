/* SPDX-License-Identifier: Apache-2.0 */
/* The search for the rows of a model's inputs on small models, and the reasons of those that are
 * not separable. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "support/rows_model.h"
#include "support/test.h"

/* ---- small models ---- */

static void check_separable(writer *graph, rows_model *model)
{
    rows_model_make(graph, 14, model);
    REQUIRE(model->graph != NULL);
    for (uint64_t rows = 2; rows <= 4; rows++) {
        rows_model_prove(model, rows);
        CHECK(model->proof.is_separable);
        if (model->proof.reason != NULL)
            test_note("%s: %s", model->proof.reason, model->proof.message);
        if (model->proof.is_separable) CHECK(rows_model_check(model, rows));
    }
}

/* The reason of a model that is not separable; `node` NULL: none. */
static void check_reason(writer *graph, const char *reason, const char *node)
{
    rows_model model;
    rows_model_make(graph, 14, &model);
    REQUIRE(model.graph != NULL);
    rows_model_prove(&model, 2);
    CHECK(!model.proof.is_separable);
    CHECK_EQ_STR(model.proof.reason, reason);
    CHECK((model.proof.node != SP_NO_NODE) == (node != NULL));
    if (model.proof.node != SP_NO_NODE && node != NULL) {
        CHECK_EQ_STR(model.graph->nodes[model.proof.node].name, node);
    }
    rows_model_deinit(&model);
}

TEST(a_constant_for_one_row_is_repeated)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(2, 1, 3));
    rows_add_floats(&graph, "c", &SHAPE(2, 1, 4));
    rows_add_floats(&graph, "d", &SHAPE(2, 1, 1));
    writer node = make_node("Concat", "c x c d", "y");
    add_attribute_int(&node, "axis", 2);
    add_node(&graph, node);
    add_output(&graph, "y");
    check_separable(&graph, &model);
    CHECK_EQ_U64(model.input_rows[0].inner, 3);
    CHECK_EQ_U64(model.output_rows[0].inner, 12);
    CHECK_EQ_U64(model.proof.repeat_count, 2);
    rows_model_deinit(&model);
}

TEST(an_initial_state_for_one_row_is_repeated)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(3, 1, 4));
    rows_add_floats(&graph, "w", &SHAPE(1, 20, 4));
    rows_add_floats(&graph, "r", &SHAPE(1, 20, 5));
    rows_add_floats(&graph, "b", &SHAPE(1, 40));
    rows_add_floats(&graph, "h", &SHAPE(1, 1, 5));
    writer node = make_node("LSTM", "x w r b - h h", "y");
    add_attribute_int(&node, "hidden_size", 5);
    add_node(&graph, node);
    add_output(&graph, "y");
    check_separable(&graph, &model);
    CHECK_EQ_U64(model.proof.repeat_count, 1);
    rows_model_deinit(&model);
}

TEST(dimensions_of_one_name_are_rows_together)
{
    writer graph = {0};
    rows_model model;
    /* The first dimensions are 1 in both, and not the rows. */
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, -1, 3));
    rows_add_input(&graph, "h", ONNX_F32, &SHAPE(1, 1, -1, 3));
    rows_add_input(&graph, "t", ONNX_F32, &SHAPE(1));
    add_node(&graph, make_node("Add", "x h", "s"));
    add_node(&graph, make_node("Mul", "s t", "y"));
    add_output(&graph, "y");
    check_separable(&graph, &model);
    CHECK_EQ_INT(model.many[0].shape.dims[1], 4);
    CHECK_EQ_INT(model.many[1].shape.dims[2], 4);
    CHECK_EQ_INT(model.input_rows[2].kind, SP_ROWS_SHARED);
    rows_model_deinit(&model);
}

TEST(values_of_the_request_are_the_same_for_all_rows)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 6));
    rows_add_input(&graph, "k", ONNX_I64, &SHAPE(1)); /* 0: from the first element on */
    rows_add_ints(&graph, "end", (int64_t[]){4}, 1);
    rows_add_ints(&graph, "axis", (int64_t[]){1}, 1);
    add_node(&graph, make_node("Slice", "x k end axis", "y"));
    add_output(&graph, "y");
    check_separable(&graph, &model);
    CHECK_EQ_INT(model.input_rows[1].kind, SP_ROWS_SHARED);
    rows_model_deinit(&model);
}

TEST(reshapes_to_constant_sizes_grow)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 4, 6));
    rows_add_ints(&graph, "s", (int64_t[]){1, 4, 2, 3}, 4);
    rows_add_ints(&graph, "t", (int64_t[]){2, 12}, 2);
    rows_add_ints(&graph, "u", (int64_t[]){1, -1}, 2);
    rows_add_floats(&graph, "w", &SHAPE(24, 2));
    add_node(&graph, make_node("Reshape", "x s", "a"));
    writer node = make_node("Transpose", "a", "b");
    add_attribute_ints(&node, "perm", (int64_t[]){0, 2, 1, 3}, 4);
    add_node(&graph, node);
    add_node(&graph, make_node("Reshape", "b t", "c"));
    add_node(&graph, make_node("Reshape", "c u", "d"));
    add_node(&graph, make_node("MatMul", "d w", "y"));
    add_output(&graph, "y");
    check_separable(&graph, &model);
    rows_model_deinit(&model);
}

/* The sizes of the Reshape allow one row of 24 too, so it is tried twice. */
TEST(a_cast_to_the_type_of_a_constant_keeps_its_type)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 4, 3));
    rows_add_ints(&graph, "s", (int64_t[]){1, -1}, 2);
    rows_add_floats(&graph, "w", &SHAPE(12, 2));
    rows_add_ints(&graph, "one", (int64_t[]){1}, 1);
    add_node(&graph, make_node("Reshape", "x s", "a"));
    add_node(&graph, make_node("MatMul", "a w", "b"));
    add_node(&graph, make_node("CastLike", "b one", "y"));
    add_output(&graph, "y");
    rows_model_make(&graph, 15, &model);
    rows_model_prove(&model, 3);
    CHECK(model.proof.is_separable);
    CHECK_EQ_U64(model.proof.reshape_count, 1);
    if (model.proof.is_separable) CHECK(rows_model_check(&model, 3));
    rows_model_deinit(&model);
}

/* ---- reasons ---- */

TEST(the_first_node_that_mixes_rows_is_named)
{
    writer graph = {0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    add_node(&graph, make_node("Relu", "x", "a"));
    writer node = make_node("Softmax", "a", "y");
    add_attribute_int(&node, "axis", 0);
    add_node(&graph, node);
    add_output(&graph, "y");
    check_reason(&graph, "it normalises along the batch axis", "y");
}

TEST(a_loop_has_no_proof)
{
    writer graph = {0}, body = {0};
    add_input(&body, "i", ONNX_I64, NULL, 0);
    add_input(&body, "c", ONNX_BOOL, NULL, 0);
    rows_add_input(&body, "v", ONNX_F32, &SHAPE(1, 4));
    add_node(&body, make_node("Relu", "v", "w"));
    add_node(&body, make_node("Identity", "c", "d"));
    add_output(&body, "d");
    add_output(&body, "w");
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    rows_add_input(&graph, "n", ONNX_I64, &SHAPE(1));
    writer node = make_node("Loop", "n - x", "y");
    add_attribute_graph(&node, "body", &body);
    add_node(&graph, node);
    add_output(&graph, "y");
    check_reason(&graph, "there is no proof for this op", "y");
}

TEST(an_output_without_rows_is_a_reason)
{
    writer graph = {0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    rows_add_floats(&graph, "c", &SHAPE(3));
    add_node(&graph, make_node("Relu", "c", "y"));
    add_node(&graph, make_node("Relu", "x", "z"));
    add_output(&graph, "z");
    add_output(&graph, "y");
    check_reason(&graph, "an output is the same for all rows", NULL);

    graph = (writer){0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    add_node(&graph, make_node("Shape", "x", "y"));
    add_output(&graph, "y");
    check_reason(&graph, "an output depends on the batch size", NULL);
}

TEST(sizes_of_the_batch_do_not_become_data)
{
    writer graph = {0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    add_node(&graph, make_node("Size", "x", "s"));
    writer node = make_node("Cast", "s", "f");
    add_attribute_int(&node, "to", ONNX_F32);
    add_node(&graph, node);
    add_node(&graph, make_node("Div", "x f", "y"));
    add_output(&graph, "y");
    check_reason(&graph, "it computes with the batch size", "y");
}

TEST(a_model_without_a_dimension_of_1_has_no_rows)
{
    writer graph = {0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(2, 4));
    add_node(&graph, make_node("Relu", "x", "y"));
    add_output(&graph, "y");
    check_reason(&graph, "no input has a dimension of 1 that can have the rows", NULL);
}

TEST(a_model_without_inputs_has_no_rows)
{
    writer graph = {0};
    rows_add_floats(&graph, "c", &SHAPE(1, 4));
    add_node(&graph, make_node("Relu", "c", "y"));
    add_output(&graph, "y");
    check_reason(&graph, "no input has a dimension of 1 that can have the rows", NULL);
}

TEST(an_empty_row_is_not_separable)
{
    writer graph = {0};
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 0));
    add_node(&graph, make_node("Relu", "x", "y"));
    add_output(&graph, "y");
    check_reason(&graph, "its input has no elements", "y");
}

TEST(a_batch_has_at_least_two_rows)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(-1, 4));
    add_node(&graph, make_node("Relu", "x", "y"));
    add_output(&graph, "y");
    rows_model_make(&graph, 14, &model);
    const sp_plan_request single = {.inputs = model.single, .input_count = 1};
    const sp_rows_search search = {.inputs = model.many, .rows = model.input_rows};
    CHECK_STATUS(
        sp__plan_find_rows(model.graph, &single, 1, &search, model.output_rows, &model.proof),
        SP_INVALID);
    rows_model_deinit(&model);
}

static void add_joined(writer *graph, const char *inputs, const char *output, int64_t axis)
{
    writer node = make_node("Concat", inputs, output);
    add_attribute_int(&node, "axis", axis);
    add_node(graph, node);
}

/* A proof is for plans of one precision: with another one a product of sizes is not known. */
TEST(a_value_that_a_plan_does_not_know_is_not_repeated)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 4));
    rows_add_floats(&graph, "w", &SHAPE(2, 3));
    rows_add_ints(&graph, "one", (int64_t[]){1, 1}, 2);
    writer node = make_node("Shape", "x", "s");
    add_attribute_int(&node, "start", 1);
    add_node(&graph, node);
    node = make_node("Cast", "s", "f");
    add_attribute_int(&node, "to", ONNX_F32);
    add_node(&graph, node);
    add_node(&graph, make_node("Reshape", "f one", "g"));
    add_joined(&graph, "g g", "pair", 1);
    add_node(&graph, make_node("MatMul", "pair w", "p"));
    add_joined(&graph, "x p", "y", 1);
    add_output(&graph, "y");
    rows_model_make(&graph, 15, &model);
    rows_model_prove(&model, 2);
    CHECK(model.proof.is_separable && model.proof.repeat_count == 1);
    const sp_plan_request many = {.inputs = model.many,
                                  .input_count = 1,
                                  .is_any_size = true,
                                  .repeats = model.proof.repeats,
                                  .repeat_count = model.proof.repeat_count,
                                  .precision = SP_PRECISION_TF32};
    const sp_graph_plan *plan = NULL;
    CHECK_STATUS(sp__plan_compile(model.graph, &many, &plan), SP_INTERNAL);
    CHECK(plan == NULL);
    rows_model_deinit(&model);
}

TEST(without_memory_there_is_no_proof_and_no_plan)
{
    writer graph = {0};
    rows_model model;
    bool has_failed = true;
    rows_add_input(&graph, "x", ONNX_F32, &SHAPE(1, 4));
    rows_add_floats(&graph, "c", &SHAPE(1, 2));
    rows_add_ints(&graph, "s", (int64_t[]){1, 2, 3}, 3);
    writer node = make_node("Concat", "c x", "a");
    add_attribute_int(&node, "axis", 1);
    add_node(&graph, node);
    add_node(&graph, make_node("Reshape", "a s", "b"));
    add_node(&graph, make_node("Relu", "b", "y"));
    add_output(&graph, "y");
    rows_model_make(&graph, 14, &model);
    const sp_plan_request single = {.inputs = model.single, .input_count = 1};
    const sp_rows_search search = {.inputs = model.many, .rows = model.input_rows};
    for (uint64_t skip = 0; has_failed; skip++) {
        const sp_graph_plan *plan = NULL;
        sp_heap_fail_after(skip);
        sp_status status =
            sp__plan_find_rows(model.graph, &single, 3, &search, model.output_rows, &model.proof);
        const sp_plan_request many = {.inputs = model.many,
                                      .input_count = 1,
                                      .is_any_size = true,
                                      .reshapes = model.proof.reshapes,
                                      .repeats = model.proof.repeats,
                                      .reshape_count = model.proof.reshape_count,
                                      .repeat_count = model.proof.repeat_count};
        if (status == SP_OK) status = sp__plan_compile(model.graph, &many, &plan);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        sp__plan_destroy(plan);
    }
    CHECK(model.proof.repeat_count == 1 && model.proof.reshape_count == 1);
    rows_model_deinit(&model);
}

/* ---- cost ---- */

/* A chain of 10,000 nodes on an input with 5 dimensions of 1, the last node mixes rows of all. */
TEST(a_search_on_a_large_graph_is_bounded)
{
    writer graph = {0};
    rows_model model;
    rows_add_input(&graph, "v0", ONNX_F32, &SHAPE(1, 1, 1, 1, 1, 4));
    rows_add_input(&graph, "h", ONNX_F32, &SHAPE(1, 1, 1, 1, 1, 4));
    for (int i = 0; i < 10000; i++) {
        char inputs[32], output[16];
        snprintf(inputs, sizeof inputs, i % 100 == 0 ? "v%d h" : "v%d", i);
        snprintf(output, sizeof output, "v%d", i + 1);
        add_node(&graph, make_node(i % 100 == 0 ? "Add" : "Relu", inputs, output));
    }
    rows_add_ints(&graph, "axis", (int64_t[]){0, 1, 2, 3, 4, 5}, 6);
    add_node(&graph, make_node("ReduceSum", "v10000 axis", "y"));
    add_output(&graph, "y");
    rows_model_make(&graph, 14, &model);
    const uint64_t start = sp_clock_now();
    rows_model_prove(&model, 2);
    const uint64_t time = sp_clock_now() - start;
    CHECK(!model.proof.is_separable);
    CHECK_EQ_STR(model.proof.reason, "it reduces the batch axis");
    CHECK_EQ_U64(model.proof.node, 10000);
    test_note("%llu us", (unsigned long long)time / 1000);
    rows_model_deinit(&model);
}

TEST_MAIN
