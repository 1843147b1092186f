/* SPDX-License-Identifier: Apache-2.0 */
/* Axes that are inputs of a graph: a run's values determine the shape and the reduced
 * dimensions. */
#include <string.h>

#include "run_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, WIDTH = 3 };

static const int64_t dims_x[] = {2, WIDTH}, dims_a[] = {-1};
static const float x_data[2 * WIDTH] = {1, 2, 4, 8, 16, 32};

/* The inputs x [2, 3] and a [n], or a scalar if `rank` is 0. */
static writer begin_graph(int rank)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_x, 2);
    add_input(&graph, "a", ONNX_INT64, dims_a, rank);
    return graph;
}

static sp_model load(writer *graph)
{
    add_output(graph, "y");
    writer file = make_model(graph, 18);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, NULL, &model));
    writer_free(&file);
    return model;
}

static sp_status run(sp_model model, const int64_t *axes, int64_t count, int rank, float y[8],
                     sp_host_tensor *output)
{
    const sp_host_tensor inputs[2] = {{.data = (void *)(uintptr_t)x_data,
                                       .bytes = sizeof x_data,
                                       .dtype = SP_F32,
                                       .rank = 2,
                                       .shape = {2, WIDTH}},
                                      {.data = (void *)(uintptr_t)axes,
                                       .bytes = (uint64_t)count * sizeof *axes,
                                       .dtype = SP_I64,
                                       .rank = (uint32_t)rank,
                                       .shape = {count}}};
    *output = (sp_host_tensor){.data = y, .capacity = 8 * sizeof *y};
    return sp_model_run(model, inputs, 2, output, 1);
}

TEST(axes_that_a_run_gives_decide_what_is_summed)
{
    static const struct {
        int64_t axes[2], count, rows, columns;
        float sums[WIDTH];
    } cases[] = {{{0}, 1, 1, 3, {9, 18, 36}},
                 {{-1}, 1, 2, 1, {7, 56}},
                 {{1, 0}, 2, 1, 1, {63}},
                 {{0}, 0, 1, 1, {63}}};
    writer graph = begin_graph(1);
    add_node(&graph, make_node("ReduceSum", "x a", "y"));
    const sp_model model = load(&graph);
    float y[8];
    sp_host_tensor output;
    for (size_t i = 0; i < 2 * SP_COUNT_OF(cases); i++) {
        const size_t k = i % SP_COUNT_OF(cases);
        REQUIRE_OK(run(model, cases[k].axes, cases[k].count, 1, y, &output));
        CHECK_EQ_INT(output.shape[0], cases[k].rows);
        CHECK_EQ_INT(output.shape[1], cases[k].columns);
        CHECK_EQ_MEM(y, cases[k].sums, (size_t)output.bytes);
    }
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.plan_count, SP_COUNT_OF(cases));
    sp_port port;
    CHECK_OK(sp_model_get_input(model, 1, &port));
    CHECK(port.determines_shapes);
    const int64_t outside = 2;
    CHECK_STATUS(run(model, &outside, 1, 1, y, &output), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));
}

TEST(every_reduction_takes_its_axes_from_a_run)
{
    static const char *const ops[] = {
        "ReduceL1",   "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
        "ReduceMean", "ReduceMin", "ReduceProd",   "ReduceSum",       "ReduceSumSquare"};
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        writer graph = begin_graph(1);
        add_node(&graph, make_node(ops[i], "x a", "y"));
        const sp_model model = load(&graph);
        float y[8];
        sp_host_tensor output;
        for (int64_t axis = 0; axis < 2; axis++) {
            CHECK_OK(run(model, &axis, 1, 1, y, &output));
            CHECK_EQ_U64(output.bytes, (axis == 0 ? WIDTH : 2) * sizeof(float));
        }
        CHECK_OK(sp_model_release(model));
    }
}

TEST(the_axis_of_a_running_sum_may_come_from_a_run)
{
    static const float sums[2][2 * WIDTH] = {{1, 2, 4, 9, 18, 36}, {1, 3, 7, 8, 24, 56}};
    writer graph = begin_graph(0);
    add_node(&graph, make_node("CumSum", "x a", "y"));
    const sp_model model = load(&graph);
    float y[8];
    sp_host_tensor output;
    for (int64_t round = 0; round < 4; round++) {
        const int64_t axis = round % 2;
        CHECK_OK(run(model, &axis, 1, 0, y, &output));
        CHECK_EQ_MEM(y, sums[axis], sizeof sums[axis]);
    }
    CHECK_OK(sp_model_release(model));
}

/* An axis computed from x: if x is small its values are part of the plan's key; otherwise the run
 * goes through several partial plans. */
TEST(axes_may_depend_on_much_data)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_a, 1);
    writer node = make_node("ArgMax", "x", "a");
    add_node(&graph, node);
    add_node(&graph, make_node("ReduceSum", "x a", "y"));
    const sp_model model = load(&graph);
    float x[200] = {7}, y;
    sp_host_tensor input = {
        .data = x, .bytes = 4 * sizeof *x, .dtype = SP_F32, .rank = 1, .shape = {4}};
    sp_host_tensor output = {.data = &y, .capacity = sizeof y};
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    CHECK(y == 7);
    input.shape[0] = 200;
    input.bytes = sizeof x;
    for (int i = 0; i < 200; i++) x[i] = -1;
    x[0] = 500; /* its position is the axis */
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    CHECK(y == 500 - 199);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
