/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for untrusted files: small models that need gigabytes, or never end, are refused before
 * any large allocation, with both numbers; models within the limits run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <streampool/storage.h>

#include "base/macros.h"
#include "partial_fixture.h"

#define MIB ((uint64_t)1 << 20)

/* ---- state after a refusal ---- */

static sp_memory_stats stats(void)
{
    sp_memory_stats out;
    CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &out));
    return out;
}

/* Weights of small models, and values between partial plans: below one slab. */
static void check_nothing_is_left(const sp_memory_stats *before)
{
    const sp_memory_stats after = stats();
    CHECK_EQ_U64(after.in_use_bytes, before->in_use_bytes);
    CHECK(after.peak_bytes <= before->peak_bytes + 64 * MIB);
}

/* ---- models of one plan ---- */

static void add_output_of(writer *graph, bool is_reduced)
{
    if (is_reduced) add_node(graph, make_node("ReduceMax", "y", "z"));
    add_output(graph, is_reduced ? "z" : "y");
}

static writer constant_of_shape(bool is_reduced)
{
    writer graph = {0};
    partial_add_ints(&graph, "dims", (const int64_t[]){INT64_C(1) << 30, 8}, 2);
    add_node(&graph, make_node("ConstantOfShape", "dims", "y"));
    add_output_of(&graph, is_reduced);
    return graph;
}

static writer range(bool is_reduced)
{
    writer graph = {0};
    partial_add_ints(&graph, "start", (const int64_t[]){0}, -1);
    partial_add_ints(&graph, "limit", (const int64_t[]){INT64_C(1) << 32}, -1);
    partial_add_ints(&graph, "delta", (const int64_t[]){1}, -1);
    add_node(&graph, make_node("Range", "start limit delta", "y"));
    add_output_of(&graph, is_reduced);
    return graph;
}

/* One pixel with 2^15 of padding on each side: 65,537 x 65,537 outputs. */
static writer conv(bool is_reduced)
{
    static const int64_t image[4] = {1, 1, 1, 1};
    static const int64_t pads[4] = {1 << 15, 1 << 15, 1 << 15, 1 << 15};
    const float one = 1;
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, image, 4);
    writer weights = make_tensor("w", ONNX_FLOAT, image, 4, &one, sizeof one);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &weights);
    add_node(&graph, partial_node_ints("Conv", "x w", "y", "pads", pads, 4));
    add_output_of(&graph, is_reduced);
    return graph;
}

static sp_status run_bomb(sp_model model, sp_host_tensor *output)
{
    float pixel = 1;
    const sp_host_tensor x = {
        .data = &pixel, .bytes = sizeof pixel, .dtype = SP_F32, .rank = 4, .shape = {1, 1, 1, 1}};
    const uint32_t inputs = partial_info(model).input_count;
    const sp_host_tensor *in = inputs > 0 ? &x : NULL;
    const sp_status inferred = sp_model_infer(model, in, inputs, output, 1);
    if (inferred != SP_OK) return inferred;
    return sp_model_run(model, in, inputs, output, 1);
}

TEST(a_few_bytes_that_ask_for_gigabytes_are_refused)
{
    static const struct {
        writer (*make)(bool is_reduced);
        uint64_t bytes;
    } bombs[] = {{constant_of_shape, (uint64_t)1 << 35},
                 {range, (uint64_t)1 << 35},
                 {conv, (uint64_t)65537 * 65537 * 4}};
    for (size_t i = 0; i < 2 * SP_COUNT_OF(bombs); i++) {
        const bool is_reduced = i % 2 != 0;
        const sp_model_options options = {.max_run_bytes = 10 * MIB};
        const sp_memory_stats before = stats();
        writer graph = bombs[i / 2].make(is_reduced);
        sp_model model;
        REQUIRE_OK(partial_load(&graph, &options, &model));
        sp_host_tensor y = {0};
        CHECK_STATUS(run_bomb(model, &y), SP_EXHAUSTED);
        CHECK_MESSAGE("max_run_bytes allows 10485760");
        char number[64];
        snprintf(number, sizeof number, is_reduced ? "(%" PRIu64 : "0 between its steps, %" PRIu64,
                 is_reduced ? (bombs[i / 2].bytes + 63) & ~(uint64_t)63 : bombs[i / 2].bytes);
        CHECK_MESSAGE(number);
        CHECK_OK(sp_model_release(model));
        check_nothing_is_left(&before);
    }
}

/* ---- exactly the limit ---- */

/* t is in the arena, y in the caller's memory: 64 x 64 floats, and twice as many. */
static sp_status load_pair(uint64_t max_run_bytes, sp_model *out)
{
    static const int64_t dims[2] = {64, 64};
    const sp_model_options options = {.max_run_bytes = max_run_bytes};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    add_node(&graph, make_node("Transpose", "x", "t"));
    add_node(&graph, partial_node_int("Concat", "t t", "y", "axis", 0));
    add_output(&graph, "y");
    return partial_load(&graph, &options, out);
}

static sp_status run_pair(sp_model model)
{
    static float x[64 * 64], y[2 * 64 * 64];
    const sp_host_tensor in = {
        .data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 2, .shape = {64, 64}};
    sp_host_tensor out = partial_room("y", y, sizeof y);
    for (int i = 0; i < 64 * 64; i++) x[i] = (float)i;
    SP_TRY(sp_model_run(model, &in, 1, &out, 1));
    CHECK(y[1] == 64.0f && y[64 * 64 + 1] == 64.0f);
    return SP_OK;
}

TEST(a_model_runs_at_its_exact_limit_and_not_a_byte_below)
{
    const uint64_t exact = 3 * 64 * 64 * sizeof(float);
    sp_model model;
    REQUIRE_OK(load_pair(exact, &model));
    CHECK_OK(run_pair(model));
    CHECK_OK(sp_model_release(model));
    REQUIRE_OK(load_pair(exact - 1, &model));
    CHECK_STATUS(run_pair(model), SP_EXHAUSTED);
    CHECK_MESSAGE("a run would take 49152 bytes of memory (16384 between its steps, 32768 of "
                  "outputs); max_run_bytes allows 49151");
    CHECK_EQ_U64(partial_info(model).plan_count, 0);
    CHECK_OK(sp_model_release(model));
    REQUIRE_OK(load_pair(0, &model));
    CHECK_OK(run_pair(model));
    CHECK_OK(sp_model_release(model));
}

/* Another shape of the same model may be within the limit. */
TEST(a_refused_plan_does_not_hinder_others)
{
    static const int64_t free_dims[1] = {-1};
    const sp_model_options options = {.max_run_bytes = 64};
    static float x[17], y[17];
    writer graph = {0};
    sp_model model;
    add_input(&graph, "x", ONNX_FLOAT, free_dims, 1);
    add_node(&graph, make_node("Relu", "x", "y"));
    add_output(&graph, "y");
    REQUIRE_OK(partial_load(&graph, &options, &model));
    for (int64_t n = 15; n <= 17; n++) {
        const sp_host_tensor in = partial_floats("x", x, n);
        sp_host_tensor out = partial_room("y", y, sizeof y);
        CHECK_STATUS(sp_model_run(model, &in, 1, &out, 1), n > 16 ? SP_EXHAUSTED : SP_OK);
    }
    CHECK_MESSAGE("a run would take 68 bytes");
    sp_future future;
    const sp_host_tensor in = partial_floats("x", x, 17);
    sp_host_tensor out = partial_room("y", y, sizeof y);
    CHECK_STATUS(sp_model_submit(model, &in, 1, &out, 1, &future), SP_EXHAUSTED);
    CHECK_OK(sp_model_release(model));
}

/* ---- loops ---- */

static const int64_t any_dims[2] = {-1, -1};

/* A Loop over v, n times, with this body, which is freed; scan output s if `collects`. */
static sp_status load_loop(writer *body, bool collects, const sp_model_options *options,
                           sp_model *out)
{
    writer graph = {0};
    add_input(&graph, "n", ONNX_INT64, NULL, 0);
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    add_node(&graph, partial_loop("n - x", collects ? "y s" : "y", body));
    add_output(&graph, "y");
    if (collects) add_output(&graph, "s");
    return partial_load(&graph, options, out);
}

static sp_status run_loop(sp_model model, int64_t n, int64_t count)
{
    static float x[1024], y[1024], s[1 << 16];
    const sp_host_tensor in[2] = {partial_ints("n", &n, -1), partial_floats("x", x, count)};
    sp_host_tensor out[2] = {partial_room("y", y, sizeof y), partial_room("s", s, sizeof s)};
    return sp_model_run(model, in, 2, out, partial_info(model).output_count);
}

/* v is unchanged, and collected each time if `collects`. */
static writer still_body(bool collects)
{
    writer body = partial_body(1);
    add_node(&body, make_node("Neg", "v", "w"));
    add_output(&body, "on");
    add_output(&body, "w");
    if (collects) {
        add_node(&body, make_node("Identity", "w", "each"));
        partial_add_result(&body, "each", ONNX_FLOAT, (const int64_t[]){-1}, 1);
    }
    return body;
}

TEST(a_loop_without_end_that_keeps_nothing_is_refused)
{
    const sp_model_options options = {.max_loop_trips = 1000};
    writer body = still_body(false);
    sp_model model;
    REQUIRE_OK(load_loop(&body, false, &options, &model));
    CHECK_OK(run_loop(model, 1000, 4));
    CHECK_STATUS(run_loop(model, 1001, 4), SP_EXHAUSTED);
    CHECK_STATUS(run_loop(model, (int64_t)1 << 62, 4), SP_EXHAUSTED);
    CHECK_MESSAGE(
        "the run has computed 1000 iterations of Loop and Scan and needs 1 more; max_loop_trips "
        "allows 1000");
    CHECK_OK(run_loop(model, 1000, 4)); /* each run counts its own trips */
    CHECK_OK(sp_model_release(model));
}

/* 30 times 40 times. */
TEST(trips_of_loops_in_loops_are_counted_together)
{
    const int64_t inner = 40;
    for (uint64_t most = 1229; most <= 1230; most++) {
        const sp_model_options options = {.max_loop_trips = most};
        writer body = partial_body(1);
        writer nested = {0};
        add_input(&nested, "j", ONNX_INT64, NULL, 0);
        add_input(&nested, "go", ONNX_BOOL, NULL, 0);
        add_input(&nested, "a", ONNX_FLOAT, any_dims, 1);
        add_node(&nested, make_node("Neg", "a", "b"));
        add_output(&nested, "go");
        add_output(&nested, "b");
        partial_add_ints(&body, "forty", &inner, -1);
        add_node(&body, partial_loop("forty - v", "w", &nested));
        add_output(&body, "on");
        add_output(&body, "w");
        sp_model model;
        REQUIRE_OK(load_loop(&body, false, &options, &model));
        CHECK_STATUS(run_loop(model, 30, 4), most < 1230 ? SP_EXHAUSTED : SP_OK);
        CHECK_OK(sp_model_release(model));
    }
}

TEST(a_loop_that_grows_for_ever_ends_at_the_runs_limit)
{
    const sp_model_options options = {.max_run_bytes = MIB};
    const sp_memory_stats before = stats();
    writer body = still_body(true);
    sp_model model;
    REQUIRE_OK(load_loop(&body, true, &options, &model));
    CHECK_OK(run_loop(model, 50, 1000));
    CHECK_STATUS(run_loop(model, (int64_t)1 << 62, 1000), SP_EXHAUSTED);
    CHECK_MESSAGE("max_run_bytes allows 1048576");
    CHECK_MESSAGE("the values that the run keeps between partial plans would take ");
    CHECK_OK(run_loop(model, 50, 1000));
    CHECK_OK(sp_model_release(model));
    check_nothing_is_left(&before);
}

/* The body's plan has a large arena. */
TEST(a_plan_of_a_body_is_refused_when_it_is_made)
{
    const sp_model_options options = {.max_run_bytes = MIB};
    const sp_memory_stats before = stats();
    writer body = partial_body(1);
    partial_add_ints(&body, "many", (const int64_t[]){INT64_C(1) << 32, 1}, 2);
    add_node(&body, make_node("Expand", "v many", "large"));
    add_node(&body, partial_node_ints("ReduceMax", "large", "w", "axes", (const int64_t[]){0}, 1));
    add_output(&body, "on");
    add_output(&body, "w");
    sp_model model;
    REQUIRE_OK(load_loop(&body, false, &options, &model));
    CHECK_STATUS(run_loop(model, 2, 4), SP_EXHAUSTED);
    CHECK_MESSAGE("node 'y' (Loop): iteration 0: a run would take ");
    CHECK_MESSAGE("max_run_bytes allows 1048576");
    CHECK_OK(sp_model_release(model));
    check_nothing_is_left(&before);
}

/* w = the maximum of the two rows of concat(v, v), so v: an arena of twice v. */
static sp_status load_doubling(uint64_t max_run_bytes, sp_model *out)
{
    const sp_model_options options = {.max_run_bytes = max_run_bytes};
    writer body = partial_body(1);
    partial_add_ints(&body, "rows", (const int64_t[]){2, -1}, 2);
    add_node(&body, partial_node_int("Concat", "v v", "vv", "axis", 0));
    add_node(&body, make_node("Reshape", "vv rows", "two"));
    writer node = partial_node_ints("ReduceMax", "two", "w", "axes", (const int64_t[]){0}, 1);
    add_attribute_int(&node, "keepdims", 0);
    add_node(&body, node);
    add_output(&body, "on");
    add_output(&body, "w");
    return load_loop(&body, false, &options, out);
}

static sp_status run_doubling(uint64_t max_run_bytes)
{
    sp_model model;
    SP_TRY(load_doubling(max_run_bytes, &model));
    const sp_status status = run_loop(model, 3, 1000);
    CHECK_OK(sp_model_release(model));
    return status;
}

/* Each refusal states the needed amount; with that limit the run gets further. */
TEST(the_arena_counts_beside_what_is_kept)
{
    bool is_sum = false;
    uint64_t most = 1;
    sp_status status;
    while ((status = run_doubling(most)) == SP_EXHAUSTED) {
        const char *number = strstr(sp_last_error(), "would take ");
        REQUIRE(number != NULL);
        is_sum = is_sum || strstr(number, "between its steps, ") != NULL;
        const uint64_t wanted = strtoull(number + strlen("would take "), NULL, 10);
        REQUIRE(wanted > most);
        most = wanted;
    }
    CHECK_OK(status);
    CHECK(is_sum);
    CHECK(most >= 4 * 4000); /* v, w and the arena */
    CHECK_STATUS(run_doubling(most - 1), SP_EXHAUSTED);
}

/* ---- Scan ---- */

/* The body returns `element` floats each time. */
static sp_status load_scan(int64_t element, const sp_model_options *options, sp_model *out)
{
    writer graph = {0}, body = {0};
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    add_input(&body, "e", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(&body, "wide", &element, 1);
    add_node(&body, make_node("ReduceSum", "e", "t"));
    add_node(&body, make_node("Expand", "t wide", "each"));
    partial_add_result(&body, "each", ONNX_FLOAT, &element, 1);
    writer node = make_node("Scan", "x", "y");
    add_attribute_graph(&node, "body", &body);
    add_attribute_int(&node, "num_scan_inputs", 1);
    add_node(&graph, node);
    add_output(&graph, "y");
    return partial_load(&graph, options, out);
}

static sp_status run_scan(sp_model model, int64_t steps, int64_t width)
{
    static float x[4096], y[4096];
    const sp_host_tensor in = {.name = "x",
                               .data = x,
                               .bytes = (uint64_t)(steps * width) * sizeof *x,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {steps, width}};
    sp_host_tensor out = partial_room("y", y, sizeof y);
    return sp_model_run(model, &in, 1, &out, 1);
}

TEST(an_output_of_a_scan_is_refused_before_it_is_made)
{
    const sp_model_options options = {.max_run_bytes = 16 * MIB};
    const sp_memory_stats before = stats();
    sp_model model;
    REQUIRE_OK(load_scan(1 << 20, &options, &model)); /* 4 MiB each time */
    CHECK_STATUS(run_scan(model, 4096, 1), SP_EXHAUSTED);
    CHECK_MESSAGE("node 'y' (Scan): step 0: ");
    CHECK_MESSAGE("max_run_bytes allows 16777216");
    CHECK_OK(sp_model_release(model));
    check_nothing_is_left(&before);
    REQUIRE_OK(load_scan(1, &options, &model));
    CHECK_OK(run_scan(model, 64, 4));
    CHECK_OK(sp_model_release(model));
}

/* 2^36 empty rows take no memory. */
TEST(a_scan_of_too_many_steps_is_refused_at_once)
{
    const sp_model_options options = {.max_loop_trips = 100};
    sp_model model;
    REQUIRE_OK(load_scan(1, &options, &model));
    CHECK_OK(run_scan(model, 100, 4));
    CHECK_STATUS(run_scan(model, (int64_t)1 << 36, 0), SP_EXHAUSTED);
    CHECK_MESSAGE(
        "0 iterations of Loop and Scan and needs 68719476736 more; max_loop_trips allows 100");
    CHECK_OK(sp_model_release(model));
    /* The default limit is 2^30. */
    REQUIRE_OK(load_scan(1, NULL, &model));
    CHECK_STATUS(run_scan(model, (int64_t)1 << 36, 0), SP_EXHAUSTED);
    CHECK_MESSAGE("STREAMPOOL_LOOP_TRIPS allows 1073741824");
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
