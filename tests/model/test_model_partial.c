/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and branches that depend on values computed by the model. */
#include <fenv.h>
#include <string.h>
#include <sys/resource.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "partial_fixture.h"

#define LONG 200 /* floats: larger than the limit of shape-determining values in a plan's key */

static const int64_t any_dims[2] = {-1, -1};

/* LONG floats, `ones` of which are not 0, spread. */
static void fill_sparse(float *x, int64_t ones)
{
    memset(x, 0, LONG * sizeof *x);
    for (int64_t i = 0; i < ones; i++) x[i * (LONG / (ones > 0 ? ones : 1))] = (float)(i + 1);
}

/* ---- computed shapes ---- */

/* The nonzero elements of x, doubled: NonZero determines the number of rows of Gather. */
static sp_model sparse_model(const sp_model_options *options)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Add", "values values", "y"));
    add_node(&graph, make_node("Shape", "values", "count"));
    add_output(&graph, "y");
    add_output(&graph, "count");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

static void check_sparse(sp_model model, int64_t ones)
{
    float x[LONG];
    float y[LONG];
    int64_t count = -1;
    fill_sparse(x, ones);
    const sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor outputs[2] = {partial_room("y", y, sizeof y),
                                 partial_room("count", &count, sizeof count)};
    CHECK_OK(sp_model_run(model, &input, 1, outputs, 2));
    CHECK_EQ_INT(outputs[0].rank, 1);
    CHECK_EQ_INT(outputs[0].shape[0], ones);
    CHECK_EQ_U64(outputs[0].bytes, (uint64_t)ones * sizeof *y);
    CHECK_EQ_INT(count, ones);
    for (int64_t i = 0; i < ones; i++) CHECK(y[i] == 2 * (float)(i + 1));
}

TEST(what_non_zero_finds_decides_the_shapes_after_it)
{
    const sp_model model = sparse_model(NULL);
    static const int64_t counts[] = {3, 0, 1, 50, 3, LONG};
    for (size_t i = 0; i < SP_COUNT_OF(counts); i++) check_sparse(model, counts[i]);
    const sp_model_info info = partial_info(model);
    CHECK_EQ_U64(info.runs, 6);
    CHECK(info.partial_plan_count > 0);
    CHECK_EQ_U64(info.plan_count, 6); /* the first partial plan, and one for each count after it */
    CHECK_OK(sp_model_release(model));
}

TEST(other_values_of_the_same_shapes_need_no_other_plans)
{
    const sp_model model = sparse_model(NULL);
    check_sparse(model, 7);
    const uint64_t builds = partial_info(model).plan_builds;
    float x[LONG];
    float y[LONG];
    for (int round = 0; round < 20; round++) {
        fill_sparse(x, 0);
        for (int i = 0; i < 7; i++) x[(round + 1) * (i + 1)] = (float)round + 0.5f;
        const sp_host_tensor input = partial_floats(NULL, x, LONG);
        sp_host_tensor output = partial_room("y", y, sizeof y);
        CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
        CHECK_EQ_INT(output.shape[0], 7);
    }
    CHECK_EQ_U64(partial_info(model).plan_builds, builds);
    CHECK_OK(sp_model_release(model));
}

TEST(a_bound_of_two_plans_is_kept_while_shapes_change)
{
    const sp_model model = sparse_model(&(sp_model_options){.max_plans = 2});
    for (int64_t ones = 0; ones < 12; ones++) check_sparse(model, ones);
    CHECK(partial_info(model).plan_count <= 2);
    CHECK(partial_info(model).plan_evictions > 0);
    CHECK_OK(sp_model_release(model));
}

TEST(infer_runs_what_it_cannot_know_otherwise)
{
    const sp_model model = sparse_model(NULL);
    float x[LONG];
    fill_sparse(x, 5);
    sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor outputs[2] = {0};
    CHECK_OK(sp_model_infer(model, &input, 1, outputs, 2));
    CHECK_EQ_INT(outputs[0].shape[0], 5);
    CHECK_EQ_U64(outputs[0].bytes, 20);
    CHECK_EQ_INT(outputs[1].dtype, SP_I64);
    input.data = NULL;
    CHECK_STATUS(sp_model_infer(model, &input, 1, outputs, 2), SP_UNSUPPORTED);
    CHECK_MESSAGE("input 'x' has no data");
    CHECK_OK(sp_model_release(model));
}

TEST(an_output_that_turns_out_too_large_is_refused_with_its_size)
{
    const sp_model model = sparse_model(NULL);
    float x[LONG];
    float y[4];
    fill_sparse(x, 5);
    const sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor output = partial_room("y", y, sizeof y);
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("output 'y' is f32 of shape [5] and needs 20 bytes; its capacity is 16");
    output = partial_room("z", y, sizeof y);
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_NOT_FOUND);
    CHECK_OK(sp_model_release(model));
}

/* One op whose size is computed from x: n = the number of nonzero elements of x, at least 1. x is
 * large enough that its values are not part of the key. */
static sp_model sized_model(const char *op, const char *inputs, const char *outputs)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(&graph, "zero", (const int64_t[]){0}, -1);
    partial_add_ints(&graph, "one", (const int64_t[]){1}, -1);
    partial_add_ints(&graph, "zeros", (const int64_t[]){0}, 1);
    partial_add_ints(&graph, "list", (const int64_t[]){1}, 1);
    partial_add_floats(&graph, "three", (const float[]){3, 2, 1}, 3);
    add_node(&graph, make_node("Sign", "x", "sign"));
    add_node(&graph, partial_node_int("ReduceSum", "sign", "sum", "keepdims", 0));
    add_node(&graph, partial_node_int("Cast", "sum", "n", "to", ONNX_INT64));
    add_node(&graph, make_node("Reshape", "n list", "ns"));
    add_node(&graph, partial_node_int("Concat", "ns list", "n_by_1", "axis", 0));
    add_node(&graph, make_node(op, inputs, outputs));
    add_output(&graph, "y");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

TEST(sizes_of_every_kind_may_be_computed)
{
    static const struct {
        const char *op, *inputs, *outputs;
        int64_t per_n; /* elements of y per n */
    } cases[] = {
        {"Range", "zero n one", "y", 1},    {"ConstantOfShape", "ns", "y", 1},
        {"Expand", "three n_by_1", "y", 3}, {"Tile", "three ns", "y", 3},
        {"TopK", "x ns", "y places", 1},    {"Slice", "x zeros ns", "y", 1},
    };
    float x[LONG];
    float y[3 * LONG];
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const sp_model model = sized_model(cases[i].op, cases[i].inputs, cases[i].outputs);
        for (int64_t n = 1; n <= 20; n += 19) {
            fill_sparse(x, n);
            const sp_host_tensor input = partial_floats(NULL, x, LONG);
            sp_host_tensor output = partial_room("y", y, sizeof y);
            CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
            const uint64_t count = output.bytes / sp_dtype_bytes(output.dtype);
            CHECK_EQ_U64(count, (uint64_t)(cases[i].per_n * n));
        }
        CHECK_OK(sp_model_release(model));
    }
}

/* x [rows, 512] as [n, rows * 512 / n], with n computed, then doubled: too much work to be done
 * between plans, so n becomes part of the next plan's key. */
TEST(sizes_of_large_values_become_known_to_the_next_plan)
{
    enum { ROWS = 600, COLUMNS = 512, COUNT = ROWS * COLUMNS };
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    partial_add_ints(&graph, "rest", (const int64_t[]){-1}, 1);
    partial_add_ints(&graph, "list", (const int64_t[]){1}, 1);
    add_node(&graph, partial_node_int("ReduceMax", "x", "max", "keepdims", 0));
    add_node(&graph, partial_node_int("Cast", "max", "n", "to", ONNX_INT64));
    add_node(&graph, make_node("Reshape", "n list", "ns"));
    add_node(&graph, partial_node_int("Concat", "ns rest", "shape", "axis", 0));
    add_node(&graph, make_node("Reshape", "x shape", "reshaped"));
    add_node(&graph, make_node("Add", "reshaped reshaped", "y"));
    add_output(&graph, "y");
    sp_model model = {0};
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    float *x = sp_calloc(COUNT, sizeof *x);
    float *y = sp_calloc(COUNT, sizeof *y);
    REQUIRE(x != NULL && y != NULL);
    for (int round = 0; round < 4; round++) {
        const int64_t n = round % 2 == 0 ? 8 : 300;
        x[77] = (float)n;
        sp_host_tensor input = partial_floats(NULL, x, ROWS);
        input.rank = 2;
        input.shape[1] = COLUMNS;
        input.bytes = COUNT * sizeof *x;
        sp_host_tensor output = partial_room("y", y, COUNT * sizeof *y);
        CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
        CHECK_EQ_INT(output.shape[0], n);
        CHECK_EQ_INT(output.shape[1], COUNT / n);
        CHECK(y[77] == 2 * (float)n && y[78] == 0);
    }
    CHECK_EQ_U64(partial_info(model).plan_builds, 3);
    sp_free(x);
    sp_free(y);
    CHECK_OK(sp_model_release(model));
}

/* n / 0.3 elements for n = 6: slightly more than 20. */
TEST(computed_sizes_do_not_depend_on_the_rounding_of_the_calling_thread)
{
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    const double zero = 0, third = 0.3;
    float x[LONG];
    double y[LONG];
    writer graph = {0};
    sp_model model = {0};
    writer tensors[2] = {make_tensor("zero", ONNX_DOUBLE, NULL, 0, &zero, 8),
                         make_tensor("third", ONNX_DOUBLE, NULL, 0, &third, 8)};
    for (int i = 0; i < 2; i++) write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensors[i]);
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    add_node(&graph, partial_node_int("ReduceMax", "x", "most", "keepdims", 0));
    add_node(&graph, partial_node_int("Cast", "most", "n", "to", ONNX_DOUBLE));
    add_node(&graph, make_node("Range", "zero n third", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    fill_sparse(x, 6);
    for (size_t i = 0; i < SP_COUNT_OF(roundings); i++) {
        const sp_host_tensor input = partial_floats(NULL, x, LONG);
        sp_host_tensor output = partial_room("y", y, sizeof y);
        CHECK_EQ_INT(fesetround(roundings[i]), 0);
        const sp_status status = sp_model_run(model, &input, 1, &output, 1);
        fesetround(FE_TONEAREST);
        CHECK_OK(status);
        CHECK_EQ_INT(output.shape[0], 20);
    }
    CHECK_OK(sp_model_release(model));
}

static long most_kilobytes(void)
{
    struct rusage usage;
    CHECK_EQ_INT(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* 64 bytes for each of x's: far more than the run may keep, and refused before allocation. */
TEST(a_value_that_turns_out_too_large_takes_no_memory)
{
    enum { COUNT = 2 << 20 };
    int64_t y;
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_BOOL, NULL, -1);
    add_node(&graph, make_node("NonZero", "x", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    bool *x = sp_malloc(COUNT);
    REQUIRE(x != NULL);
    memset(x, 1, COUNT);
    sp_host_tensor input = {.name = "x", .data = x, .bytes = COUNT, .dtype = SP_BOOL, .rank = 8};
    for (int i = 0; i < 8; i++) input.shape[i] = i < 7 ? 1 : COUNT;
    sp_host_tensor output = partial_room("y", &y, sizeof y);
    const long before = most_kilobytes();
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_EXHAUSTED);
    CHECK_MESSAGE("STREAMPOOL_PARTIAL_MEMORY allows 4194304");
    CHECK(most_kilobytes() - before < 64 << 10);
    sp_free(x);
    CHECK_OK(sp_model_release(model));
}

/* ---- branches ---- */

/* y = sum(x) > 0 ? Relu(x) + c : Neg(x), with c from an input that both conditions share */
static sp_model branch_model(void)
{
    writer graph = {0};
    writer then_branch = {0};
    writer else_branch = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(&graph, "nothing", (const float[]){0}, -1);
    add_node(&graph, partial_node_int("ReduceSum", "x", "sum", "keepdims", 0));
    add_node(&graph, make_node("Greater", "sum nothing", "is_more"));
    add_node(&graph, make_node("Tanh", "x", "t"));
    add_node(&then_branch, make_node("Relu", "t", "r"));
    add_node(&then_branch, make_node("Add", "r sum", "result"));
    add_output(&then_branch, "result");
    add_node(&else_branch, make_node("Neg", "t", "result"));
    add_output(&else_branch, "result");
    add_node(&graph, partial_if("is_more", "chosen", &then_branch, &else_branch));
    add_node(&graph, make_node("Abs", "chosen", "y"));
    add_output(&graph, "y");
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

static void run_branch(sp_model model, float first, float *y)
{
    float x[LONG] = {first};
    const sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor output = partial_room("y", y, LONG * sizeof *y);
    memset(y, 0xff, LONG * sizeof *y);
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
}

TEST(a_computed_condition_chooses_the_branch)
{
    const sp_model model = branch_model();
    float y[LONG];
    for (int round = 0; round < 2; round++) {
        run_branch(model, 2, y);
        CHECK(y[0] > 2.96f && y[0] < 2.97f); /* tanh(2) + 2 */
        CHECK(y[1] == 2);
        run_branch(model, -2, y);
        CHECK(y[0] > 0.96f && y[0] < 0.97f);
        CHECK(y[1] == 0);
    }
    CHECK_EQ_U64(partial_info(model).plan_builds, 3); /* before it, and for each branch */
    CHECK_OK(sp_model_release(model));
}

/* The branch that is not taken would fail if it were computed. */
TEST(only_the_chosen_branch_is_computed)
{
    writer graph = {0};
    writer then_branch = {0};
    writer else_branch = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(&graph, "nothing", (const float[]){0}, -1);
    partial_add_ints(&graph, "seven", (const int64_t[]){7}, 1);
    add_node(&graph, partial_node_int("ReduceSum", "x", "sum", "keepdims", 0));
    add_node(&graph, make_node("Greater", "sum nothing", "is_more"));
    add_output(&then_branch, "x"); /* a branch without nodes */
    add_node(&else_branch, make_node("Reshape", "x seven", "broken"));
    add_output(&else_branch, "broken");
    add_node(&graph, partial_if("is_more", "y", &then_branch, &else_branch));
    add_output(&graph, "y");
    sp_model model = {0};
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    float x[LONG] = {1};
    float y[LONG];
    const sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor output = partial_room("y", y, sizeof y);
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    CHECK_EQ_MEM(y, x, sizeof x);
    x[0] = -1;
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("node 'broken' (Reshape)");
    CHECK_OK(sp_model_release(model));
}

TEST(an_error_after_a_partial_plan_names_node_and_op)
{
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(&graph, "four", (const float[]){1, 2, 3, 4}, 4);
    add_node(&graph, make_node("NonZero", "x", "found"));
    add_node(&graph, partial_node_int("Cast", "found", "f", "to", ONNX_FLOAT));
    add_node(&graph, make_node("Add", "f four", "y"));
    add_output(&graph, "y");
    sp_model model = {0};
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    float x[LONG];
    float y[LONG];
    fill_sparse(x, 4);
    const sp_host_tensor input = partial_floats(NULL, x, LONG);
    sp_host_tensor output = partial_room("y", y, sizeof y);
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    fill_sparse(x, 3);
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_MISMATCH);
    CHECK_MESSAGE("node 'y' (Add): ");
    CHECK_OK(sp_model_release(model));
}

/* An overridden default, and constants folded from it, must not be used. */
TEST(overridden_defaults_hold_in_every_partial_plan)
{
    writer graph = {0};
    const int64_t one = 1;
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    add_input(&graph, "w", ONNX_FLOAT, &one, 1);
    partial_add_floats(&graph, "w", (const float[]){10}, 1);
    partial_add_ints(&graph, "flat", (const int64_t[]){-1}, 1);
    add_node(&graph, make_node("Neg", "w", "minus"));
    add_node(&graph, make_node("NonZero", "x", "found"));
    add_node(&graph, make_node("Reshape", "found flat", "places"));
    add_node(&graph, make_node("Gather", "x places", "values"));
    add_node(&graph, make_node("Mul", "values w", "product"));
    add_node(&graph, make_node("Add", "product minus", "y"));
    add_output(&graph, "y");
    add_output(&graph, "minus");
    sp_model model = {0};
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    float x[LONG];
    float y[LONG];
    float minus;
    const float w = 100;
    fill_sparse(x, 3);
    const sp_host_tensor inputs[2] = {partial_floats("x", x, LONG), partial_floats("w", &w, 1)};
    sp_host_tensor outputs[2] = {partial_room("y", y, sizeof y), partial_room("minus", &minus, 4)};
    CHECK_OK(sp_model_run(model, inputs, 1, outputs, 2));
    CHECK(y[0] == 0 && y[1] == 10 && y[2] == 20 && minus == -10);
    outputs[0] = partial_room("y", y, sizeof y);
    CHECK_OK(sp_model_run(model, inputs, 2, outputs, 2));
    CHECK(y[0] == 0 && y[1] == 100 && y[2] == 200 && minus == -100);
    CHECK_OK(sp_model_release(model));
}

/* ---- threads, memory ---- */

typedef struct branch_load {
    sp_model model;
    float want[2][LONG];
    sp_atomic_u64 wrong;
} branch_load;

static void run_branches(void *arg, uint32_t index)
{
    branch_load *load = arg;
    const uint64_t rounds = test_count(500, 20);
    for (uint64_t i = 0; i < rounds; i++) {
        float y[LONG];
        const uint32_t which = (uint32_t)(i + index) % 2;
        run_branch(load->model, which == 0 ? 2 : -2, y);
        const void *want = load->want[which];
        const void *got = y;
        if (memcmp(got, want, sizeof y) != 0) sp_fetch_add_relaxed(&load->wrong, (uint64_t)1);
    }
}

TEST(thirty_one_threads_get_the_bits_of_one)
{
    branch_load load = {.model = branch_model()};
    run_branch(load.model, 2, load.want[0]);
    run_branch(load.model, -2, load.want[1]);
    test_threads(31, run_branches, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.wrong), 0);
    CHECK_OK(sp_model_release(load.model));
}

TEST(an_allocation_that_fails_leaks_nothing)
{
    bool is_done = false;
    for (uint64_t skip = 0; !is_done; skip++) {
        const sp_model model = sparse_model(NULL);
        float x[LONG];
        float y[LONG];
        fill_sparse(x, 9);
        const sp_host_tensor input = partial_floats(NULL, x, LONG);
        sp_host_tensor output = partial_room("y", y, sizeof y);
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_run(model, &input, 1, &output, 1);
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
        CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
        CHECK(y[8] == 18);
        CHECK_OK(sp_model_release(model));
    }
}

TEST_MAIN
