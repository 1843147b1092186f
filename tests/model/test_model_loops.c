/* SPDX-License-Identifier: Apache-2.0 */
/* Loop: trip counts, carried values and results. The program runs with STREAMPOOL_PARTIAL_MEMORY
 * set to 4 MiB, so that loops that would grow without bound end. */
#include <string.h>

#include <streampool/stream.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "base/thread.h"
#include "partial_fixture.h"

static const int64_t any_dims[2] = {-1, -1};

/* The inputs n (trips), c (condition) and x (floats). */
static writer begin_graph(void)
{
    writer graph = {0};
    add_input(&graph, "n", ONNX_INT64, NULL, 0);
    add_input(&graph, "c", ONNX_BOOL, NULL, 0);
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    return graph;
}

static sp_model finish(writer *graph, const char *outputs)
{
    char name[2] = {0};
    for (const char *at = outputs; *at != '\0'; at++) {
        name[0] = *at;
        add_output(graph, name);
    }
    sp_model model = {0};
    CHECK_OK(partial_load(graph, NULL, &model));
    return model;
}

typedef struct result {
    float y[64];
    float s[256];
    sp_host_tensor outputs[2];
} result;

/* `count` floats of x: 1, 2, 3 ... */
static sp_status run(sp_model model, int64_t n, bool c, int64_t count, result *r)
{
    float x[16];
    for (int i = 0; i < 16; i++) x[i] = (float)(i + 1);
    const sp_host_tensor inputs[3] = {partial_ints("n", &n, -1), partial_bool("c", &c),
                                      partial_floats("x", x, count)};
    sp_model_info info = partial_info(model);
    memset(r, 0xff, sizeof *r);
    r->outputs[0] = partial_room("y", r->y, sizeof r->y);
    r->outputs[1] = partial_room("s", r->s, sizeof r->s);
    return sp_model_run(model, inputs, 3, r->outputs, info.output_count);
}

/* y = x + 0 + 1 + ... + (n - 1), s = its value after each trip */
static sp_model for_model(void)
{
    writer graph = begin_graph();
    writer body = partial_body(1);
    const int64_t two = 2;
    add_node(&body, partial_node_int("Cast", "i", "f", "to", ONNX_FLOAT));
    add_node(&body, make_node("Add", "v f", "w"));
    add_node(&body, make_node("Identity", "w", "each"));
    add_output(&body, "on");
    add_output(&body, "w");
    partial_add_result(&body, "each", ONNX_FLOAT, &two, 1);
    add_node(&graph, partial_loop("n c x", "y s", &body));
    return finish(&graph, "ys");
}

TEST(a_trip_count_says_how_often)
{
    const sp_model model = for_model();
    static const float sums[] = {0, 0, 1, 3, 6, 10};
    result r;
    for (int64_t n = 5; n >= 0; n--) {
        CHECK_OK(run(model, n, true, 2, &r));
        CHECK_EQ_INT(r.outputs[0].shape[0], 2);
        CHECK(r.y[0] == 1 + sums[n] && r.y[1] == 2 + sums[n]);
        CHECK_EQ_INT(r.outputs[1].rank, 2);
        CHECK_EQ_INT(r.outputs[1].shape[0], n);
        CHECK_EQ_INT(r.outputs[1].shape[1], 2);
        for (int64_t i = 0; i < n; i++) CHECK(r.s[2 * i + 1] == 2 + sums[i + 1]);
    }
    CHECK_OK(run(model, -7, true, 2, &r)); /* zero trips */
    CHECK(r.y[1] == 2);
    CHECK_EQ_INT(r.outputs[1].shape[0], 0);
    CHECK_OK(run(model, 5, false, 2, &r)); /* the initial condition */
    CHECK_EQ_INT(r.outputs[1].shape[0], 0);
    /* One plan for the body, whatever its values are. */
    CHECK(partial_info(model).plan_builds < 12);
    CHECK_OK(sp_model_release(model));
}

/* Doubles x while it is below 100: with or without an initial condition. */
static sp_model while_model(const char *inputs)
{
    writer graph = begin_graph();
    writer body = partial_body(1);
    partial_add_floats(&graph, "limit", (const float[]){100}, 1);
    partial_add_bool(&graph, "yes", true);
    add_node(&body, make_node("Add", "v v", "w"));
    add_node(&body, partial_node_int("ReduceMax", "w", "most", "keepdims", 1));
    add_node(&body, make_node("Less", "most limit", "goes_on"));
    add_output(&body, "goes_on");
    add_output(&body, "w");
    add_node(&graph, partial_loop(inputs, "y", &body));
    return finish(&graph, "y");
}

/* Also if the condition input is left out, as in ONNX Runtime (docs/decisions/0025). */
TEST(a_computed_condition_ends_the_loop)
{
    static const char *const inputs[] = {"- c x", "- - x", "n c x", "n - x"};
    for (size_t i = 0; i < SP_COUNT_OF(inputs); i++) {
        const sp_model model = while_model(inputs[i]);
        result r;
        CHECK_OK(run(model, 1000, true, 2, &r));
        CHECK(r.y[0] == 64 && r.y[1] == 128);
        CHECK_OK(run(model, 3, false, 3, &r));
        const bool is_never = i == 0 || i == 2;
        const float times = is_never ? 1 : i == 1 ? 64 : 8;
        CHECK(r.y[0] == times && r.y[2] == 3 * times);
        CHECK_OK(sp_model_release(model));
    }
}

TEST(what_is_carried_may_change_its_shape)
{
    writer graph = begin_graph();
    writer body = partial_body(1);
    add_node(&body, partial_node_int("Concat", "v x", "w", "axis", 0)); /* x is captured */
    add_output(&body, "on");
    add_output(&body, "w");
    add_node(&graph, partial_loop("n c x", "y", &body));
    const sp_model model = finish(&graph, "y");
    result r;
    CHECK_OK(run(model, 4, true, 3, &r));
    CHECK_EQ_INT(r.outputs[0].shape[0], 15);
    for (int i = 0; i < 15; i++) CHECK(r.y[i] == (float)(i % 3 + 1));
    CHECK_OK(sp_model_release(model));
}

/* A slice whose position is the trip number: computed between plans, so that the plan is the same
 * each time. */
TEST(a_place_that_is_computed_each_time_makes_no_plans)
{
    writer graph = begin_graph();
    writer body = partial_body(1);
    const int64_t one = 1;
    partial_add_ints(&graph, "list", &one, 1);
    add_node(&body, make_node("Reshape", "i list", "from"));
    add_node(&body, make_node("Add", "from list", "to"));
    add_node(&body, make_node("Slice", "v from to", "piece"));
    add_node(&body, make_node("Mul", "piece piece", "square"));
    add_output(&body, "on");
    add_output(&body, "v");
    partial_add_result(&body, "square", ONNX_FLOAT, &one, 1);
    add_node(&graph, partial_loop("n c x", "y s", &body));
    const sp_model model = finish(&graph, "ys");
    result r;
    CHECK_OK(run(model, 16, true, 16, &r));
    CHECK_EQ_INT(r.outputs[1].shape[0], 16);
    for (int i = 0; i < 16; i++) CHECK(r.s[i] == (float)((i + 1) * (i + 1)));
    CHECK(partial_info(model).plan_builds <= 4);
    CHECK_OK(sp_model_release(model));
}

/* For i below n: for k below i + 1: v += x[k], and a branch on whether i is 1 */
static sp_model nested_model(void)
{
    writer graph = begin_graph();
    writer outer = partial_body(0);
    writer inner = {0};
    writer then_branch = {0};
    writer else_branch = {0};
    partial_add_ints(&graph, "one", (const int64_t[]){1}, -1);
    partial_add_floats(&graph, "hundred", (const float[]){100}, -1);
    partial_add_floats(&graph, "start", (const float[]){0}, -1);
    add_input(&inner, "k", ONNX_INT64, NULL, 0);
    add_input(&inner, "k_on", ONNX_BOOL, NULL, 0);
    add_input(&inner, "u", ONNX_FLOAT, NULL, 0);
    add_node(&inner, make_node("Gather", "x k", "element"));
    add_node(&inner, make_node("Add", "u element", "u_next"));
    add_output(&inner, "k_on");
    add_output(&inner, "u_next");
    add_node(&outer, make_node("Add", "i one", "count"));
    add_node(&outer, partial_loop("count on v", "sum", &inner));
    add_node(&outer, make_node("Equal", "i one", "is_one"));
    add_node(&then_branch, make_node("Add", "sum hundred", "more"));
    add_output(&then_branch, "more");
    add_output(&else_branch, "sum");
    add_node(&outer, partial_if("is_one", "w", &then_branch, &else_branch));
    add_output(&outer, "on");
    add_output(&outer, "w");
    partial_add_result(&outer, "sum", ONNX_FLOAT, NULL, 0);
    add_node(&graph, partial_loop("n c start", "y s", &outer));
    return finish(&graph, "ys");
}

TEST(loops_and_branches_stand_in_loops)
{
    const sp_model model = nested_model();
    result r;
    CHECK_OK(run(model, 3, true, 16, &r));
    /* 1; 1 + (1 + 2) + 100; 104 + (1 + 2 + 3) */
    CHECK(r.y[0] == 110);
    CHECK_EQ_INT(r.outputs[0].rank, 0);
    CHECK_EQ_INT(r.outputs[1].shape[0], 3);
    CHECK(r.s[0] == 1 && r.s[1] == 4 && r.s[2] == 110);
    CHECK_OK(run(model, 0, true, 16, &r));
    CHECK(r.y[0] == 0);
    CHECK_OK(sp_model_release(model));
}

/* ---- errors ---- */

TEST(an_error_in_a_body_says_where_and_when)
{
    writer graph = begin_graph();
    writer body = partial_body(1);
    add_node(&body, partial_node_int("Concat", "v v", "w", "axis", 0));
    add_node(&body, make_node("Add", "w x", "sum")); /* x has one element, or four */
    add_output(&body, "on");
    add_output(&body, "w");
    partial_add_result(&body, "sum", ONNX_FLOAT, any_dims, 1);
    partial_add_floats(&graph, "start", (const float[]){1}, 1);
    add_node(&graph, partial_loop("n c start", "y s", &body));
    const sp_model model = finish(&graph, "ys");
    result r;
    CHECK_STATUS(run(model, 3, true, 4, &r), SP_MISMATCH);
    CHECK_MESSAGE("node 'y' (Loop): iteration 0: node 'sum' (Add): ");
    CHECK_STATUS(run(model, 3, true, 1, &r), SP_MISMATCH);
    CHECK_MESSAGE("iteration 1: output 'sum' of the body is f32 of shape [4], in earlier "
                  "iterations f32 of shape [2]");
    CHECK_OK(run(model, 1, true, 1, &r));
    CHECK(r.s[0] == 2 && r.s[1] == 2);
    CHECK_OK(sp_model_release(model));
}

/* A model whose Loop has this body, with x carried. */
static sp_status load_body(writer *body, const char *outputs, sp_model *model)
{
    writer graph = begin_graph();
    add_node(&graph, partial_loop("n c x", outputs, body));
    add_output(&graph, "y");
    return partial_load(&graph, NULL, model);
}

TEST(bodies_that_do_not_fit_are_refused)
{
    sp_model model;
    writer body = partial_body(1);
    add_output(&body, "on");
    CHECK_STATUS(load_body(&body, "y", &model), SP_CORRUPT);
    CHECK_MESSAGE("node 'y' (Loop): the body has 1 outputs: wanted a condition, 1 values");
    body = partial_body(1);
    add_input(&body, "more", ONNX_FLOAT, any_dims, 1);
    add_output(&body, "on");
    add_output(&body, "v");
    CHECK_STATUS(load_body(&body, "y", &model), SP_CORRUPT);
    CHECK_MESSAGE("the body has 4 inputs, wanted 3");
    body = partial_body(1);
    add_output(&body, "on");
    add_output(&body, "v");
    CHECK_STATUS(load_body(&body, "y s", &model), SP_CORRUPT);
    CHECK_MESSAGE("for each of the 2 outputs of the node");
    body = partial_body(1);
    add_output(&body, "on");
    add_output(&body, "nowhere");
    CHECK_STATUS(load_body(&body, "y", &model), SP_CORRUPT);
    CHECK_MESSAGE("nothing produces output 'nowhere' of a body");
    body = partial_body(1);
    add_output(&body, "v"); /* no condition */
    add_output(&body, "v");
    REQUIRE_OK(load_body(&body, "y", &model));
    result r;
    CHECK_STATUS(run(model, 3, true, 2, &r), SP_MISMATCH);
    CHECK_MESSAGE("the condition 'v' is f32 of shape [2]; expected one bool");
    CHECK_OK(sp_model_release(model));
}

TEST(a_loop_that_grows_for_ever_is_refused)
{
    const sp_model model = for_model();
    result r;
    CHECK_STATUS(run(model, (int64_t)1 << 62, true, 16, &r), SP_EXHAUSTED);
    CHECK_MESSAGE("node 'y' (Loop): iteration ");
    CHECK_MESSAGE("STREAMPOOL_PARTIAL_MEMORY allows 4194304");
    CHECK_OK(run(model, 1, true, 2, &r)); /* no state remains */
    CHECK_OK(sp_model_release(model));

    writer body = partial_body(1);
    add_node(&body, partial_node_int("Concat", "v v", "w", "axis", 0));
    add_output(&body, "on");
    add_output(&body, "w");
    sp_model doubling;
    REQUIRE_OK(load_body(&body, "y", &doubling));
    CHECK_STATUS(run(doubling, (int64_t)1 << 62, true, 16, &r), SP_EXHAUSTED);
    CHECK_MESSAGE("STREAMPOOL_PARTIAL_MEMORY");
    CHECK_OK(sp_model_release(doubling));
}

/* With a plan in the body, and without one. */
TEST(closing_the_device_ends_an_endless_loop)
{
    for (int has_node = 0; has_node < 2; has_node++) {
        sp_model_options options = {0};
        partial_endless e;
        REQUIRE_OK(sp_device_open("null", &options.device));
        partial_endless_begin(&e, &options, has_node != 0);
        CHECK_OK(sp_device_close(options.device));
        const sp_status status = partial_endless_join(&e);
        CHECK(status == SP_CLOSED || status == SP_DEVICE_LOST);
    }
}

/* ---- threads, host functions, memory ---- */

typedef struct nested_load {
    sp_model model;
    result want[4];
    sp_atomic_u64 wrong;
} nested_load;

static void run_nested(void *arg, uint32_t index)
{
    nested_load *load = arg;
    const uint64_t rounds = test_count(200, 6);
    for (uint64_t i = 0; i < rounds; i++) {
        result r;
        const uint64_t n = (i + index) % 4;
        CHECK_OK(run(load->model, (int64_t)n, true, 16, &r));
        const void *want = load->want[n].y;
        const void *got = r.y;
        const bool is_same = memcmp(got, want, sizeof r.y) == 0;
        if (!is_same) sp_fetch_add_relaxed(&load->wrong, (uint64_t)1);
    }
}

TEST(thirty_one_threads_get_the_bits_of_one)
{
    nested_load load = {.model = nested_model()};
    for (int64_t n = 0; n < 4; n++) CHECK_OK(run(load.model, n, true, 16, &load.want[n]));
    test_threads(31, run_nested, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.wrong), 0);
    CHECK_OK(sp_model_release(load.model));
}

static void run_inside(void *ctx, sp_status status)
{
    nested_load *load = ctx;
    result r;
    CHECK_OK(status);
    CHECK_OK(run(load->model, 3, true, 16, &r));
    CHECK(r.y[0] == 110);
}

TEST(loops_run_inside_host_functions)
{
    nested_load load = {.model = nested_model()};
    sp_stream stream;
    REQUIRE_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_inside, &load));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_model_release(load.model));
}

TEST(an_allocation_that_fails_leaks_nothing)
{
    bool is_done = false;
    for (uint64_t skip = 0; !is_done; skip++) {
        const sp_model model = nested_model();
        result r;
        sp_heap_fail_after(skip);
        const sp_status status = run(model, 3, true, 16, &r);
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
        CHECK_OK(run(model, 3, true, 16, &r));
        CHECK(r.y[0] == 110);
        CHECK_OK(sp_model_release(model));
    }
}

TEST_MAIN
