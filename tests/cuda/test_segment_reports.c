/* SPDX-License-Identifier: Apache-2.0 */
/* Indices out of range, and wrong lengths of sequences, on a device whose kernels do not fail: the
 * run does, with the message of the cpu, and no other run. */
#include <streampool/future.h>

#include <string.h>

#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_INT32 = 6, ONNX_INT64 = 7, SIZE = 5, COUNT = 3 };

/* x[i], "g". */
static writer gather_graph(void)
{
    static const int64_t dims_x[] = {SIZE}, dims_i[] = {COUNT};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_x, 1);
    add_input(&graph, "i", ONNX_INT64, dims_i, 1);
    add_node(&graph, make_node("Gather", "x i", "g"));
    return graph;
}

/* The model whose last node computes "y". */
static sp_model load_graph(writer *graph, const sp_model_options *options)
{
    add_output(graph, "y");
    writer file = make_model(graph, 18);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, options, &model));
    writer_free(&file);
    return model;
}

/* y = Relu(Gather(x, i)) */
static sp_model load_gather(const sp_model_options *options)
{
    writer graph = gather_graph();
    add_node(&graph, make_node("Relu", "g", "y"));
    return load_graph(&graph, options);
}

static const float data[SIZE] = {1, 2, 3, 4, 5};

static void make_inputs(const int64_t *indices, sp_host_tensor inputs[2])
{
    inputs[0] = (sp_host_tensor){.data = (void *)(uintptr_t)data,
                                 .bytes = sizeof data,
                                 .dtype = SP_F32,
                                 .rank = 1,
                                 .shape = {SIZE}};
    inputs[1] = (sp_host_tensor){.data = (void *)(uintptr_t)indices,
                                 .bytes = COUNT * sizeof *indices,
                                 .dtype = SP_I64,
                                 .rank = 1,
                                 .shape = {COUNT}};
}

static sp_status run(sp_model model, const int64_t *indices, float *y)
{
    sp_host_tensor inputs[2];
    make_inputs(indices, inputs);
    sp_host_tensor output = {.data = y, .capacity = COUNT * sizeof *y};
    return sp_model_run(model, inputs, 2, &output, 1);
}

static sp_status submit(sp_model model, const int64_t *indices, float *y)
{
    sp_host_tensor inputs[2];
    make_inputs(indices, inputs);
    sp_host_tensor output = {.data = y, .capacity = COUNT * sizeof *y};
    sp_future future;
    CHECK_OK(sp_model_submit(model, inputs, 2, &output, 1, &future));
    const sp_status status = sp_future_wait(future);
    CHECK_OK(sp_future_release(future));
    return status;
}

static const int64_t good[COUNT] = {4, -5, 2}, high[COUNT] = {0, 9, 1}, low[COUNT] = {0, 1, -6};

TEST(a_run_with_an_index_out_of_range_fails_and_the_next_one_does_not)
{
    const sp_device device = segment_begin();
    const sp_model model = load_gather(&(sp_model_options){.device = device});
    float y[COUNT];
    for (int round = 0; round < 3; round++) {
        CHECK_OK(run(model, good, y));
        CHECK(y[0] == 5 && y[1] == 1 && y[2] == 3);
        CHECK_STATUS(run(model, high, y), SP_INVALID);
        CHECK_MESSAGE("index 9 is out of range for a dimension of 5");
        CHECK_MESSAGE("(Gather");
        CHECK_STATUS(run(model, low, y), SP_INVALID);
        CHECK_MESSAGE("index -6 is out of range for a dimension of 5");
    }
    sp_model_cpu_op op;
    if (segment_is_cuda()) CHECK_STATUS(sp_model_get_cpu_op(model, 0, &op), SP_NOT_FOUND);
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST(a_submitted_run_with_an_index_out_of_range_fails_and_the_next_one_does_not)
{
    const sp_device device = segment_begin();
    const sp_model model = load_gather(&(sp_model_options){.device = device});
    float y[COUNT];
    for (int round = 0; round < 3; round++) {
        CHECK_STATUS(submit(model, high, y), SP_INVALID);
        CHECK_MESSAGE("index 9 is out of range for a dimension of 5");
        CHECK_OK(submit(model, good, y));
        CHECK(y[0] == 5 && y[1] == 1 && y[2] == 3);
    }
    CHECK_OK(sp_model_release(model));
    segment_end();
}

/* y = GatherElements(Gather(x, i), j), the second of them on the cpu, which fails itself. */
static sp_model load_pair(sp_device device)
{
    static const int64_t dims_j[] = {COUNT};
    writer graph = gather_graph();
    add_input(&graph, "j", ONNX_INT64, dims_j, 1);
    add_node(&graph, make_node("GatherElements", "g j", "y"));
    return load_graph(&graph, &(sp_model_options){.device = device});
}

static sp_status run_pair(sp_model model, const int64_t *i, const int64_t *j, float *y)
{
    sp_host_tensor inputs[3];
    make_inputs(i, inputs);
    inputs[2] = inputs[1];
    inputs[2].data = (void *)(uintptr_t)j;
    sp_host_tensor output = {.data = y, .capacity = COUNT * sizeof *y};
    return sp_model_run(model, inputs, 3, &output, 1);
}

TEST(a_report_of_a_run_that_fails_otherwise_is_not_the_next_runs)
{
    static const int64_t places[COUNT] = {2, 1, 0}, beyond[COUNT] = {0, 0, 3};
    const sp_device device = segment_begin();
    segment_set_ops("GatherElements");
    const sp_model model = load_pair(device);
    float y[COUNT];
    for (int round = 0; round < 3; round++) {
        CHECK_STATUS(run_pair(model, high, beyond, y), SP_INVALID);
        CHECK_OK(run_pair(model, good, places, y));
        CHECK(y[0] == 3 && y[1] == 1 && y[2] == 5);
    }
    CHECK_OK(sp_model_release(model));
    segment_set_ops(NULL);
    segment_end();
}

typedef struct load_of_runs {
    sp_model model;
    uint64_t rounds;
    sp_atomic_u64 wrong;
} load_of_runs;

/* Every third thread has an index out of range. */
static void run_rounds(void *arg, uint32_t index)
{
    load_of_runs *l = arg;
    const bool is_bad = index % 3 == 0;
    for (uint64_t i = 0; i < l->rounds; i++) {
        float y[COUNT] = {0};
        const sp_status status = run(l->model, is_bad ? high : good, y);
        const bool is_right =
            is_bad ? status == SP_INVALID : status == SP_OK && y[0] == 5 && y[1] == 1 && y[2] == 3;
        if (!is_right) sp_fetch_add_relaxed(&l->wrong, 1);
    }
}

TEST(runs_of_other_threads_do_not_fail)
{
    const sp_device device = segment_begin();
    load_of_runs l = {.model = load_gather(&(sp_model_options){.device = device}),
                      .rounds = test_count(300, 30)};
    test_threads(8, run_rounds, &l);
    CHECK_EQ_U64(sp_load_relaxed(&l.wrong), 0);
    CHECK_OK(sp_model_release(l.model));
    segment_end();
}

/* An RNN of one unit, with lengths of the sequences. */
TEST(a_wrong_length_of_a_sequence_fails_the_run)
{
    static const int64_t dims_x[] = {2, 1, 1}, dims_w[] = {1, 1, 1}, dims_l[] = {1};
    const sp_device device = segment_begin();
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_x, 3);
    add_input(&graph, "w", ONNX_FLOAT, dims_w, 3);
    add_input(&graph, "r", ONNX_FLOAT, dims_w, 3);
    add_input(&graph, "l", ONNX_INT32, dims_l, 1);
    writer node = make_node("RNN", "x w r - l", "y");
    add_attribute_int(&node, "hidden_size", 1);
    add_node(&graph, node);
    add_output(&graph, "y");
    writer file = make_model(&graph, 14);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &(sp_model_options){.device = device},
                                       &model));
    writer_free(&file);
    float x[2] = {1, 2}, w = 1, r = 1, y[2];
    int32_t length = 1;
    sp_host_tensor inputs[4] = {
        {.data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 3, .shape = {2, 1, 1}},
        {.data = &w, .bytes = sizeof w, .dtype = SP_F32, .rank = 3, .shape = {1, 1, 1}},
        {.data = &r, .bytes = sizeof r, .dtype = SP_F32, .rank = 3, .shape = {1, 1, 1}},
        {.data = &length, .bytes = sizeof length, .dtype = SP_I32, .rank = 1, .shape = {1}}};
    sp_host_tensor output = {.data = y, .capacity = sizeof y};
    CHECK_OK(sp_model_run(model, inputs, 4, &output, 1));
    length = 3;
    CHECK_STATUS(sp_model_run(model, inputs, 4, &output, 1), SP_INVALID);
    CHECK_MESSAGE("a sequence of length 3; the longest has 2");
    length = 2;
    CHECK_OK(sp_model_run(model, inputs, 4, &output, 1));
    CHECK_OK(sp_model_release(model));
    segment_end();
}

TEST_MAIN
