/* SPDX-License-Identifier: Apache-2.0 */
/* Runs through partial plans on a device whose steps alternate with the cpu: values between partial
 * plans are copied through the host, and the bits are the cpu's. */
#include <string.h>

#include "base/heap.h"
#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_INT64 = 7, ONNX_BOOL = 9, FEW = 200, MANY = 6000 };

/* v = Relu(x), n times: v = Tanh(v) * x, with all of them as scan output; and the nonzero elements
 * of x */
static sp_model load(const sp_model_options *options)
{
    static const int64_t any[1] = {-1};
    writer graph = {0};
    writer body = {0};
    add_input(&graph, "n", ONNX_INT64, NULL, 0);
    add_input(&graph, "x", ONNX_FLOAT, any, 1);
    add_input(&body, "i", ONNX_INT64, NULL, 0);
    add_input(&body, "on", ONNX_BOOL, NULL, 0);
    add_input(&body, "v", ONNX_FLOAT, any, 1);
    add_node(&body, make_node("Tanh", "v", "t"));
    add_node(&body, make_node("Mul", "t x", "w"));
    add_output(&body, "on");
    add_output(&body, "w");
    add_output(&body, "w");
    add_node(&graph, make_node("Relu", "x", "first"));
    writer loop = make_node("Loop", "n - first", "last all");
    add_attribute_graph(&loop, "body", &body);
    add_node(&graph, loop);
    add_node(&graph, make_node("NonZero", "first", "places"));
    add_node(&graph, make_node("Gather", "last places", "found"));
    add_node(&graph, make_node("Sigmoid", "found", "y"));
    add_output(&graph, "y");
    add_output(&graph, "all");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, options, &model));
    writer_free(&file);
    return model;
}

#define TRIPS 3

typedef struct outcome {
    float y[MANY], all[TRIPS * MANY];
    sp_host_tensor outputs[2];
} outcome;

static sp_status submit_and_wait(sp_model model, const sp_host_tensor *inputs, outcome *r)
{
    sp_future future;
    sp_status status = sp_model_submit(model, inputs, 2, r->outputs, 2, &future);
    if (status != SP_OK) return status;
    status = sp_future_wait(future);
    for (uint32_t i = 0; i < 2 && status == SP_OK; i++) {
        status = sp_future_take_output(future, i, &r->outputs[i]);
    }
    CHECK_OK(sp_future_release(future));
    return status;
}

static sp_status run(sp_model model, const float *x, int64_t count, bool is_submitted, outcome *r)
{
    const int64_t trips = TRIPS;
    const sp_host_tensor inputs[2] = {
        {.data = (void *)(uintptr_t)&trips, .bytes = sizeof trips, .dtype = SP_I64},
        {.data = (void *)(uintptr_t)x,
         .bytes = (uint64_t)count * sizeof *x,
         .dtype = SP_F32,
         .rank = 1,
         .shape = {count}}};
    r->outputs[0] = (sp_host_tensor){.data = r->y, .capacity = sizeof r->y};
    r->outputs[1] = (sp_host_tensor){.data = r->all, .capacity = sizeof r->all};
    memset(r->y, 0xff, sizeof r->y);
    memset(r->all, 0xff, sizeof r->all);
    if (is_submitted) return submit_and_wait(model, inputs, r);
    return sp_model_run(model, inputs, 2, r->outputs, 2);
}

typedef struct load_of_runs {
    sp_model model;
    float x[MANY];
    outcome want[2]; /* of few, of many */
    outcome *got;    /* by thread */
    sp_atomic_u64 wrong;
} load_of_runs;

static bool is_same(const outcome *a, const outcome *b)
{
    const void *const pairs[2][2] = {{a->y, b->y}, {a->all, b->all}};
    return a->outputs[0].bytes == b->outputs[0].bytes &&
           a->outputs[0].shape[0] == b->outputs[0].shape[0] &&
           memcmp(pairs[0][0], pairs[0][1], sizeof a->y) == 0 &&
           memcmp(pairs[1][0], pairs[1][1], sizeof a->all) == 0;
}

static void run_rounds(void *arg, uint32_t index)
{
    load_of_runs *l = arg;
    const uint64_t rounds = test_count(40, 4);
    for (uint64_t i = 0; i < rounds; i++) {
        const uint32_t which = (uint32_t)(i + index) % 2;
        const bool is_submitted = (i / 2 + index / 2) % 2 != 0;
        CHECK_OK(run(l->model, l->x, which == 0 ? FEW : MANY, is_submitted, &l->got[index]));
        if (!is_same(&l->got[index], &l->want[which])) {
            sp_fetch_add_relaxed(&l->wrong, (uint64_t)1);
        }
    }
}

static void check_threads(uint32_t threads, const char *cpu_ops)
{
    const sp_device device = segment_begin();
    segment_set_ops(cpu_ops);
    load_of_runs *l = sp_calloc(1, sizeof *l);
    outcome *got = sp_calloc(threads, sizeof *got);
    REQUIRE(l != NULL && got != NULL);
    l->got = got;
    for (int i = 0; i < MANY; i++) l->x[i] = (float)(i % 7 - 3) * 0.5f;
    const sp_model cpu = load(NULL);
    CHECK_OK(run(cpu, l->x, FEW, false, &l->want[0]));
    CHECK_OK(run(cpu, l->x, MANY, true, &l->want[1]));
    CHECK_EQ_INT(l->want[1].outputs[1].shape[0], TRIPS);
    CHECK_OK(sp_model_release(cpu));
    l->model = load(&(sp_model_options){.device = device});
    test_threads(threads, run_rounds, l);
    CHECK_EQ_U64(sp_load_relaxed(&l->wrong), 0);
    CHECK_OK(sp_model_release(l->model));
    sp_free(l);
    sp_free(got);
    segment_end();
}

TEST(partial_plans_on_a_device_give_the_bits_of_the_cpu)
{
    check_threads(1, "");
    check_threads(1, "Tanh");
}

TEST(partial_plans_from_31_threads_give_the_bits_of_the_cpu)
{
    check_threads(31, "");
    check_threads(31, "Tanh,Sigmoid");
}

TEST_MAIN
