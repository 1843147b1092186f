/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs whose values determine the executed branch of an If, and shapes. */
#include <string.h>

#include "base/atomic.h"
#include "run_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9 };

static const int64_t dims_n4[] = {-1, 4};

/* ---- models ---- */

static void add_floats(writer *graph, const char *name, const float *data, int64_t count)
{
    writer tensor = make_tensor(name, ONNX_FLOAT, &count, 1, data, (size_t)count * sizeof *data);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* Frees both branches. */
static writer make_if(const char *condition, writer *then_branch, writer *else_branch,
                      const char *outputs)
{
    writer node = make_node("If", condition, outputs);
    add_attribute_graph(&node, "then_branch", then_branch);
    add_attribute_graph(&node, "else_branch", else_branch);
    return node;
}

/* One node whose output has this name in every branch. */
static writer make_branch(const char *op, const char *inputs)
{
    writer graph = {0};
    add_node(&graph, make_node(op, inputs, "result"));
    add_output(&graph, "result");
    return graph;
}

/* The inputs x [n, 4] and c, a bool. */
static writer begin_graph(void)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_input(&graph, "c", ONNX_BOOL, NULL, -1);
    return graph;
}

static sp_status load(writer *graph, sp_model *out)
{
    add_output(graph, "y");
    writer file = make_model(graph, 13);
    const sp_status status = sp_model_load_from_memory(file.bytes, file.len, NULL, out);
    writer_free(&file);
    return status;
}

/* y = c ? Relu(x) : Tanh(x) */
static sp_model two_branches(void)
{
    writer graph = begin_graph();
    writer then_branch = make_branch("Relu", "x");
    writer else_branch = make_branch("Tanh", "x");
    add_node(&graph, make_if("c", &then_branch, &else_branch, "y"));
    sp_model model = {0};
    CHECK_OK(load(&graph, &model));
    return model;
}

/* ---- runs ---- */

static const float x_data[8] = {-2, -1, -0.5f, 0, 0.5f, 1, 2, 3};

static sp_host_tensor tensor_x(void)
{
    return (sp_host_tensor){.name = "x",
                            .data = (void *)(uintptr_t)x_data,
                            .bytes = sizeof x_data,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {2, 4}};
}

static sp_host_tensor tensor_bool(const char *name, const bool *value)
{
    return (sp_host_tensor){
        .name = name, .data = (void *)(uintptr_t)value, .bytes = 1, .dtype = SP_BOOL};
}

static sp_status run(sp_model model, bool c, float y[8])
{
    const sp_host_tensor inputs[2] = {tensor_x(), tensor_bool("c", &c)};
    sp_host_tensor output = {.data = y, .capacity = 8 * sizeof *y};
    memset(y, 0xff, 8 * sizeof *y);
    return sp_model_run(model, inputs, 2, &output, 1);
}

/* The result of one op on x. */
static void run_op(const char *op, float y[8])
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_node(&graph, make_node(op, "x", "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    const sp_host_tensor x = tensor_x();
    sp_host_tensor output = {.data = y, .capacity = 8 * sizeof *y};
    CHECK_OK(sp_model_run(model, &x, 1, &output, 1));
    CHECK_OK(sp_model_release(model));
}

TEST(the_condition_chooses_the_branch)
{
    const sp_model model = two_branches();
    float relu[8];
    float tanh[8];
    float y[8];
    run_op("Relu", relu);
    run_op("Tanh", tanh);
    for (int round = 0; round < 2; round++) {
        CHECK_OK(run(model, true, y));
        CHECK_EQ_MEM(y, relu, sizeof y);
        CHECK_OK(run(model, false, y));
        CHECK_EQ_MEM(y, tanh, sizeof y);
    }
    CHECK_EQ_U64(model_info_of(model).plan_count, 2);
    sp_port port;
    CHECK_OK(sp_model_get_input(model, 0, &port));
    CHECK(!port.determines_shapes);
    CHECK_OK(sp_model_get_input(model, 1, &port));
    CHECK(port.determines_shapes);
    CHECK_OK(sp_model_release(model));
}

typedef struct choosers {
    sp_model model;
    float want[2][8];
    sp_atomic_u64 wrong;
} choosers;

static void choose(void *arg, uint32_t index)
{
    choosers *all = arg;
    const uint64_t rounds = test_count(1000, 30);
    for (uint64_t i = 0; i < rounds; i++) {
        float y[8];
        const bool c = (i + index) % 3 == 0;
        CHECK_OK(run(all->model, c, y));
        const void *want = all->want[c];
        const void *got = y;
        if (memcmp(got, want, sizeof y) != 0) sp_fetch_add_relaxed(&all->wrong, (uint64_t)1);
    }
}

TEST(threads_choose_different_branches_at_the_same_time)
{
    choosers all = {.model = two_branches()};
    run_op("Tanh", all.want[0]);
    run_op("Relu", all.want[1]);
    test_threads(31, choose, &all);
    CHECK_EQ_U64(sp_load_relaxed(&all.wrong), 0);
    CHECK_EQ_U64(model_info_of(all.model).plan_builds, 2);
    CHECK_OK(sp_model_release(all.model));
}

TEST(a_branch_sees_the_values_around_it_and_has_its_own)
{
    /* s = Sigmoid(x); c ? s + w : s * w, with a w in each branch */
    static const float then_w[4] = {1, 2, 3, 4};
    static const float else_w[4] = {-1, 0.5f, 2, 10};
    writer graph = begin_graph();
    add_node(&graph, make_node("Sigmoid", "x", "s"));
    writer then_branch = make_branch("Add", "s w");
    add_floats(&then_branch, "w", then_w, 4);
    writer else_branch = make_branch("Mul", "s w");
    add_floats(&else_branch, "w", else_w, 4);
    add_node(&graph, make_if("c", &then_branch, &else_branch, "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    float s[8] = {0};
    float y[8];
    run_op("Sigmoid", s);
    CHECK_OK(run(model, true, y));
    for (int i = 0; i < 8; i++) CHECK(y[i] == s[i] + then_w[i % 4]);
    CHECK_OK(run(model, false, y));
    for (int i = 0; i < 8; i++) CHECK(y[i] == s[i] * else_w[i % 4]);
    CHECK_OK(sp_model_release(model));
}

TEST(branches_stand_in_branches)
{
    /* c ? (d ? Relu(x) : Tanh(x)) : (d ? Sigmoid(x) : x) */
    writer graph = begin_graph();
    add_input(&graph, "d", ONNX_BOOL, NULL, -1);
    static const char *const ops[4] = {"Relu", "Tanh", "Sigmoid", "Identity"};
    writer branches[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        writer inner_then = make_branch(ops[2 * i], "x");
        writer inner_else = make_branch(ops[2 * i + 1], "x");
        add_node(&branches[i], make_if("d", &inner_then, &inner_else, "inner"));
        add_output(&branches[i], "inner");
    }
    add_node(&graph, make_if("c", &branches[0], &branches[1], "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    for (int i = 0; i < 4; i++) {
        const bool c = i < 2;
        const bool d = i % 2 == 0;
        const sp_host_tensor inputs[3] = {tensor_x(), tensor_bool("c", &c), tensor_bool("d", &d)};
        float want[8];
        float y[8];
        sp_host_tensor output = {.data = y, .capacity = sizeof y};
        run_op(ops[i], want);
        CHECK_OK(sp_model_run(model, inputs, 3, &output, 1));
        CHECK_EQ_MEM(y, want, sizeof y);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(what_is_wrong_in_a_branch_counts_only_if_it_is_taken)
{
    /* The else-branch adds vectors of 3 and 4 elements, all constant. */
    static const float data[4] = {0};
    writer graph = begin_graph();
    writer then_branch = make_branch("Relu", "x");
    writer else_branch = make_branch("Add", "a b");
    add_floats(&else_branch, "a", data, 3);
    add_floats(&else_branch, "b", data, 4);
    add_node(&graph, make_if("c", &then_branch, &else_branch, "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    float y[8];
    CHECK_OK(run(model, true, y));
    CHECK_STATUS(run(model, false, y), SP_MISMATCH);
    CHECK_MESSAGE("node 'result' (Add)");
    CHECK_OK(sp_model_release(model));
}

/* ---- shape-determining values ---- */

static sp_host_tensor tensor_sizes(int64_t sizes[2])
{
    return (sp_host_tensor){.name = "s",
                            .data = sizes,
                            .bytes = 2 * sizeof *sizes,
                            .dtype = SP_I64,
                            .rank = 1,
                            .shape = {2}};
}

TEST(an_input_may_decide_a_shape)
{
    static const int64_t two[] = {2};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_input(&graph, "s", ONNX_INT64, two, 1);
    add_node(&graph, make_node("Reshape", "x s", "r"));
    add_node(&graph, make_node("Relu", "r", "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    int64_t sizes[3][2] = {{4, 2}, {1, 8}, {3, 2}};
    for (int i = 0; i < 2; i++) {
        const sp_host_tensor inputs[2] = {tensor_x(), tensor_sizes(sizes[i])};
        float y[8];
        sp_host_tensor output = {.data = y, .capacity = sizeof y};
        CHECK_OK(sp_model_run(model, inputs, 2, &output, 1));
        CHECK_EQ_INT(output.shape[0], sizes[i][0]);
        CHECK_EQ_INT(output.shape[1], sizes[i][1]);
    }
    CHECK_EQ_U64(model_info_of(model).plan_count, 2);

    sp_host_tensor inputs[2] = {tensor_x(), tensor_sizes(sizes[2])};
    sp_host_tensor output = {0};
    CHECK_STATUS(sp_model_infer(model, inputs, 2, &output, 1), SP_MISMATCH);
    inputs[1].data = sizes[0];
    CHECK_OK(sp_model_infer(model, inputs, 2, &output, 1));
    CHECK_EQ_INT(output.shape[0], 4);
    inputs[1].data = NULL; /* the shape depends on missing values */
    CHECK_STATUS(sp_model_infer(model, inputs, 2, &output, 1), SP_UNSUPPORTED);
    CHECK_OK(sp_model_release(model));
}

TEST(an_input_may_decide_how_often_x_is_repeated)
{
    static const int64_t three[] = {3};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_n4, 2);
    add_input(&graph, "s", ONNX_INT64, three, 1);
    add_node(&graph, make_node("Expand", "x s", "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    for (int64_t times = 1; times <= 3; times++) {
        const int64_t sizes[3] = {times, 2, 1};
        sp_host_tensor inputs[2] = {tensor_x(), tensor_sizes((int64_t *)(uintptr_t)sizes)};
        inputs[1].shape[0] = 3;
        inputs[1].bytes = sizeof sizes;
        float y[24];
        sp_host_tensor output = {.data = y, .capacity = sizeof y};
        CHECK_OK(sp_model_run(model, inputs, 2, &output, 1));
        CHECK_EQ_INT(output.rank, 3);
        CHECK_EQ_INT(output.shape[0], times);
        for (int64_t i = 0; i < times; i++) CHECK_EQ_MEM(y + i * 8, x_data, sizeof x_data);
    }
    CHECK_OK(sp_model_release(model));
}

/* Dropout may drop nothing, which an input determines. */
TEST(an_input_may_decide_whether_an_op_is_supported)
{
    writer graph = begin_graph();
    add_node(&graph, make_node("Dropout", "x - c", "y"));
    sp_model model;
    REQUIRE_OK(load(&graph, &model));
    float y[8];
    CHECK_OK(run(model, false, y));
    CHECK_EQ_MEM(y, x_data, sizeof x_data);
    CHECK_STATUS(run(model, true, y), SP_UNSUPPORTED);
    CHECK_MESSAGE("Dropout in training mode");
    CHECK_OK(sp_model_release(model));
}

/* ---- refusals ---- */

static void set_bools(sp_host_tensor *tensor, int64_t count)
{
    tensor->rank = 1;
    tensor->shape[0] = count;
    tensor->bytes = (uint64_t)count;
}

TEST(a_condition_that_is_no_single_bool_is_refused)
{
    const sp_model model = two_branches();
    static const bool many[1024] = {true};
    sp_host_tensor inputs[2] = {tensor_x(), tensor_bool("c", many)};
    float y[8];
    sp_host_tensor output = {.data = y, .capacity = sizeof y};
    set_bools(&inputs[1], 0);
    CHECK_STATUS(sp_model_run(model, inputs, 2, &output, 1), SP_MISMATCH);
    set_bools(&inputs[1], 2);
    CHECK_STATUS(sp_model_run(model, inputs, 2, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("expected one element");
    set_bools(&inputs[1], 1024); /* more than the limit of shape-determining inputs */
    CHECK_STATUS(sp_model_run(model, inputs, 2, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("the condition 'c' of the If around it is bool of shape [1024]");
    CHECK_OK(sp_model_release(model));
}

/* An If whose else-branch is `branch`; the refusal's message contains `part`. */
static void check_refused(writer *branch, const char *part)
{
    writer graph = begin_graph();
    writer then_branch = make_branch("Relu", "x");
    add_node(&graph, make_if("c", &then_branch, branch, "y"));
    sp_model model;
    CHECK_STATUS(load(&graph, &model), SP_CORRUPT);
    CHECK_MESSAGE(part);
}

TEST(branches_that_do_not_fit_are_refused)
{
    writer branch = make_branch("Tanh", "x");
    add_input(&branch, "z", ONNX_FLOAT, dims_n4, 2);
    check_refused(&branch, "else_branch has 1 inputs and 1 outputs, wanted 0 and 1");
    branch = make_branch("Tanh", "x");
    add_output(&branch, "x");
    check_refused(&branch, "else_branch has 0 inputs and 2 outputs, wanted 0 and 1");
    branch = make_branch("Tanh", "nothing");
    check_refused(&branch, "uses 'nothing'");
    branch = (writer){0};
    add_node(&branch, make_node("Tanh", "x", "t"));
    add_output(&branch, "elsewhere");
    check_refused(&branch, "nothing produces output 'elsewhere' of a branch");
    branch = make_branch("Tanh", "x");
    add_node(&branch, make_node("Relu", "x", "result"));
    check_refused(&branch, "two values are named 'result'");

    writer graph = begin_graph();
    writer only = make_branch("Relu", "x");
    writer node = make_node("If", "c", "y");
    add_attribute_graph(&node, "then_branch", &only);
    add_node(&graph, node);
    sp_model model;
    CHECK_STATUS(load(&graph, &model), SP_CORRUPT);
    CHECK_MESSAGE("attribute 'else_branch' is missing");
}

TEST(what_a_branch_names_is_not_seen_outside)
{
    writer graph = begin_graph();
    writer then_branch = make_branch("Relu", "x");
    writer else_branch = make_branch("Tanh", "x");
    add_node(&graph, make_if("c", &then_branch, &else_branch, "z"));
    add_node(&graph, make_node("Relu", "result", "y"));
    sp_model model;
    CHECK_STATUS(load(&graph, &model), SP_CORRUPT);
    CHECK_MESSAGE("uses 'result', which nothing before it produces");
}

TEST_MAIN
