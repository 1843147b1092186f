/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations folded into convolutions in partial plans: after a computed shape, in branches and
 * in bodies. */
#include <math.h>
#include <stdio.h>

#include "partial_fixture.h"

enum { LENGTH = 200 }; /* floats: more bytes than shape-determining values may have */

static const int64_t any_dims[1] = {-1};

/* The pair's result for a number: (2 v + 1 - 3) * 1.5 / sqrt(4) + 5, and that of its first half. */
static float conv_of(float v)
{
    return 2 * v + 1;
}

static float pair_of(float v)
{
    return (conv_of(v) - 3) * 1.5f / 2 + 5;
}

static void add_list(writer *graph, const char *name, float value)
{
    partial_add_floats(graph, name, &value, 1);
}

/* x: mostly zeros. The sum is negative. */
static float x_of(int i)
{
    const int place = i / 50;
    return i % 50 == 0 ? -0.5f * (float)(place + 1) : 0;
}

/* From the list v: c = Conv(v), b = BatchNormalization(c), both of shape [1,1,n]. */
static void add_pair(writer *graph, const char *v)
{
    const float weight = 2;
    const int64_t dims[3] = {1, 1, 1};
    char inputs[64];
    writer tensor = make_tensor("w", ONNX_FLOAT, dims, 3, &weight, sizeof weight);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_list(graph, "bias", 1);
    add_list(graph, "scale", 1.5f);
    add_list(graph, "shift", 5);
    add_list(graph, "mean", 3);
    add_list(graph, "variance", 4);
    partial_add_ints(graph, "image", (const int64_t[]){1, 1, -1}, 3);
    (void)snprintf(inputs, sizeof inputs, "%s image", v);
    add_node(graph, make_node("Reshape", inputs, "row"));
    add_node(graph, make_node("Conv", "row w bias", "c"));
    writer norm = make_node("BatchNormalization", "c scale shift mean variance", "b");
    add_attribute_float(&norm, "epsilon", 0);
    add_node(graph, norm);
}

static bool is_near(float got, float want)
{
    return fabsf(got - want) <= 2e-5f * (1 + fabsf(want));
}

/* Checks the outputs y and, if `counts` has two, z of a model of x. */
static void check_run(writer *graph, const float *want, const uint32_t *counts, uint32_t count)
{
    float x[LENGTH];
    float y[2][2 * LENGTH];
    sp_model model = {0};
    for (int i = 0; i < LENGTH; i++) x[i] = x_of(i);
    REQUIRE_OK(partial_load(graph, NULL, &model));
    const sp_host_tensor input = partial_floats("x", x, LENGTH);
    sp_host_tensor outputs[2] = {partial_room("y", y[0], sizeof y[0]),
                                 partial_room("z", y[1], sizeof y[1])};
    REQUIRE_OK(sp_model_run(model, &input, 1, outputs, count));
    CHECK(partial_info(model).partial_plan_count > 0);
    for (uint32_t i = 0; i < count; i++) {
        CHECK_EQ_U64(outputs[i].bytes, counts[i] * sizeof(float));
        for (uint32_t k = 0; k < counts[i]; k++) CHECK(is_near(y[i][k], *want++));
    }
    CHECK_OK(sp_model_release(model));
}

TEST(a_pair_after_a_computed_shape)
{
    writer graph = {0};
    partial_add_found(&graph, "v");
    add_pair(&graph, "v");
    add_node(&graph, make_node("Identity", "b", "y"));
    add_output(&graph, "y");
    float want[4];
    for (int i = 0; i < 4; i++) want[i] = pair_of(x_of(50 * i));
    check_run(&graph, want, (const uint32_t[]){4}, 1);
}

static void check_branch(const char *op)
{
    writer graph = {0}, chosen = {0}, other = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(&graph, "nothing", (const float[]){0}, -1);
    add_node(&graph, partial_node_int("ReduceSum", "x", "sum", "keepdims", 0));
    add_node(&graph, make_node(op, "sum nothing", "condition"));
    add_pair(&chosen, "x");
    add_output(&chosen, "b");
    add_node(&other, make_node("Neg", "x", "negative"));
    add_output(&other, "negative");
    const bool is_then = op[0] == 'L'; /* Less */
    add_node(&graph, is_then ? partial_if("condition", "y", &chosen, &other)
                             : partial_if("condition", "y", &other, &chosen));
    add_output(&graph, "y");
    float want[LENGTH];
    for (int i = 0; i < LENGTH; i++) want[i] = pair_of(x_of(i));
    check_run(&graph, want, (const uint32_t[]){LENGTH}, 1);
}

TEST(a_pair_in_a_branch_of_a_computed_condition)
{
    check_branch("Less");
    check_branch("Greater");
}

/* Two trips; y is the final value, z the Conv's result of each trip, if shown. */
static void check_body(bool shows_conv)
{
    writer graph = {0}, body = partial_body(1);
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(&graph, "n", (const int64_t[]){2}, -1);
    partial_add_bool(&graph, "on", true);
    add_pair(&body, "v");
    partial_add_ints(&body, "list", (const int64_t[]){-1}, 1);
    add_node(&body, make_node("Reshape", "b list", "next"));
    add_output(&body, "on");
    add_output(&body, "next");
    if (shows_conv) add_output(&body, "c");
    if (shows_conv) add_output(&body, "b");
    add_node(&graph, partial_loop("n on x", shows_conv ? "end z y" : "y", &body));
    add_output(&graph, "y");
    if (shows_conv) add_output(&graph, "z");
    float want[4 * LENGTH];
    for (int i = 0; i < LENGTH; i++) {
        const float once = pair_of(x_of(i));
        want[i] = shows_conv ? once : pair_of(once);
        want[LENGTH + i] = pair_of(once);
        want[2 * LENGTH + i] = conv_of(x_of(i));
        want[3 * LENGTH + i] = conv_of(once);
    }
    const uint32_t counts[2] = {shows_conv ? 2 * LENGTH : LENGTH, 2 * LENGTH};
    check_run(&graph, want, counts, shows_conv ? 2 : 1);
}

TEST(a_pair_in_a_body)
{
    check_body(false);
}

TEST(a_body_that_gives_both_results_of_a_pair_keeps_the_pair)
{
    check_body(true);
}

TEST_MAIN
