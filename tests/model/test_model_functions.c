/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the file with loops inside, and called in loops. */
#include "partial_fixture.h"

static const int64_t dims[1] = {2};

static sp_model load(writer *functions, writer *graph)
{
    writer file = make_model_with(functions, graph);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, NULL, &model));
    writer_free(&file);
    return model;
}

/* Checks y for x = {1, 2} and `times`. */
static void check_run(sp_model model, int64_t times, float first, float second)
{
    const float x[2] = {1, 2};
    float y[2] = {0, 0};
    const sp_host_tensor inputs[2] = {partial_floats("x", x, 2), partial_ints("n", &times, -1)};
    sp_host_tensor output = partial_room("y", y, sizeof y);
    CHECK_OK(sp_model_run(model, inputs, 2, &output, 1));
    CHECK(y[0] == first && y[1] == second);
}

static writer begin_graph(void)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    add_input(&graph, "n", ONNX_INT64, NULL, 0);
    return graph;
}

/* A body that returns v + w, where `node` computes w. */
static writer body_with(writer node)
{
    writer body = partial_body(1);
    add_node(&body, node);
    add_output(&body, "on");
    partial_add_result(&body, "w", ONNX_FLOAT, dims, 1);
    return body;
}

/* end = start + times * step, by a Loop that captures step. */
static void add_repeat(writer *functions)
{
    writer function = make_function("Repeat", "times start step", "end");
    writer body = body_with(make_node("Add", "v step", "w"));
    add_function_node(&function, partial_loop("times - start", "end", &body));
    add_function(functions, function);
}

TEST(a_loop_in_a_function_captures_what_the_call_gives)
{
    writer functions = {0};
    writer graph = begin_graph();
    add_repeat(&functions);
    /* Twice, one call using the other's result. */
    add_node(&graph, make_call("Repeat", "n x x", "once"));
    add_node(&graph, make_call("Repeat", "n once x", "y"));
    add_output(&graph, "y");
    const sp_model model = load(&functions, &graph);
    check_run(model, 3, 7, 14);
    check_run(model, 0, 1, 2);
    CHECK_OK(sp_model_release(model));
}

TEST(a_body_calls_functions_and_sees_what_they_give)
{
    writer functions = {0};
    writer graph = begin_graph();
    writer function = make_function("Twice", "a", "b");
    add_function_node(&function, make_node("Add", "a a", "b"));
    add_function(&functions, function);
    writer body = body_with(make_call("Twice", "v", "w"));
    add_node(&graph, partial_loop("n - x", "y", &body));
    add_output(&graph, "y");
    const sp_model model = load(&functions, &graph);
    check_run(model, 4, 16, 32);
    CHECK_OK(sp_model_release(model));
}

/* The call gives the Scan's number of scan inputs. */
TEST(a_scan_in_a_function_takes_its_attributes_from_the_call)
{
    writer functions = {0};
    writer graph = begin_graph();
    writer function = make_function("Sums", "rows", "sums");
    writer body = {0};
    add_input(&body, "row", ONNX_FLOAT, NULL, 0);
    add_node(&body, make_node("Add", "row row", "twice"));
    partial_add_result(&body, "twice", ONNX_FLOAT, NULL, 0);
    writer scan = make_node("Scan", "rows", "sums");
    add_attribute_graph(&scan, "body", &body);
    add_reference(&scan, "num_scan_inputs", "walked", 2);
    add_function_node(&function, scan);
    add_function(&functions, function);
    writer call = make_call("Sums", "x", "s");
    add_attribute_int(&call, "walked", 1);
    add_node(&graph, call);
    add_node(&graph, partial_node_int("Cast", "n", "f", "to", ONNX_FLOAT));
    add_node(&graph, make_node("Add", "s f", "y"));
    add_output(&graph, "y");
    const sp_model model = load(&functions, &graph);
    check_run(model, 10, 12, 14);
    CHECK_OK(sp_model_release(model));
}

TEST(a_loop_over_an_input_that_the_call_leaves_out_is_refused)
{
    writer functions = {0};
    writer graph = begin_graph();
    add_repeat(&functions);
    add_node(&graph, make_call("Repeat", "n x", "y"));
    add_output(&graph, "y");
    writer file = make_model_with(&functions, &graph);
    sp_model model = {0};
    CHECK_STATUS(sp_model_load_from_memory(file.bytes, file.len, NULL, &model), SP_CORRUPT);
    CHECK_MESSAGE("input 1 is left out");
    writer_free(&file);
}

TEST_MAIN
