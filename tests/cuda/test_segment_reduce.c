/* SPDX-License-Identifier: Apache-2.0 */
/* A model whose reductions run on the cpu between steps of the device: several steps of one node
 * with scratch between them, axes given by the run, many threads. */
#include <string.h>

#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ROWS = 5, COLUMNS = 40, COUNT = ROWS * COLUMNS };

/* y = Relu(Softmax(Relu(x) - ReduceLogSumExp(Relu(x), axes))) */
static sp_model load(const sp_model_options *options)
{
    static const int64_t dims_x[] = {ROWS, COLUMNS}, dims_a[] = {-1};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims_x, 2);
    add_input(&graph, "a", ONNX_INT64, dims_a, 1);
    add_node(&graph, make_node("Relu", "x", "r"));
    add_node(&graph, make_node("ReduceLogSumExp", "r a", "s"));
    add_node(&graph, make_node("Sub", "r s", "d"));
    add_node(&graph, make_node("Softmax", "d", "p"));
    add_node(&graph, make_node("Relu", "p", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 18);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, options, &model));
    writer_free(&file);
    return model;
}

static sp_status run(sp_model model, const float *x, int64_t axis, float *y)
{
    const sp_host_tensor inputs[2] = {
        {.data = (void *)(uintptr_t)x,
         .bytes = COUNT * sizeof *x,
         .dtype = SP_F32,
         .rank = 2,
         .shape = {ROWS, COLUMNS}},
        {.data = &axis, .bytes = sizeof axis, .dtype = SP_I64, .rank = 1, .shape = {1}}};
    sp_host_tensor output = {.data = y, .capacity = COUNT * sizeof *y};
    memset(y, 0xff, COUNT * sizeof *y);
    return sp_model_run(model, inputs, 2, &output, 1);
}

typedef struct load_of_runs {
    sp_model model;
    float x[COUNT], want[2][COUNT]; /* by axis */
    uint64_t rounds;
    sp_atomic_u64 wrong;
} load_of_runs;

static bool is_same(const void *got, const void *want)
{
    return memcmp(got, want, COUNT * sizeof(float)) == 0;
}

static void run_rounds(void *arg, uint32_t index)
{
    load_of_runs *l = arg;
    float y[COUNT];
    for (uint64_t i = 0; i < l->rounds; i++) {
        const int64_t axis = (int64_t)((i + index) % 2);
        CHECK_OK(run(l->model, l->x, axis, y));
        if (!is_same(y, l->want[axis])) sp_fetch_add_relaxed(&l->wrong, 1);
    }
}

TEST(reductions_between_steps_of_the_device_give_the_bits_of_the_cpu)
{
    const sp_device device = segment_begin();
    segment_set_ops("ReduceLogSumExp,Softmax");
    load_of_runs l = {.rounds = test_count(200, 20)};
    data_random random = {91};
    data_fill(&random, l.x, COUNT);
    const sp_model cpu = load(NULL);
    for (int64_t axis = 0; axis < 2; axis++) CHECK_OK(run(cpu, l.x, axis, l.want[axis]));
    CHECK_OK(sp_model_release(cpu));
    l.model = load(&(sp_model_options){.device = device});
    test_threads(8, run_rounds, &l);
    CHECK_EQ_U64(sp_load_relaxed(&l.wrong), 0);
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(l.model, &info));
    CHECK_EQ_U64(info.step_count, 6);
    CHECK_EQ_U64(info.cpu_step_count, 3); /* two of ReduceLogSumExp */
    CHECK_EQ_U64(info.segment_count, 5);
    CHECK_OK(sp_model_release(l.model));
    segment_set_ops(NULL);
    segment_end();
}

TEST_MAIN
