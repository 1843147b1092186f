/* SPDX-License-Identifier: Apache-2.0 */
/* Ops without CUDA kernels, in one model with ops that have them: on the fake driver they run on
 * cpu, on a null device in place. A wrong index fails only its own run. */
#include <string.h>

#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { STEPS = 6, ROWS = 2, FEATURES = 8, UNITS = 4, PICKED = 3, THREADS = 12 };
enum { ONNX_FLOAT = 1, ONNX_INT64 = 7 };

static void add_floats(writer *graph, const char *name, const int64_t *dims)
{
    float values[4 * UNITS * FEATURES];
    data_random random = {81};
    const size_t count = (size_t)(dims[1] * dims[2]);
    data_fill(&random, values, count);
    writer tensor = make_tensor(name, ONNX_FLOAT, dims, 3, values, count * sizeof *values);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

static void add_number(writer *graph, const char *name, int64_t value)
{
    const int64_t one = 1;
    writer tensor = make_tensor(name, ONNX_INT64, &one, 1, &value, sizeof value);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* Inputs x [steps, rows, features] and i, three indices of steps; output y [2, 1, rows, 2], the
 * last states and the indices of the largest. */
static sp_model load(sp_device device)
{
    static const int64_t x[] = {STEPS, ROWS, FEATURES}, i[] = {PICKED};
    static const int64_t w[] = {1, 4 * UNITS, FEATURES}, r[] = {1, 4 * UNITS, UNITS};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, x, 3);
    add_input(&graph, "i", ONNX_INT64, i, 1);
    add_floats(&graph, "w", w);
    add_floats(&graph, "r", r);
    add_number(&graph, "zero", 0);
    add_number(&graph, "two", 2);
    add_node(&graph, make_node("Gather", "x i", "picked"));
    add_node(&graph, make_node("Relu", "picked", "positive"));
    add_node(&graph, make_node("LSTM", "positive w r", "all last"));
    add_node(&graph, make_node("Tanh", "all", "flat"));
    add_node(&graph, make_node("TopK", "flat two", "largest places"));
    add_node(&graph, make_node("Slice", "largest zero two", "y"));
    add_output(&graph, "y");
    add_output(&graph, "last");
    add_output(&graph, "places");
    return graph_load(&graph, &(sp_model_options){.device = device});
}

typedef struct results {
    float y[2 * ROWS * 2], last[ROWS * UNITS];
    int64_t places[PICKED * ROWS * 2];
} results;

static sp_status run(sp_model model, const int64_t *indices, results *out)
{
    float x[STEPS * ROWS * FEATURES];
    data_random random = {82};
    data_fill(&random, x, SP_COUNT_OF(x));
    const sp_host_tensor inputs[] = {{.data = x,
                                      .bytes = sizeof x,
                                      .dtype = SP_F32,
                                      .rank = 3,
                                      .shape = {STEPS, ROWS, FEATURES}},
                                     {.data = (void *)(uintptr_t)indices,
                                      .bytes = PICKED * sizeof *indices,
                                      .dtype = SP_I64,
                                      .rank = 1,
                                      .shape = {PICKED}}};
    sp_host_tensor outputs[] = {{.data = out->y, .capacity = sizeof out->y},
                                {.data = out->last, .capacity = sizeof out->last},
                                {.data = out->places, .capacity = sizeof out->places}};
    memset(out, 0xff, sizeof *out);
    return sp_model_run(model, inputs, 2, outputs, 3);
}

/* ---- devices of the steps ---- */

static void check_places(sp_model model, bool has_names)
{
    static const char *const named[] = {"Gather", "LSTM", "TopK"};
    static const uint32_t steps[] = {1, 2, 1}; /* the layer is a product and the cell */
    const uint32_t count = has_names ? SP_COUNT_OF(named) : 0;
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_EQ_U64(info.step_count, 7);
    CHECK_EQ_U64(info.cpu_step_count, has_names ? 4 : 0);
    CHECK_EQ_U64(info.segment_count, 1 + 2 * count);
    sp_model_cpu_op op;
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(sp_model_get_cpu_op(model, i, &op));
        CHECK_EQ_STR(op.name, named[i]);
        CHECK_EQ_U64(op.step_count, steps[i]);
    }
    CHECK_STATUS(sp_model_get_cpu_op(model, count, &op), SP_NOT_FOUND);
}

/* ---- many threads ---- */

typedef struct crowd {
    sp_model model;
    int64_t indices[THREADS][PICKED];
    results wanted[THREADS];
    uint32_t bad_every; /* one run of that many has an index out of range; 0: none */
    sp_atomic_u32 failed, right;
} crowd;

static void run_good_and_bad(void *arg, uint32_t index)
{
    crowd *all = arg;
    for (uint32_t round = 0; round < test_count(200, 10); round++) {
        const bool is_bad = all->bad_every != 0 && (index + round) % all->bad_every == 0;
        int64_t indices[PICKED];
        memcpy(indices, all->indices[index], sizeof indices);
        if (is_bad) indices[index % PICKED] = STEPS;
        results got;
        const sp_status status = run(all->model, indices, &got);
        if (is_bad) {
            CHECK_STATUS(status, SP_INVALID);
            CHECK_MESSAGE("node 'picked' (Gather)");
            CHECK_MESSAGE("index 6 is out of range for a dimension of 6");
            sp_fetch_add_relaxed(&all->failed, 1);
        } else {
            CHECK_OK(status);
            CHECK_EQ_MEM(&got, &all->wanted[index], sizeof got);
            sp_fetch_add_relaxed(&all->right, 1);
        }
    }
}

/* Each thread uses its own steps, some counted from the end. The results are cpu's. */
static void check_crowd(uint32_t bad_every, bool has_names)
{
    const sp_device device = segment_begin();
    segment_set_ops(has_names ? "Gather,LSTM,TopK" : "");
    static crowd all;
    all = (crowd){.model = load((sp_device){0}), .bad_every = bad_every};
    for (int64_t i = 0; i < THREADS; i++) {
        for (int64_t k = 0; k < PICKED; k++) {
            all.indices[i][k] = (i + k * (i % 4)) % (2 * STEPS) - STEPS;
        }
        CHECK_OK(run(all.model, all.indices[i], &all.wanted[i]));
    }
    CHECK_OK(sp_model_release(all.model));
    all.model = load(device);
    test_threads(THREADS, run_good_and_bad, &all);
    check_places(all.model, has_names);
    CHECK(sp_load_relaxed(&all.right) > 0);
    CHECK_EQ_INT(sp_load_relaxed(&all.failed) > 0, bad_every != 0);
    CHECK_OK(sp_model_release(all.model));
    segment_end();
}

TEST(ops_on_the_cpu_and_on_the_device_give_the_same_bits)
{
    check_crowd(0, true);
    check_crowd(0, false);
}

TEST(an_index_out_of_range_fails_its_own_run_and_names_the_node)
{
    check_crowd(3, true);
    check_crowd(3, false);
}

TEST_MAIN
