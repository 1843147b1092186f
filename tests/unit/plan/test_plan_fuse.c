/* SPDX-License-Identifier: Apache-2.0 */
/* Activations fused into other steps: when, when not, and with which bits. */
#include "plan/plan_fuse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "io/onnx_tensor.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

/* ---- small graphs ---- */

/* Nodes as "Op inputs > outputs"; x is [6, 4], w is [4, 4], i (of images) is [2, 4, 5, 6], p and d
 * are weights of a pointwise and of a depthwise convolution, l those of an LSTM, q matrices for i.
 */
static void add_nodes(writer *graph, const char *const *nodes)
{
    for (; *nodes != NULL; nodes++) {
        writer node = make_text_node(*nodes);
        if (strncmp(*nodes, "MaxPool ", 8) == 0) {
            add_attribute_ints(&node, "kernel_shape", (int64_t[]){1, 1}, 2);
        }
        if (strstr(*nodes, " d ") != NULL) add_attribute_int(&node, "group", 4);
        write_message(graph, GRAPH_NODE_FIELD, &node);
    }
}

static void add_floats(writer *graph, const char *name, const int64_t *dims, uint32_t rank)
{
    float values[256];
    data_random random = {61};
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++) count *= (size_t)dims[i];
    data_fill(&random, values, count);
    writer tensor = make_tensor(name, 1, dims, rank, values, count * sizeof(float));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_ints(writer *graph, const char *name, const int64_t *values, int64_t count)
{
    writer tensor = make_tensor(name, 7, &count, 1, values, (size_t)count * sizeof(int64_t));
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static const int64_t dims_x[] = {6, 4}, dims_w[] = {4, 4}, dims_c[] = {4}, dims_i[] = {2, 4, 5, 6},
                     dims_p[] = {4, 4, 1, 1}, dims_d[] = {4, 1, 3, 3}, dims_l[] = {1, 16, 4},
                     dims_q[] = {2, 4, 6, 4};

static writer graph_of(const char *const *nodes, const char *const *outputs)
{
    writer graph = {0};
    writer value = make_value("x", 1, dims_x, 2);
    write_message(&graph, GRAPH_INPUT_FIELD, &value);
    value = make_value("i", 1, dims_i, 4);
    write_message(&graph, GRAPH_INPUT_FIELD, &value);
    value = make_value("w", 1, dims_w, 2); /* which a run may override */
    write_message(&graph, GRAPH_INPUT_FIELD, &value);
    add_floats(&graph, "w", dims_w, 2);
    add_floats(&graph, "c", dims_c, 1);
    add_floats(&graph, "p", dims_p, 4);
    add_floats(&graph, "d", dims_d, 4);
    add_floats(&graph, "l", dims_l, 3);
    add_floats(&graph, "q", dims_q, 4);
    add_ints(&graph, "flat", (int64_t[]){24}, 1);
    add_ints(&graph, "column", (int64_t[]){24, 1}, 2);
    add_ints(&graph, "zero", (int64_t[]){0}, 1);
    add_ints(&graph, "two", (int64_t[]){2}, 1);
    add_ints(&graph, "six", (int64_t[]){6}, 1);
    add_nodes(&graph, nodes);
    for (; *outputs != NULL; outputs++) {
        value = make_value(*outputs, 0, NULL, -1);
        write_message(&graph, GRAPH_OUTPUT_FIELD, &value);
    }
    return graph;
}

static const sp_graph *load(const char *const *nodes, const char *const *outputs)
{
    writer graph = graph_of(nodes, outputs);
    writer model = make_model(&graph, 14);
    const sp_graph *loaded = NULL;
    CHECK_OK(sp__graph_load(model.bytes, model.len, &loaded));
    writer_free(&model);
    return loaded;
}

/* ---- the same run, fused and not ---- */

enum { MAX_PORTS = 16 };

static const sp_graph_plan *compile(const sp_graph *graph, const sp_plan_request *request,
                                    bool is_unfused)
{
    sp_plan_request asked = *request;
    asked.is_unfused = is_unfused;
    const sp_graph_plan *plan = NULL;
    CHECK_OK(sp__plan_compile(graph, &asked, &plan));
    if (plan != NULL) CHECK_OK(sp__plan_check(plan));
    return plan;
}

static void check_same_outputs(const sp_graph_plan *fused, const sp_graph_plan *apart,
                               const sp_array *inputs)
{
    sp_array got[MAX_PORTS] = {0}, want[MAX_PORTS] = {0};
    REQUIRE_OK(data_run_plan(fused, inputs, got));
    REQUIRE_OK(data_run_plan(apart, inputs, want));
    for (uint32_t i = 0; i < fused->output_count; i++) {
        CHECK_EQ_U64(got[i].bytes, want[i].bytes);
        CHECK_EQ_MEM(got[i].data, want[i].data, (size_t)want[i].bytes);
        sp__array_deinit(&got[i]);
        sp__array_deinit(&want[i]);
    }
}

/* Steps of the fused plan as "Gemm+Relu Tanh"; its outputs have the bits of the other plan. */
static void check_graph(const char *const *nodes, const char *const *outputs, const char *steps)
{
    const sp_graph *graph = load(nodes, outputs);
    REQUIRE(graph != NULL);
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {6, 4}}},
                                     {.dtype = SP_F32, .shape = {.rank = 4, .dims = {2, 4, 5, 6}}}};
    const sp_plan_request request = {.inputs = inputs, .input_count = 2};
    const sp_graph_plan *fused = compile(graph, &request, false),
                        *apart = compile(graph, &request, true);
    REQUIRE(fused != NULL && apart != NULL);
    char found[256] = "";
    for (uint32_t i = 0; i < fused->step_count; i++) {
        const size_t len = strlen(found);
        (void)snprintf(found + len, sizeof(found) - len, "%s%s", i > 0 ? " " : "",
                       fused->steps[i].op_name);
    }
    CHECK_EQ_STR(found, steps);
    data_random random = {62};
    sp_array x[2] = {data_floats(&random, &inputs[0].shape),
                     data_floats(&random, &inputs[1].shape)};
    check_same_outputs(fused, apart, x);
    for (int i = 0; i < 2; i++) sp__array_deinit(&x[i]);
    sp__plan_destroy(fused);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
}

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(every_activation_becomes_a_part_of_every_product)
{
    static const char *const products[][2] = {
        {"Gemm", "x w c"}, {"MatMul", "x w"}, {"Conv", "i p c"},         {"Conv", "i d"},
        {"Add", "x c"},    {"Sum", "x c"},    {"ConvTranspose", "i p c"}};
    static const char *const activations[] = {"Relu", "Sigmoid", "Tanh"};
    for (size_t p = 0; p < SP_COUNT_OF(products); p++) {
        for (size_t a = 0; a < SP_COUNT_OF(activations); a++) {
            char product[64], activation[64], steps[64];
            (void)snprintf(product, sizeof(product), "%s %s > a", products[p][0], products[p][1]);
            (void)snprintf(activation, sizeof(activation), "%s a > y", activations[a]);
            (void)snprintf(steps, sizeof(steps), "%s+%s", products[p][0], activations[a]);
            check_graph(LIST(product, activation), LIST("y"), steps);
        }
    }
}

TEST(x_times_its_sigmoid_is_one_activation)
{
    check_graph(LIST("Gemm x w c > a", "Sigmoid a > s", "Mul a s > y"), LIST("y"),
                "Gemm+Sigmoid+Mul");
    check_graph(LIST("Conv i d > a", "Sigmoid a > s", "Mul s a > b", "Relu b > y"), LIST("y"),
                "Conv+Sigmoid+Mul Relu");
    /* A policy network: three times, with other nodes in between and at the end. */
    check_graph(LIST("Sub x c > n", "Mul n c > m", "Gemm m w c > a", "Sigmoid a > s", "Mul a s > b",
                     "Gemm b w c > e", "Sigmoid e > f", "Mul f e > g", "Gemm g w > y"),
                LIST("y"), "Sub Mul Gemm+Sigmoid+Mul Gemm+Sigmoid+Mul Gemm");
}

/* In any order, and with what comes behind; c is [4], and one number. */
TEST(a_product_adds_what_its_result_is_added_to)
{
    check_graph(LIST("MatMul x w > a", "Add a c > y"), LIST("y"), "MatMul+Add");
    check_graph(LIST("MatMul x w > a", "Add c a > y"), LIST("y"), "MatMul+Add");
    check_graph(LIST("Gemm x w > a", "Add a x > y"), LIST("y"), "Gemm+Add");
    check_graph(LIST("MatMul x w > a", "Add a c > b", "Relu b > y"), LIST("y"), "MatMul+Add+Relu");
    check_graph(LIST("Exp x > e", "MatMul x w > a", "Add e a > b", "Sigmoid b > s", "Mul s b > y"),
                LIST("y"), "Exp MatMul+Add+Sigmoid+Mul");
    check_graph(LIST("MatMul x w > a", "Reshape a flat > f", "Reshape x flat > g", "Add g f > y"),
                LIST("y"), "MatMul+Add");
    /* Of two products, the second one. */
    check_graph(LIST("MatMul x w > a", "MatMul a w > b", "Add b a > y"), LIST("y"),
                "MatMul MatMul+Add");
    check_graph(LIST("MatMul x w > a", "Gemm x w > b", "Add a b > y"), LIST("y"),
                "MatMul Gemm+Add");
}

TEST(other_sums_of_products_stay)
{
    check_graph(LIST("Gemm x w c > a", "Add a c > y"), LIST("y"), "Gemm Add");
    check_graph(LIST("MatMul x w > a", "Sub a c > y"), LIST("y"), "MatMul Sub");
    check_graph(LIST("MatMul x w > a", "Relu a > b", "Add b c > y"), LIST("y"), "MatMul+Relu Add");
    check_graph(LIST("MatMul x w > a", "Add a c > y"), LIST("y", "a"), "MatMul Add");
    check_graph(LIST("MatMul x w > a", "Add a a > y"), LIST("y"), "MatMul Add");
    /* What is added is computed later, or is itself of the product. */
    check_graph(LIST("MatMul x w > a", "Exp x > e", "Add a e > y"), LIST("y"), "MatMul Exp Add");
    check_graph(LIST("MatMul x w > a", "Exp a > e", "Add a e > y"), LIST("y"), "MatMul Exp Add");
    /* One number for a row, or for all: the kernel reads rows of neighbours. */
    check_graph(LIST("MatMul x w > a", "ReduceSum x > one", "Add a one > y"), LIST("y"),
                "MatMul ReduceSum Add");
    check_graph(LIST("ReduceSum x > one", "MatMul x w > a", "Add a one > y"), LIST("y"),
                "ReduceSum MatMul Add");
    /* The product is repeated: [24] and [24, 1]. */
    check_graph(LIST("Exp x > e", "MatMul x w > a", "Reshape a flat > f", "Reshape e column > g",
                     "Add f g > y"),
                LIST("y"), "Exp MatMul Add");
    /* Several matrices. */
    check_graph(LIST("MatMul i q > a", "Add a c > y"), LIST("y"), "MatMul Add");
}

TEST(views_on_the_way_do_not_matter)
{
    check_graph(LIST("Gemm x w > a", "Reshape a flat > b", "Relu b > y"), LIST("y"), "Gemm+Relu");
    check_graph(LIST("Conv i p > a", "Flatten a > b", "Tanh b > t", "Identity t > y"), LIST("y"),
                "Conv+Tanh");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Reshape a flat > f", "Reshape s flat > t",
                     "Mul f t > y"),
                LIST("y"), "Gemm+Sigmoid+Mul");
}

/* The activation's input must have no other use. */
TEST(a_value_that_others_want_stays)
{
    check_graph(LIST("Gemm x w > a", "Relu a > b", "Add a b > y"), LIST("y"), "Gemm Relu Add");
    check_graph(LIST("Gemm x w > a", "Relu a > y"), LIST("y", "a"), "Gemm Relu");
    check_graph(LIST("Gemm x w > a", "Identity a > b", "Relu a > y"), LIST("y", "b"), "Gemm Relu");
    check_graph(LIST("Gemm x w > a", "Relu a > b", "Tanh a > y"), LIST("y", "b"), "Gemm Relu Tanh");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Mul a s > y"), LIST("y", "a"),
                "Gemm Sigmoid Mul");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Mul a s > y"), LIST("y", "s"),
                "Gemm Sigmoid Mul");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Mul a s > b", "Sub b a > y"), LIST("y"),
                "Gemm Sigmoid Mul Sub");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Mul a s > b", "Sub b s > y"), LIST("y"),
                "Gemm Sigmoid Mul Sub");
}

/* Similar patterns. */
TEST(other_steps_stay)
{
    check_graph(LIST("Gemm x w > a", "Exp a > y"), LIST("y"), "Gemm Exp");
    check_graph(LIST("MaxPool i > a", "Relu a > y"), LIST("y"), "MaxPool Relu");
    check_graph(LIST("Gemm x w > a", "Relu a > b", "Tanh b > y"), LIST("y"), "Gemm+Relu Tanh");
    check_graph(LIST("Gemm x w > a", "Transpose a > b", "Relu b > y"), LIST("y"),
                "Gemm Transpose Relu");
    check_graph(LIST("Relu x > y"), LIST("y"), "Relu");
    check_graph(LIST("Sigmoid x > s", "Mul x s > y"), LIST("y"), "Sigmoid Mul");
    /* The sigmoid of another value; and a square of the value. */
    check_graph(LIST("Gemm x w > a", "Sigmoid x > s", "Mul a s > y"), LIST("y"),
                "Gemm Sigmoid Mul");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Mul s s > y"), LIST("y"),
                "Gemm+Sigmoid Mul");
    check_graph(LIST("Gemm x w > a", "Tanh a > s", "Mul a s > y"), LIST("y"), "Gemm Tanh Mul");
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Add a s > y"), LIST("y"),
                "Gemm Sigmoid Add");
}

/* Steps that read or write part of a value; a product inside another op. */
TEST(ops_that_move_elements_stay_unless_they_are_views)
{
    check_graph(LIST("Gemm x w > a", "Unsqueeze a zero > b", "Relu b > y"), LIST("y"), "Gemm+Relu");
    check_graph(LIST("Gemm x w > a", "Slice a zero six > b", "Relu b > y"), LIST("y"), "Gemm+Relu");
    check_graph(LIST("Gemm x w > a", "Slice a zero two > b", "Relu b > y"), LIST("y"),
                "Gemm Slice Relu");
    check_graph(LIST("Gemm x w > a", "Gather a two > b", "Relu b > y"), LIST("y"),
                "Gemm Gather Relu");
    /* A copy, then updates of row 0. */
    check_graph(LIST("Gemm x w > a", "Unsqueeze zero zero > j", "Unsqueeze c zero > u",
                     "ScatterND a j u > b", "Relu b > y"),
                LIST("y"), "Gemm ScatterND ScatterND Relu");
    check_graph(LIST("Unsqueeze x zero > u", "LSTM u l l > a", "Tanh a > y"), LIST("y"),
                "LSTM LSTM Tanh");
    check_graph(LIST("Gemm x w > a", "Unsqueeze a zero > u", "Relu u > r", "LSTM r l l > y"),
                LIST("y"), "Gemm+Relu LSTM LSTM");
}

/* Elementwise kernels without fused activations, and a sum of several steps that all write one
 * value. */
TEST(other_elementwise_steps_stay)
{
    static const char *const ops[] = {"Max x c", "Sqrt x", "Pow x c", "PRelu x c"};
    static const char *const activations[] = {"Relu", "Sigmoid", "Tanh"};
    for (size_t i = 0; i < SP_COUNT_OF(ops); i++) {
        for (size_t a = 0; a < SP_COUNT_OF(activations); a++) {
            char first[64], second[64], steps[64];
            const int len = (int)strcspn(ops[i], " ");
            (void)snprintf(first, sizeof(first), "%s > a", ops[i]);
            (void)snprintf(second, sizeof(second), "%s a > y", activations[a]);
            (void)snprintf(steps, sizeof(steps), "%.*s %s", len, ops[i], activations[a]);
            check_graph(LIST(first, second), LIST("y"), steps);
        }
    }
    check_graph(LIST("Sum x c x > a", "Relu a > y"), LIST("y"), "Sum Sum Relu");
    check_graph(LIST("Mean x c > a", "Tanh a > y"), LIST("y"), "Mean Mean Tanh");
    check_graph(LIST("Max x c > a", "Sigmoid a > s", "Mul a s > y"), LIST("y"), "Max Sigmoid Mul");
    check_graph(LIST("Sum x c > a", "Sigmoid a > s", "Mul a s > y"), LIST("y"), "Sum+Sigmoid+Mul");
}

/* Each element times every sigmoid: [24] times [24, 1]. */
TEST(a_product_of_x_and_its_sigmoid_that_repeats_elements_stays)
{
    check_graph(LIST("Gemm x w > a", "Sigmoid a > s", "Reshape a flat > f", "Reshape s column > t",
                     "Mul f t > y"),
                LIST("y"), "Gemm Sigmoid Mul");
}

TEST(the_step_has_the_name_of_the_node_that_it_begins_with)
{
    const sp_graph *graph = load(LIST("MatMul x w > first", "Relu first > last"), LIST("last"));
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {6, 4}}},
                                     {.dtype = SP_F32, .shape = {.rank = 4, .dims = {2, 4, 5, 6}}}};
    const sp_plan_request request = {.inputs = inputs, .input_count = 2};
    const sp_graph_plan *plan = compile(graph, &request, false);
    REQUIRE(plan != NULL);
    REQUIRE_EQ_INT(plan->step_count, 1);
    CHECK_EQ_STR(plan->steps[0].node_name, "first");
    CHECK_EQ_STR(plan->steps[0].op_name, "MatMul+Relu");
    CHECK_EQ_U64(plan->steps[0].kernel, SP_KERNEL_ID_gemm_f32);
    CHECK_EQ_INT(plan->steps[0].bindings[2].where, SP_PLACE_OUTPUT);
    CHECK_EQ_U64(plan->arena_bytes, 0); /* no intermediate value remains */
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

/* A sum that may be written in place still is. */
TEST(a_fused_step_is_written_in_place_where_the_first_could_be)
{
    const sp_graph *graph =
        load(LIST("Exp x > e", "Add e c > a", "Relu a > b", "Exp b > y"), LIST("y"));
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {6, 4}}},
                                     {.dtype = SP_F32, .shape = {.rank = 4, .dims = {2, 4, 5, 6}}}};
    const sp_plan_request request = {.inputs = inputs, .input_count = 2};
    const sp_graph_plan *plan = compile(graph, &request, false);
    REQUIRE(plan != NULL);
    CHECK_EQ_INT(plan->step_count, 3);
    CHECK_EQ_U64(plan->arena_bytes, 128); /* 96, in steps of 64 */
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
}

TEST(overridden_weights_are_multiplied_in_the_fused_step_too)
{
    const sp_graph *graph = load(LIST("MatMul x w > a", "Tanh a > y"), LIST("y"));
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {6, 4}}},
                                     {.dtype = SP_F32, .shape = {.rank = 4, .dims = {2, 4, 5, 6}}}};
    const sp_plan_override override = {
        .index = 0, .input = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {4, 4}}}};
    const sp_plan_request request = {
        .inputs = inputs, .input_count = 2, .overrides = &override, .override_count = 1};
    const sp_graph_plan *fused = compile(graph, &request, false),
                        *apart = compile(graph, &request, true);
    REQUIRE(fused != NULL && apart != NULL);
    CHECK_EQ_INT(fused->step_count, 1);
    CHECK_EQ_INT(apart->step_count, 2);
    data_random random = {63};
    sp_array in[3] = {data_floats(&random, &inputs[0].shape),
                      data_floats(&random, &inputs[1].shape),
                      data_floats(&random, &override.input.shape)};
    check_same_outputs(fused, apart, in);
    for (int i = 0; i < 3; i++) sp__array_deinit(&in[i]);
    sp__plan_destroy(fused);
    sp__plan_destroy(apart);
    sp__graph_destroy(graph);
}

TEST(each_failing_allocation_is_reported_and_leaks_nothing)
{
    const sp_graph *graph =
        load(LIST("Gemm x w > a", "Sigmoid a > s", "Mul a s > b", "Gemm b w > e", "Relu e > y"),
             LIST("y"));
    const sp_plan_input inputs[2] = {{.dtype = SP_F32, .shape = {.rank = 2, .dims = {6, 4}}},
                                     {.dtype = SP_F32, .shape = {.rank = 4, .dims = {2, 4, 5, 6}}}};
    const sp_plan_request request = {.inputs = inputs, .input_count = 2};
    uint64_t failed = 0;
    for (uint64_t skip = 0;; skip++) {
        const sp_graph_plan *plan = NULL;
        sp_heap_fail_after(skip);
        const sp_status status = sp__plan_compile(graph, &request, &plan);
        const bool has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        if (plan != NULL) CHECK_EQ_INT(plan->step_count, 2);
        sp__plan_destroy(plan);
        if (!has_failed) break;
        failed++;
    }
    CHECK(failed > 3);
    sp__graph_destroy(graph);
}

/* ---- random graphs ---- */

enum { NODES = 25 };

/* Nodes of shape [4, 4], most of them fusible, some of them outputs. */
static writer random_graph(uint64_t seed)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Identity", "Mul",
                                      "Mul",  "Add",     "Sub",  "MatMul",   "MatMul"};
    data_random random = {seed};
    writer graph = {0}, value = make_value("v0", 1, dims_w, 2);
    write_message(&graph, GRAPH_INPUT_FIELD, &value);
    for (int i = 1; i <= NODES; i++) {
        const int a = i - 1 - (int)(data_next(&random) % (uint64_t)(i < 2 ? i : 2));
        const int b = i - 1 - (int)(data_next(&random) % (uint64_t)(i < 3 ? i : 3));
        const uint64_t op = data_next(&random) % SP_COUNT_OF(ops);
        char inputs[32], output[16];
        (void)snprintf(inputs, sizeof(inputs), op < 4 ? "v%d" : "v%d v%d", a, b);
        (void)snprintf(output, sizeof(output), "v%d", i);
        writer node = make_node(ops[op], inputs, output);
        write_message(&graph, GRAPH_NODE_FIELD, &node);
        if (data_next(&random) % 8 != 0 && i != NODES) continue;
        value = make_value(output, 0, NULL, -1);
        write_message(&graph, GRAPH_OUTPUT_FIELD, &value);
    }
    return graph;
}

TEST(fusing_never_changes_a_bit_of_a_random_graph)
{
    data_random random = {64};
    const sp_plan_input input = {.dtype = SP_F32, .shape = {.rank = 2, .dims = {4, 4}}};
    const sp_plan_request request = {.inputs = &input, .input_count = 1};
    sp_array x = data_floats(&random, &input.shape);
    const uint64_t count = test_count(20000, 500);
    uint64_t fewer = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        writer graph = random_graph(seed), model = make_model(&graph, 14);
        const sp_graph *loaded = NULL;
        REQUIRE_OK(sp__graph_load(model.bytes, model.len, &loaded));
        const sp_graph_plan *fused = compile(loaded, &request, false),
                            *apart = compile(loaded, &request, true);
        REQUIRE(fused != NULL && apart != NULL);
        CHECK(fused->step_count <= apart->step_count);
        fewer += apart->step_count - fused->step_count;
        if (fused->output_count <= MAX_PORTS) check_same_outputs(fused, apart, &x);
        sp__plan_destroy(fused);
        sp__plan_destroy(apart);
        sp__graph_destroy(loaded);
        writer_free(&model);
    }
    CHECK(fewer > count);
    test_note("%llu steps fewer in %llu graphs", (unsigned long long)fewer,
              (unsigned long long)count);
    sp__array_deinit(&x);
}

/* ---- real models ---- */

typedef struct model_steps {
    const char *name;
    uint32_t apart, fused;
} model_steps;

static const model_steps models[] = {
    {"blazeface_front_128", 89, 72},
    {"mnist_8", 10, 7},
    {"policy_go1", 14, 8},
    {"policy_g1", 14, 8},
    {"torch_linear", 1, 1},
    {"torch_mlp", 5, 3},
    {"torch_mha", 14, 3},
    {"torch_encoder", 39, 7},
};

static bool load_model(const char *name, const sp_graph **graph, sp_array inputs[MAX_PORTS])
{
    char path[DATA_PATH_BYTES];
    size_t len;
    if (!data_path(path, "models/%s/model.onnx", name)) return false;
    unsigned char *bytes = data_read(path, &len);
    CHECK_OK(sp__graph_load(bytes, len, graph));
    free(bytes);
    for (uint32_t i = 0; i < (*graph)->input_count; i++) {
        CHECK(data_path(path, "models/%s/test_data_set_0/input_%u.pb", name, i));
        bytes = data_read(path, &len);
        CHECK_OK(sp__onnx_tensor_load(bytes, len, &inputs[i]));
        free(bytes);
    }
    return true;
}

static void check_model(const model_steps *which, const sp_graph *graph, const sp_array *inputs)
{
    sp_plan_input wanted[MAX_PORTS] = {0};
    for (uint32_t i = 0; i < graph->input_count; i++) {
        wanted[i] = (sp_plan_input){.dtype = inputs[i].dtype, .shape = inputs[i].shape};
    }
    for (int isa = 0; isa < SP_CPU_ISA_COUNT; isa++) {
        const sp_kernel *kernels = sp__cpu_kernels((sp_cpu_isa)isa);
        if (kernels == NULL) continue;
        const sp_plan_request request = {
            .kernels = kernels, .inputs = wanted, .input_count = graph->input_count};
        const sp_graph_plan *fused = compile(graph, &request, false),
                            *apart = compile(graph, &request, true);
        REQUIRE(fused != NULL && apart != NULL);
        CHECK_EQ_INT(apart->step_count, which->apart);
        CHECK_EQ_INT(fused->step_count, which->fused);
        CHECK(fused->arena_bytes <= apart->arena_bytes);
        check_same_outputs(fused, apart, inputs);
        sp__plan_destroy(fused);
        sp__plan_destroy(apart);
    }
}

TEST(real_models_have_fewer_steps_and_the_same_bits)
{
    uint32_t checked = 0;
    for (size_t i = 0; i < SP_COUNT_OF(models); i++) {
        const sp_graph *graph = NULL;
        sp_array inputs[MAX_PORTS] = {0};
        if (!load_model(models[i].name, &graph, inputs)) continue;
        check_model(&models[i], graph, inputs);
        for (int k = 0; k < MAX_PORTS; k++) sp__array_deinit(&inputs[k]);
        sp__graph_destroy(graph);
        checked++;
    }
    if (checked == 0) SKIP("shared/data is not there (set STREAMPOOL_TEST_DATA)");
}

TEST_MAIN
