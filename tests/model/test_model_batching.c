/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the rows of a model are separable, through the public API, and every kind of invalid
 * call. */
#include <streampool/model.h>

#include <stdio.h>
#include <string.h>

#include "base/heap.h"
#include "partial_fixture.h"
#include "run_fixture.h"

static const sp_host_tensor one_row = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};

/* x and h are [1,4], k is one float that an input may override; y = (x + h) * k, z = (h, x). */
static sp_model pair_model(void)
{
    static const int64_t dims[] = {1, 4};
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    add_input(&graph, "h", ONNX_FLOAT, dims, 2);
    add_input(&graph, "k", ONNX_FLOAT, NULL, 0);
    partial_add_floats(&graph, "k", (const float[]){3}, -1);
    add_node(&graph, make_node("Add", "x h", "sum"));
    add_node(&graph, make_node("Mul", "sum k", "y"));
    add_node(&graph, partial_node_int("Concat", "h x", "z", "axis", 0));
    add_output(&graph, "y");
    add_output(&graph, "z");
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

static sp_model softmax_model(void)
{
    static const int64_t dims[] = {-1, 4};
    writer graph = {0};
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    add_node(&graph, partial_node_int("Softmax", "x", "y", "axis", 0));
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

/* ---- verdicts ---- */

TEST(rows_of_a_small_model_are_separable)
{
    const sp_model model = small_model(NULL);
    sp_model_batching batching;
    sp_batch_axis x, y;
    for (uint32_t rows = 2; rows < 100; rows += 13) {
        REQUIRE_OK(sp_model_get_batching(model, &one_row, 1, rows, &batching, &x, &y));
        CHECK(batching.is_separable);
        CHECK_EQ_STR(batching.reason, "");
        CHECK_EQ_STR(batching.node, "");
        CHECK_EQ_STR(batching.op, "");
        CHECK_EQ_STR(batching.message, "");
        CHECK(x.has_rows && y.has_rows);
        CHECK_EQ_INT(x.axis, 0);
        CHECK_EQ_INT(y.axis, 0);
        CHECK_EQ_U64(x.inner, 4);
        CHECK_EQ_U64(y.inner, 3);
    }
    CHECK_OK(sp_model_release(model));
}

/* The file fixes the batch at 1; z has the rows of h, then those of x. */
TEST(axes_are_those_of_the_ports_in_their_order)
{
    const sp_model model = pair_model();
    const sp_host_tensor inputs[3] = {{.name = "h", .dtype = SP_F32, .rank = 2, .shape = {1, 4}},
                                      {.name = "x", .dtype = SP_F32, .rank = 2, .shape = {1, 4}},
                                      {.name = "k", .dtype = SP_F32}};
    sp_model_batching batching;
    sp_batch_axis in[2], out[2];
    REQUIRE_OK(sp_model_get_batching(model, inputs, 3, 5, &batching, in, out));
    CHECK(batching.is_separable);
    for (uint32_t i = 0; i < 2; i++) CHECK(in[i].has_rows && in[i].axis == 0 && in[i].inner == 4);
    CHECK(out[0].has_rows && out[0].axis == 0 && out[0].inner == 4);
    CHECK(out[1].has_rows && out[1].axis == -1 && out[1].inner == 4);
    REQUIRE_OK(sp_model_get_batching(model, inputs, 2, 5, &batching, NULL, out));
    REQUIRE_OK(sp_model_get_batching(model, inputs, 2, 5, &batching, in, NULL));
    CHECK_OK(sp_model_release(model));
}

TEST(a_batch_of_a_file_for_one_row_is_still_refused)
{
    const sp_model model = pair_model();
    const sp_host_tensor two_rows = {.dtype = SP_F32, .rank = 2, .shape = {2, 4}};
    const sp_host_tensor inputs[2] = {two_rows, two_rows};
    sp_model_batching batching;
    sp_host_tensor outputs[2] = {0};
    CHECK_STATUS(sp_model_infer(model, inputs, 2, outputs, 2), SP_MISMATCH);
    CHECK_MESSAGE("the model expects 1 in dimension 0");
    CHECK_STATUS(sp_model_get_batching(model, inputs, 2, 2, &batching, NULL, NULL), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));
}

TEST(a_reason_names_node_and_op)
{
    const sp_model model = softmax_model();
    sp_model_batching batching;
    sp_batch_axis x = {.inner = 77}, y = {.inner = 77};
    REQUIRE_OK(sp_model_get_batching(model, &one_row, 1, 2, &batching, &x, &y));
    CHECK(!batching.is_separable);
    CHECK_EQ_STR(batching.reason, "it normalises along the batch axis");
    CHECK_EQ_STR(batching.node, "y");
    CHECK_EQ_STR(batching.op, "Softmax");
    CHECK_EQ_STR(batching.message, "");
    CHECK(x.inner == 77 && y.inner == 77); /* not written */
    const sp_host_tensor two_rows = {.dtype = SP_F32, .rank = 2, .shape = {2, 4}};
    REQUIRE_OK(sp_model_get_batching(model, &two_rows, 1, 2, &batching, NULL, NULL));
    CHECK(!batching.is_separable);
    CHECK_EQ_STR(batching.reason, "no input has a dimension of 1 that can have the rows");
    CHECK_EQ_STR(batching.node, "");
    CHECK_OK(sp_model_release(model));
}

TEST(a_batch_that_cannot_run_has_its_error_as_message)
{
    static const int64_t dims[] = {1, 4};
    writer graph = {0};
    sp_model model;
    sp_model_batching batching;
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    partial_add_floats(&graph, "w", (const float[]){1, 2, 3, 4}, 4);
    add_node(&graph, make_node("MatMul", "w x", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    /* Not even one row can run: an error, not a verdict. */
    CHECK_STATUS(sp_model_get_batching(model, &one_row, 1, 2, &batching, NULL, NULL), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));

    graph = (writer){0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    partial_add_floats(&graph, "w", (const float[]){1}, 1);
    add_node(&graph, make_node("MatMul", "w x", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    REQUIRE_OK(sp_model_get_batching(model, &one_row, 1, 2, &batching, NULL, NULL));
    CHECK(!batching.is_separable);
    CHECK_EQ_STR(batching.reason, "a larger batch is refused");
    CHECK_EQ_STR(batching.op, "MatMul");
    CHECK(strstr(batching.message, "node 'y' (MatMul)") != NULL);
    CHECK_OK(sp_model_release(model));
}

/* The rows that the call finds are those of a run. */
TEST(a_run_on_a_batch_has_the_bits_of_its_rows)
{
    enum { ROWS = 7 };
    const sp_model model = small_model(NULL);
    float x[ROWS * SMALL_IN], y[ROWS * SMALL_OUT], alone[SMALL_OUT];
    small_fill_rows(x, 0, ROWS);
    REQUIRE_OK(small_run_rows(model, x, ROWS, y));
    for (uint32_t i = 0; i < ROWS; i++) {
        REQUIRE_OK(small_run_rows(model, x + (size_t)i * SMALL_IN, 1, alone));
        CHECK_EQ_MEM(alone, y + (size_t)i * SMALL_OUT, sizeof alone);
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- invalid calls ---- */

static void expect_refused(sp_model model, const sp_host_tensor *inputs, uint32_t count,
                           uint32_t rows, sp_status status, const char *message)
{
    sp_model_batching batching;
    CHECK_STATUS(sp_model_get_batching(model, inputs, count, rows, &batching, NULL, NULL), status);
    CHECK_MESSAGE(message);
}

TEST(wrong_arguments_are_refused)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor wide = {.dtype = SP_F32, .rank = 2, .shape = {1, 5}};
    const sp_host_tensor named = {.name = "z", .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    expect_refused(model, NULL, 0, 2, SP_MISMATCH, "input 'x' is missing");
    expect_refused(model, NULL, 1, 2, SP_INVALID, "no inputs");
    expect_refused(model, &wide, 1, 2, SP_MISMATCH, "'x'");
    expect_refused(model, &named, 1, 2, SP_NOT_FOUND, "no input 'z'");
    expect_refused(model, &one_row, 1, 0, SP_INVALID, "a batch of 0 rows; expected at least 2");
    expect_refused(model, &one_row, 1, 1, SP_INVALID, "a batch of 1 rows; expected at least 2");
    expect_refused((sp_model){0}, &one_row, 1, 2, SP_INVALID, "the zero handle");
    CHECK_STATUS(sp_model_get_batching(model, &one_row, 1, 2, NULL, NULL, NULL), SP_INVALID);
    CHECK_MESSAGE("out is NULL");
    CHECK_OK(sp_model_release(model));
}

TEST(without_memory_there_is_no_verdict)
{
    const sp_model model = pair_model();
    const sp_host_tensor inputs[2] = {one_row, one_row};
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_model_batching batching;
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_get_batching(model, inputs, 2, 2, &batching, NULL, NULL);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- threads ---- */

typedef struct asking_threads {
    sp_model separable, mixed;
    sp_atomic_u32 wrong;
} asking_threads;

static void ask_often(void *arg, uint32_t index)
{
    asking_threads *all = arg;
    const sp_host_tensor inputs[2] = {one_row, one_row};
    for (uint32_t i = 0; i < 50; i++) {
        sp_model_batching a, b;
        sp_batch_axis in[2], out[2];
        const sp_status first =
            sp_model_get_batching(all->separable, inputs, 2, 2 + index % 5, &a, in, out);
        const sp_status second =
            sp_model_get_batching(all->mixed, inputs, 1, 2 + i % 5, &b, NULL, NULL);
        const bool is_right = first == SP_OK && second == SP_OK && a.is_separable &&
                              !b.is_separable && out[1].inner == 4;
        if (!is_right) sp_fetch_add_relaxed(&all->wrong, 1);
    }
}

TEST(any_thread_may_ask)
{
    asking_threads all = {.separable = pair_model(), .mixed = softmax_model()};
    test_threads(31, ask_often, &all);
    CHECK_EQ_U64(sp_load_relaxed(&all.wrong), 0);
    CHECK_OK(sp_model_release(all.separable));
    CHECK_OK(sp_model_release(all.mixed));
}

TEST_MAIN
