/* SPDX-License-Identifier: Apache-2.0 */
/* Scan: running sums along each axis and in both directions, states, and the batches of version 8.
 */
#include <string.h>

#include "base/atomic.h"
#include "base/heap.h"
#include "partial_fixture.h"

/* The directions of a scan; the body is: s += x, with s as scan output. */
typedef struct way {
    int64_t input_axis, output_axis;
    bool is_input_reversed, is_output_reversed;
} way;

static const int64_t one_dim[1] = {-1};

static writer sum_body(void)
{
    writer body = {0};
    add_input(&body, "s", ONNX_FLOAT, one_dim, 1);
    add_input(&body, "e", ONNX_FLOAT, one_dim, 1);
    add_node(&body, make_node("Add", "s e", "t"));
    add_node(&body, make_node("Identity", "t", "each"));
    add_output(&body, "t");
    partial_add_result(&body, "each", ONNX_FLOAT, (const int64_t[]){2}, 1);
    return body;
}

static writer scan_node(const char *inputs, const char *outputs, writer *body, int64_t scans)
{
    writer node = make_node("Scan", inputs, outputs);
    add_attribute_graph(&node, "body", body);
    add_attribute_int(&node, "num_scan_inputs", scans);
    return node;
}

/* The inputs s [m] and x, of rank 2; y is the final sum, z all sums. */
static sp_status load_way(const way *w, sp_model *model)
{
    const int64_t directions[2] = {w->is_input_reversed, w->is_output_reversed};
    writer graph = {0};
    writer body = sum_body();
    add_input(&graph, "s", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    writer node = scan_node("s x", "y z", &body, 1);
    add_attribute_ints(&node, "scan_input_axes", &w->input_axis, 1);
    add_attribute_ints(&node, "scan_output_axes", &w->output_axis, 1);
    add_attribute_ints(&node, "scan_input_directions", &directions[0], 1);
    add_attribute_ints(&node, "scan_output_directions", &directions[1], 1);
    add_node(&graph, node);
    add_output(&graph, "y");
    add_output(&graph, "z");
    return partial_load(&graph, NULL, model);
}

#define STEPS 5
#define WIDTH 2

typedef struct result {
    float y[WIDTH], z[STEPS * WIDTH];
    sp_host_tensor outputs[2];
} result;

static sp_status run(sp_model model, const float *x, int64_t rows, int64_t columns, result *r)
{
    static const float start[WIDTH] = {10, 20};
    sp_host_tensor inputs[2] = {partial_floats("s", start, WIDTH),
                                partial_floats("x", x, rows * columns)};
    inputs[1].rank = 2;
    inputs[1].shape[0] = rows;
    inputs[1].shape[1] = columns;
    memset(r, 0xff, sizeof *r);
    r->outputs[0] = partial_room("y", r->y, sizeof r->y);
    r->outputs[1] = partial_room("z", r->z, sizeof r->z);
    return sp_model_run(model, inputs, 2, r->outputs, 2);
}

/* x in the way's layout: step t of column c is 100 * t + c. */
static void fill(const way *w, float x[STEPS * WIDTH])
{
    for (int t = 0; t < STEPS; t++) {
        for (int c = 0; c < WIDTH; c++) {
            const float value = (float)(100 * t + c);
            x[w->input_axis == 0 ? t * WIDTH + c : c * STEPS + t] = value;
        }
    }
}

static void check_way(const way *w)
{
    sp_model model;
    float x[STEPS * WIDTH];
    result r;
    REQUIRE_OK(load_way(w, &model));
    fill(w, x);
    const bool is_plain = w->input_axis == 0;
    CHECK_OK(run(model, x, is_plain ? STEPS : WIDTH, is_plain ? WIDTH : STEPS, &r));
    CHECK_EQ_INT(r.outputs[1].shape[0], w->output_axis == 0 ? STEPS : WIDTH);
    CHECK_EQ_INT(r.outputs[1].shape[1], w->output_axis == 0 ? WIDTH : STEPS);
    float sums[WIDTH] = {10, 20};
    for (int step = 0; step < STEPS; step++) {
        const int from = w->is_input_reversed ? STEPS - 1 - step : step;
        const int to = w->is_output_reversed ? STEPS - 1 - step : step;
        for (int c = 0; c < WIDTH; c++) {
            sums[c] += (float)(100 * from + c);
            CHECK(r.z[w->output_axis == 0 ? to * WIDTH + c : c * STEPS + to] == sums[c]);
        }
    }
    CHECK_EQ_MEM(r.y, sums, sizeof sums);
    CHECK_OK(sp_model_release(model));
}

TEST(a_scan_walks_along_each_axis_in_both_directions)
{
    static const int64_t output_axes[] = {0, 1, -1};
    for (int64_t input_axis = 0; input_axis < 2; input_axis++) {
        for (size_t a = 0; a < SP_COUNT_OF(output_axes); a++) {
            for (int directions = 0; directions < 4; directions++) {
                check_way(&(way){.input_axis = input_axis,
                                 .output_axis = output_axes[a],
                                 .is_input_reversed = directions % 2 != 0,
                                 .is_output_reversed = directions / 2 != 0});
            }
        }
    }
}

TEST(nothing_to_walk_along_leaves_the_states)
{
    sp_model model;
    result r;
    REQUIRE_OK(load_way(&(way){.output_axis = 1}, &model));
    const float x[1] = {0};
    CHECK_OK(run(model, x, 0, WIDTH, &r));
    CHECK(r.y[0] == 10 && r.y[1] == 20);
    CHECK_EQ_INT(r.outputs[1].shape[0], WIDTH);
    CHECK_EQ_INT(r.outputs[1].shape[1], 0);
    CHECK_OK(sp_model_release(model));
}

/* Two states, two inputs of different axes, and a captured value. */
TEST(states_and_inputs_may_be_several)
{
    writer graph = {0};
    writer body = {0};
    static const char *const names[] = {"a", "b", "p", "q"};
    for (int i = 0; i < 4; i++) {
        add_input(&body, names[i], ONNX_FLOAT, NULL, i < 2 ? 0 : -1);
        add_input(&graph,
                  i == 0   ? "a0"
                  : i == 1 ? "b0"
                  : i == 2 ? "ps"
                           : "qs",
                  ONNX_FLOAT, NULL, -1);
    }
    partial_add_floats(&graph, "half", (const float[]){0.5f}, -1);
    add_node(&graph, make_node("Mul", "half a0", "factor"));
    add_node(&body, make_node("Add", "a p", "a1"));
    add_node(&body, make_node("Mul", "q factor", "q1"));
    add_node(&body, make_node("Add", "b q1", "b1"));
    add_node(&body, make_node("Sub", "a1 b1", "difference"));
    add_output(&body, "a1");
    add_output(&body, "b1");
    add_output(&body, "difference");
    writer node = scan_node("a0 b0 ps qs", "a_end b_end d", &body, 2);
    add_attribute_ints(&node, "scan_input_directions", (const int64_t[]){0, 1}, 2);
    add_node(&graph, node);
    add_output(&graph, "d");
    add_output(&graph, "b_end");
    sp_model model;
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const float a0 = 4;
    const float b0 = 1;
    const float ps[3] = {1, 2, 3};
    const float qs[3] = {10, 20, 30};
    const sp_host_tensor inputs[4] = {partial_floats("a0", &a0, -1), partial_floats("b0", &b0, -1),
                                      partial_floats("ps", ps, 3), partial_floats("qs", qs, 3)};
    float d[3];
    float b_end;
    sp_host_tensor outputs[2] = {partial_room("d", d, sizeof d), partial_room("b_end", &b_end, 4)};
    CHECK_OK(sp_model_run(model, inputs, 4, outputs, 2));
    /* a: 5, 7, 10; b: 61, 101, 121 */
    CHECK(d[0] == 5 - 61 && d[1] == 7 - 101 && d[2] == 10 - 121 && b_end == 121);
    CHECK_OK(sp_model_release(model));
}

/* ---- version 8 ---- */

/* The inputs l (lengths, or left out), s [batch, m] and x [batch, steps, m]. */
static sp_status load_batch(bool has_lengths, int64_t direction, sp_model *model)
{
    writer graph = {0};
    writer body = sum_body();
    if (has_lengths) add_input(&graph, "l", ONNX_INT64, NULL, -1);
    add_input(&graph, "s", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    writer node = scan_node(has_lengths ? "l s x" : "- s x", "y z", &body, 1);
    add_attribute_ints(&node, "directions", &direction, 1);
    add_node(&graph, node);
    add_output(&graph, "y");
    add_output(&graph, "z");
    return partial_load_opset(&graph, 8, model);
}

#define BATCH 3

static sp_status run_batch(sp_model model, const int64_t *lengths, float y[BATCH * WIDTH],
                           float z[BATCH * STEPS * WIDTH])
{
    float s[BATCH * WIDTH] = {0};
    float x[BATCH * STEPS * WIDTH];
    for (int i = 0; i < BATCH * STEPS * WIDTH; i++) x[i] = (float)i;
    for (int i = 0; i < BATCH * WIDTH; i++) s[i] = 1000 * (float)i;
    sp_host_tensor inputs[3] = {partial_floats("s", s, BATCH * WIDTH),
                                partial_floats("x", x, BATCH * STEPS * WIDTH)};
    inputs[0].rank = 2;
    inputs[0].shape[0] = inputs[1].shape[0] = BATCH;
    inputs[0].shape[1] = inputs[1].shape[2] = WIDTH;
    inputs[1].rank = 3;
    inputs[1].shape[1] = STEPS;
    if (lengths != NULL) inputs[2] = partial_ints("l", lengths, BATCH);
    sp_host_tensor outputs[2] = {partial_room("y", y, BATCH * WIDTH * sizeof *y),
                                 partial_room("z", z, BATCH * STEPS * WIDTH * sizeof *z)};
    return sp_model_run(model, inputs, lengths != NULL ? 3 : 2, outputs, 2);
}

static void check_batch(const int64_t *lengths, bool is_reversed)
{
    sp_model model;
    float y[BATCH * WIDTH];
    float z[BATCH * STEPS * WIDTH];
    REQUIRE_OK(load_batch(lengths != NULL, is_reversed ? 1 : 0, &model));
    CHECK_OK(run_batch(model, lengths, y, z));
    for (int b = 0; b < BATCH; b++) {
        const int64_t length = lengths != NULL ? lengths[b] : STEPS;
        for (int c = 0; c < WIDTH; c++) {
            float sum = 1000 * (float)(b * WIDTH + c);
            for (int64_t t = 0; t < STEPS; t++) {
                const int64_t from = is_reversed ? length - 1 - t : t;
                if (t < length) sum += (float)((b * STEPS + from) * WIDTH + c);
                CHECK(z[(b * STEPS + t) * WIDTH + c] == (t < length ? sum : 0));
            }
            CHECK(y[b * WIDTH + c] == sum);
        }
    }
    CHECK_OK(sp_model_release(model));
}

TEST(before_version_9_each_row_of_a_batch_is_a_scan)
{
    static const int64_t lengths[BATCH] = {2, 5, 0};
    check_batch(NULL, false);
    check_batch(NULL, true);
    check_batch(lengths, false);
    check_batch(lengths, true);
}

TEST(lengths_that_no_sequence_has_are_refused)
{
    static const int64_t wrong[2][BATCH] = {{1, 6, 1}, {1, -1, 1}};
    sp_model model;
    float y[BATCH * WIDTH];
    float z[BATCH * STEPS * WIDTH];
    REQUIRE_OK(load_batch(true, 0, &model));
    CHECK_STATUS(run_batch(model, wrong[0], y, z), SP_MISMATCH);
    CHECK_MESSAGE("the sequence length is 6; the inputs have 5 steps");
    CHECK_STATUS(run_batch(model, wrong[1], y, z), SP_MISMATCH);
    CHECK_MESSAGE("the sequence length is -1; it must not be negative");
    CHECK_OK(sp_model_release(model));
}

/* ---- errors ---- */

TEST(axes_that_are_not_there_are_refused)
{
    sp_model model;
    float x[STEPS * WIDTH] = {0};
    result r;
    REQUIRE_OK(load_way(&(way){.input_axis = 2}, &model));
    CHECK_STATUS(run(model, x, STEPS, WIDTH, &r), SP_MISMATCH);
    CHECK_MESSAGE("node 'y' (Scan): axis 2 is outside shape [5,2]");
    CHECK_OK(sp_model_release(model));
    REQUIRE_OK(load_way(&(way){.output_axis = -3}, &model));
    CHECK_STATUS(run(model, x, STEPS, WIDTH, &r), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));
}

/* Elements of the maximum rank: no axis is left for the steps, wherever it is requested. */
static void check_high_rank(int64_t axis, int64_t steps)
{
    static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    const float x = 1;
    float z;
    writer graph = {0};
    writer body = {0};
    sp_model model;
    add_input(&graph, "x", ONNX_FLOAT, one_dim, 1);
    partial_add_ints(&body, "ones", ones, 8);
    add_input(&body, "e", ONNX_FLOAT, NULL, 0);
    add_node(&body, make_node("Reshape", "e ones", "each"));
    partial_add_result(&body, "each", ONNX_FLOAT, ones, 8);
    writer node = scan_node("x", "z", &body, 1);
    add_attribute_ints(&node, "scan_output_axes", &axis, 1);
    add_node(&graph, node);
    add_output(&graph, "z");
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor input = partial_floats("x", &x, steps);
    sp_host_tensor output = partial_room("z", &z, sizeof z);
    CHECK_STATUS(sp_model_run(model, &input, 1, &output, 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("outputs of rank 8 cannot be stacked: that is the highest rank");
    CHECK_OK(sp_model_release(model));
}

TEST(elements_of_the_highest_rank_are_refused)
{
    static const int64_t axes[] = {0, 8, 9, -9, -10};
    for (size_t i = 0; i < SP_COUNT_OF(axes); i++) {
        check_high_rank(axes[i], 1);
        check_high_rank(axes[i], 0);
    }
}

TEST(an_error_in_a_body_says_where_and_when)
{
    sp_model model;
    const float x[STEPS * 3] = {0};
    result r;
    REQUIRE_OK(load_way(&(way){0}, &model));
    CHECK_STATUS(run(model, x, STEPS, 3, &r), SP_MISMATCH);
    CHECK_MESSAGE("node 'y' (Scan): step 0: node 't' (Add): ");
    CHECK_OK(sp_model_release(model));
}

static void check_refused(int64_t scans, const char *attribute, const int64_t *values,
                          uint32_t count, const char *message)
{
    writer graph = {0};
    writer body = sum_body();
    sp_model model;
    add_input(&graph, "s", ONNX_FLOAT, NULL, -1);
    add_input(&graph, "x", ONNX_FLOAT, NULL, -1);
    writer node = scan_node("s x", "y z", &body, scans);
    if (attribute != NULL) add_attribute_ints(&node, attribute, values, count);
    add_node(&graph, node);
    add_output(&graph, "y");
    CHECK_STATUS(partial_load(&graph, NULL, &model), SP_CORRUPT);
    CHECK_MESSAGE(message);
}

TEST(scans_that_do_not_fit_are_refused)
{
    static const int64_t two[2] = {0, 2};
    check_refused(3, NULL, NULL, 0, "the body has 2 inputs, wanted 2, with the last 3 of them");
    check_refused(0, NULL, NULL, 0, "the last 0 of them");
    check_refused(1, "scan_input_axes", two, 2, "wanted 1 numbers");
    check_refused(1, "scan_output_directions", two + 1, 1, "2 is neither 0 nor 1");
}

/* ---- threads, memory ---- */

typedef struct scan_load {
    sp_model model;
    float x[STEPS * WIDTH];
    result want;
    sp_atomic_u64 wrong;
} scan_load;

static void run_scans(void *arg, uint32_t index)
{
    scan_load *load = arg;
    const uint64_t rounds = test_count(200, 6);
    (void)index;
    for (uint64_t i = 0; i < rounds; i++) {
        result r;
        CHECK_OK(run(load->model, load->x, WIDTH, STEPS, &r));
        const bool is_same = memcmp((const void *)r.z, (const void *)load->want.z, sizeof r.z) == 0;
        if (!is_same) sp_fetch_add_relaxed(&load->wrong, (uint64_t)1);
    }
}

TEST(thirty_one_threads_get_the_bits_of_one)
{
    const way w = {.input_axis = 1, .output_axis = 1};
    scan_load load = {0};
    REQUIRE_OK(load_way(&w, &load.model));
    fill(&w, load.x);
    CHECK_OK(run(load.model, load.x, WIDTH, STEPS, &load.want));
    test_threads(31, run_scans, &load);
    CHECK_EQ_U64(sp_load_relaxed(&load.wrong), 0);
    CHECK_OK(sp_model_release(load.model));
}

TEST(an_allocation_that_fails_leaks_nothing)
{
    static const int64_t lengths[BATCH] = {2, 5, 1};
    bool is_done = false;
    for (uint64_t skip = 0; !is_done; skip++) {
        sp_model model;
        float y[BATCH * WIDTH];
        float z[BATCH * STEPS * WIDTH];
        REQUIRE_OK(load_batch(true, 0, &model));
        sp_heap_fail_after(skip);
        const sp_status status = run_batch(model, lengths, y, z);
        is_done = !sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_EQ_INT(status, SP_OUT_OF_MEMORY);
        CHECK_OK(run_batch(model, lengths, y, z));
        CHECK_OK(sp_model_release(model));
    }
}

TEST_MAIN
