/* SPDX-License-Identifier: Apache-2.0 */
/* Models with many inputs and outputs: as many as key-value caches need, and more. */
#include <stdio.h>
#include <string.h>

#include <streampool/plan.h>
#include <streampool/stream.h>

#include "partial_fixture.h"
#include "run_fixture.h"
#include "support/malloc_count.h"

enum { MOST = 700, WIDTH = 4, NAME_BYTES = 16 };

typedef struct many {
    uint32_t count;
    sp_model model;
    char in_names[MOST][NAME_BYTES], out_names[MOST][NAME_BYTES];
    float x[MOST][WIDTH], y[MOST][WIDTH];
    sp_host_tensor inputs[MOST], outputs[MOST];
} many;

static many m; /* too large for a stack */

static sp_host_tensor row(const char *name, float *data)
{
    return (sp_host_tensor){.name = name,
                            .data = data,
                            .bytes = WIDTH * sizeof *data,
                            .capacity = WIDTH * sizeof *data,
                            .dtype = SP_F32,
                            .rank = 1,
                            .shape = {WIDTH}};
}

static void set_tensors(bool has_names)
{
    for (uint32_t i = 0; i < m.count; i++) {
        for (uint32_t k = 0; k < WIDTH; k++) m.x[i][k] = (float)(i * WIDTH + k);
        m.inputs[i] = row(has_names ? m.in_names[i] : NULL, m.x[i]);
        m.outputs[i] = row(has_names ? m.out_names[i] : NULL, m.y[i]);
    }
    memset(m.y, 0xff, sizeof m.y);
}

/* Output i is the negative of input i. */
static void many_open(uint32_t count, bool has_found)
{
    static const int64_t dims[1] = {WIDTH};
    writer graph = {0};
    m.count = count;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(m.in_names[i], NAME_BYTES, "in%u", i);
        snprintf(m.out_names[i], NAME_BYTES, "out%u", i);
        add_input(&graph, m.in_names[i], ONNX_FLOAT, dims, 1);
        add_node(&graph, make_node("Neg", m.in_names[i], m.out_names[i]));
        add_output(&graph, m.out_names[i]);
    }
    if (has_found) {
        partial_add_found(&graph, "picked");
        add_output(&graph, "picked");
    }
    CHECK_OK(partial_load(&graph, NULL, &m.model));
    set_tensors(false);
}

static bool is_right(uint32_t i, const float *y)
{
    for (uint32_t k = 0; k < WIDTH; k++) {
        if (y[k] != -(float)(i * WIDTH + k)) return false;
    }
    return true;
}

static void check_all(void)
{
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < m.count; i++) wrong += !is_right(i, m.y[i]);
    CHECK_EQ_U64(wrong, 0);
}

static void reverse(sp_host_tensor *tensors)
{
    for (uint32_t i = 0; i < m.count / 2; i++) {
        const sp_host_tensor other = tensors[i];
        tensors[i] = tensors[m.count - 1 - i];
        tensors[m.count - 1 - i] = other;
    }
}

static const uint32_t counts[] = {64, 65, 200, MOST};

TEST(tensors_are_given_in_order_or_by_name)
{
    for (size_t c = 0; c < SP_COUNT_OF(counts); c++) {
        many_open(counts[c], false);
        CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
        check_all();
        set_tensors(true);
        reverse(m.inputs);
        reverse(m.outputs);
        CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
        check_all();
        CHECK_EQ_U64(partial_info(m.model).plan_count, 1);
        set_tensors(true);
        CHECK_OK(sp_model_run(m.model, m.inputs, m.count, &m.outputs[m.count - 1], 1));
        CHECK(is_right(m.count - 1, m.y[m.count - 1]));
        CHECK_OK(sp_model_release(m.model));
    }
}

TEST(an_overlap_is_refused_among_many)
{
    many_open(200, false);
    m.outputs[150].data = &m.x[20][WIDTH - 1];
    CHECK_STATUS(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count), SP_INVALID);
    CHECK_MESSAGE("output 'out150' overlaps input 'in20'");
    m.outputs[150].data = m.y[151];
    CHECK_STATUS(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count), SP_INVALID);
    CHECK_MESSAGE("overlaps output 'out15");
    m.outputs[150].data = NULL;
    m.outputs[150].capacity = 0;
    m.inputs[7].data = m.x[8]; /* inputs may overlap */
    CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
    CHECK_EQ_MEM(m.y[7], m.y[8], sizeof m.y[7]);
    sp_host_tensor_free(&m.outputs[150]);
    CHECK_OK(sp_model_release(m.model));
}

TEST(outputs_are_allocated)
{
    many_open(200, false);
    memset(m.outputs, 0, sizeof m.outputs);
    CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
    for (uint32_t i = 0; i < m.count; i++) {
        CHECK(is_right(i, m.outputs[i].data));
        sp_host_tensor_free(&m.outputs[i]);
    }
    CHECK_OK(sp_model_infer(m.model, m.inputs, m.count, m.outputs, m.count));
    CHECK_EQ_U64(m.outputs[m.count - 1].bytes, WIDTH * sizeof(float));
    CHECK_OK(sp_model_release(m.model));
}

TEST(runs_are_submitted)
{
    for (size_t c = 0; c < SP_COUNT_OF(counts); c++) {
        many_open(counts[c], false);
        for (uint64_t round = 0; round < test_count(50, 5); round++) {
            sp_future future;
            set_tensors(round % 2 != 0);
            CHECK_OK(sp_model_submit(m.model, m.inputs, m.count, m.outputs, m.count, &future));
            CHECK_OK(sp_future_wait(future));
            check_all();
            CHECK_OK(sp_future_release(future));
        }
        CHECK_OK(sp_model_release(m.model));
    }
}

static void run_in_function(void *ctx, sp_status status)
{
    (void)ctx;
    CHECK_OK(status);
    CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
    check_all();
    sp_future future;
    set_tensors(true);
    CHECK_OK(sp_model_submit(m.model, m.inputs, m.count, m.outputs, m.count, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    check_all();
}

TEST(a_host_function_runs_them)
{
    many_open(200, false);
    sp_stream stream;
    CHECK_OK(sp_stream_current((sp_device){0}, &stream));
    CHECK_OK(sp_stream_host_function(stream, run_in_function, NULL));
    CHECK_OK(sp_stream_synchronize(stream));
    CHECK_OK(sp_model_release(m.model));
}

TEST(plans_are_read)
{
    many_open(200, false);
    sp_plan plan;
    sp_plan_info info;
    CHECK_OK(sp_plan_create(m.model, m.inputs, m.count, &plan));
    CHECK_OK(sp_plan_get_info(plan, &info));
    CHECK_EQ_U64(info.input_count, m.count);
    CHECK_EQ_U64(info.output_count, m.count);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(m.model));
}

/* One of the outputs has a shape that follows from values, so the others go through a plan that is
 * not the last. */
TEST(partial_plans_have_as_many)
{
    many_open(300, true);
    float x[200] = {1, 0, 2}; /* too many for the plan's key */
    sp_host_tensor inputs[301], outputs[301] = {{0}};
    memcpy(inputs, m.inputs, 300 * sizeof *inputs);
    memcpy(outputs, m.outputs, 300 * sizeof *outputs);
    inputs[300] = partial_floats("x", x, 200);
    CHECK_OK(sp_model_run(m.model, inputs, 301, outputs, 301));
    check_all();
    CHECK_EQ_INT(outputs[300].shape[0], 2);
    CHECK(partial_info(m.model).partial_plan_count > 0);
    sp_host_tensor_free(&outputs[300]);
    CHECK_OK(sp_model_release(m.model));
}

/* y = x + b0 + b1 + ..., where each b is an initializer and an input. */
TEST(any_number_of_initializers_is_overridden)
{
    enum { DEFAULTS = 200 };
    static char names[DEFAULTS][NAME_BYTES];
    static const int64_t dims[1] = {WIDTH};
    static const float zero[WIDTH];
    float b[WIDTH] = {1, 2, 3, 4}, x[WIDTH] = {0}, y[WIDTH];
    writer graph = {0};
    sp_host_tensor inputs[1 + DEFAULTS] = {row("x", x)};
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    char last[NAME_BYTES] = "x";
    for (int i = 0; i < DEFAULTS; i++) {
        char both[2 * NAME_BYTES], sum[NAME_BYTES];
        snprintf(names[i], NAME_BYTES, "b%d", i);
        partial_add_floats(&graph, names[i], zero, WIDTH);
        add_input(&graph, names[i], ONNX_FLOAT, dims, 1);
        snprintf(both, sizeof both, "%s b%d", last, i);
        snprintf(sum, sizeof sum, "s%d", i);
        add_node(&graph, make_node("Add", both, sum));
        memcpy(last, sum, sizeof last);
        inputs[1 + i] = row(names[i], b);
    }
    add_output(&graph, last);
    sp_model model = {0};
    CHECK_OK(partial_load(&graph, NULL, &model));
    sp_host_tensor output = row(NULL, y);
    CHECK_OK(sp_model_run(model, inputs, 1 + DEFAULTS, &output, 1));
    for (int k = 0; k < WIDTH; k++) CHECK(y[k] == (float)(DEFAULTS * (k + 1)));
    sp_future future;
    CHECK_OK(sp_model_submit(model, inputs, 1 + DEFAULTS, &output, 1, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_run(model, inputs, 1, &output, 1));
    for (int k = 0; k < WIDTH; k++) CHECK(y[k] == 0.0f);
    inputs[DEFAULTS] = inputs[1];
    CHECK_STATUS(sp_model_run(model, inputs, 1 + DEFAULTS, &output, 1), SP_INVALID);
    CHECK_MESSAGE("input 'b0' was given twice");
    CHECK_OK(sp_model_release(model));
}

TEST(a_name_that_is_not_found_lists_those_that_exist)
{
    uint32_t index;
    many_open(200, false);
    m.inputs[3].name = "nowhere";
    CHECK_STATUS(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count), SP_NOT_FOUND);
    CHECK_MESSAGE("the model has no input 'nowhere'; it has: in0, in1, in2, ");
    CHECK_MESSAGE(", ...");
    CHECK_STATUS(sp_model_find_input(m.model, "nowhere", &index), SP_NOT_FOUND);
    CHECK_MESSAGE("it has: in0, in1, ");
    CHECK_MESSAGE(", ...");
    set_tensors(false);
    m.outputs[5].name = "nothing";
    CHECK_STATUS(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count), SP_NOT_FOUND);
    CHECK_MESSAGE("the model has no output 'nothing'; it has: out0, out1, ");
    CHECK_STATUS(sp_model_infer(m.model, m.inputs, m.count, m.outputs, m.count), SP_NOT_FOUND);
    CHECK_OK(sp_model_release(m.model));
    const sp_model small = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    sp_host_tensor q = {.name = "q"};
    CHECK_STATUS(sp_model_run(small, &x, 1, &q, 1), SP_NOT_FOUND);
    CHECK_MESSAGE("the model has no output 'q'; it has: y");
    CHECK_STATUS(sp_model_run(small, &q, 1, NULL, 0), SP_NOT_FOUND);
    CHECK_MESSAGE("the model has no input 'q'; it has: x");
    CHECK_OK(sp_model_release(small));
}

TEST(up_to_64_of_each_no_later_run_allocates)
{
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    many_open(64, false);
    CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
    const uint64_t before = malloc_count();
    for (int i = 0; i < 20; i++) {
        CHECK_OK(sp_model_run(m.model, m.inputs, m.count, m.outputs, m.count));
    }
    CHECK_EQ_U64(malloc_count() - before, 0);
    check_all();
    CHECK_OK(sp_model_release(m.model));
}

static void run_many(void *arg, uint32_t index)
{
    (void)arg;
    (void)index;
    for (uint64_t round = 0; round < test_count(50, 5); round++) {
        static const uint32_t step = 13;
        sp_host_tensor outputs[MOST / 13] = {{0}};
        uint32_t count = 0;
        for (uint32_t i = 0; i + step < m.count; i += step) {
            outputs[count++].name = m.out_names[i];
        }
        CHECK_OK(sp_model_run(m.model, m.inputs, m.count, outputs, count));
        for (uint32_t i = 0; i < count; i++) {
            CHECK(is_right(i * step, outputs[i].data));
            sp_host_tensor_free(&outputs[i]);
        }
    }
}

TEST(threads_run_them_at_the_same_time)
{
    many_open(200, false);
    test_threads(6, run_many, NULL);
    CHECK_OK(sp_model_release(m.model));
}

TEST_MAIN
