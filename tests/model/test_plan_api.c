/* SPDX-License-Identifier: Apache-2.0 */
/* Plans through the public API: their properties, and every kind of invalid call. */
#include <streampool/plan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "partial_fixture.h"
#include "run_fixture.h"

static sp_plan_info info_of(sp_plan plan)
{
    sp_plan_info info = {0};
    CHECK_OK(sp_plan_get_info(plan, &info));
    return info;
}

static sp_plan small_plan(sp_model model, int64_t rows)
{
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {rows, 4}};
    sp_plan plan = {0};
    CHECK_OK(sp_plan_create(model, &x, 1, &plan));
    return plan;
}

/* ---- properties of a plan ---- */

TEST(a_plan_has_the_counts_of_the_one_that_runs)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    CHECK_EQ_U64(model_info_of(model).plan_builds, 0); /* it is not in the model's cache */
    small_run(model);
    const sp_model_info ran = model_info_of(model);
    const sp_plan_info info = info_of(plan);
    CHECK_EQ_U64(ran.plan_builds, 1);
    CHECK_EQ_U64(info.step_count, ran.step_count);
    CHECK_EQ_U64(info.segment_count, ran.segment_count);
    CHECK_EQ_U64(info.cpu_step_count, 0);
    CHECK_EQ_U64(info.weight_bytes, ran.weight_bytes);
    CHECK_EQ_U64(info.device.bits, ran.device.bits);
    CHECK(!info.is_partial);
    CHECK_EQ_U64(info.stop_count, 0);
    CHECK_EQ_U64(info.loop_count, 0);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

TEST(a_plan_tells_its_inputs_and_outputs_for_the_shapes_given)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 5);
    sp_host_tensor tensor;
    CHECK_EQ_U64(info_of(plan).input_count, 1);
    CHECK_EQ_U64(info_of(plan).output_count, 1);
    CHECK_OK(sp_plan_get_input(plan, 0, &tensor));
    CHECK_EQ_STR(tensor.name, "x");
    CHECK_EQ_U64(tensor.bytes, 5 * 4 * 4);
    CHECK(tensor.data == NULL);
    CHECK_OK(sp_plan_get_output(plan, 0, &tensor));
    CHECK_EQ_STR(tensor.name, "y");
    CHECK_EQ_INT(tensor.dtype, SP_F32);
    CHECK_EQ_U64(tensor.rank, 2);
    CHECK_EQ_INT(tensor.shape[0], 5);
    CHECK_EQ_INT(tensor.shape[1], 3);
    CHECK_EQ_U64(tensor.bytes, 5 * 3 * 4);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

TEST(an_overridden_default_is_an_input_of_the_plan)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor inputs[2] = {{.dtype = SP_F32, .rank = 2, .shape = {1, 4}},
                                      {.name = "b", .dtype = SP_F32, .rank = 1, .shape = {3}}};
    sp_plan plan;
    sp_host_tensor tensor;
    REQUIRE_OK(sp_plan_create(model, inputs, 2, &plan));
    CHECK_EQ_U64(info_of(plan).input_count, 2);
    CHECK_OK(sp_plan_get_input(plan, 1, &tensor));
    CHECK_EQ_STR(tensor.name, "b");
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

TEST(steps_name_their_operators_and_what_they_read_and_write)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 2);
    sp_plan_step_info step;
    REQUIRE_OK(sp_plan_get_step(plan, 0, &step));
    CHECK_EQ_STR(step.op, "MatMul");
    CHECK_EQ_STR(step.node, "p"); /* the file's node has no name: that of its output */
    CHECK(strstr(step.kernel, "f32") != NULL);
    CHECK(step.grid[0] * step.grid[1] * step.grid[2] > 0);
    CHECK(step.read_bytes >= 2 * 4 * 4 + 4 * 3 * 4); /* x, and w, which is packed */
    CHECK_EQ_U64(step.written_bytes, 2 * 3 * 4);
    CHECK_EQ_U64(step.segment, 0);
    CHECK_EQ_U64(step.multiply_adds, 2 * 4 * 3);
    CHECK_OK(sp_plan_get_step(plan, info_of(plan).step_count - 1, &step));
    CHECK(strstr(step.op, "Tanh") != NULL); /* alone, or fused into the Add */
    CHECK_EQ_U64(step.multiply_adds, 0);
    CHECK_EQ_U64(step.written_bytes, 2 * 3 * 4);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* A node of floats or doubles, whose operands are inputs. */
typedef struct product_case {
    const char *op, *attribute; /* NULL: none */
    int64_t value;              /* of the attribute */
    int type;                   /* of ONNX */
    sp_dtype dtype;
    int rank;
    int64_t shapes[3][4];
    uint32_t input_count;
    uint64_t multiply_adds;
} product_case;

static const product_case products[] = {
    {"Gemm", NULL, 0, ONNX_FLOAT, SP_F32, 2, {{2, 4}, {4, 3}}, 2, 2 * 4 * 3},
    {"Gemm", "transB", 1, ONNX_FLOAT, SP_F32, 2, {{2, 4}, {3, 4}}, 2, 2 * 4 * 3},
    {"MatMul", NULL, 0, ONNX_FLOAT, SP_F32, 3, {{2, 3, 4}, {2, 4, 5}}, 2, 2 * 3 * 4 * 5},
    {"MatMul", NULL, 0, ONNX_DOUBLE, SP_F64, 3, {{2, 3, 4}, {2, 4, 5}}, 2, 2 * 3 * 4 * 5},
    {"Conv", NULL, 0, ONNX_FLOAT, SP_F32, 4, {{2, 4, 5, 6}, {3, 4, 3, 3}}, 2, 2 * 3 * 3 * 4 * 36},
    {"Conv", "group", 4, ONNX_FLOAT, SP_F32, 4, {{1, 4, 5, 6}, {4, 1, 3, 3}}, 2, 4 * 3 * 4 * 9},
    {"ConvTranspose", NULL, 0, ONNX_FLOAT, SP_F32, 4, {{1, 2, 4, 4}, {2, 3, 2, 2}}, 2, 32 * 12},
    {"LSTM",
     "hidden_size",
     5,
     ONNX_FLOAT,
     SP_F32,
     3,
     {{2, 3, 4}, {1, 20, 4}, {1, 20, 5}},
     3,
     2 * 3 * 20 * (4 + 5)},
    {"GRU",
     "hidden_size",
     5,
     ONNX_FLOAT,
     SP_F32,
     3,
     {{2, 3, 4}, {1, 15, 4}, {1, 15, 5}},
     3,
     2 * 3 * 15 * (4 + 5)},
    {"RNN",
     "hidden_size",
     5,
     ONNX_FLOAT,
     SP_F32,
     3,
     {{2, 3, 4}, {1, 5, 4}, {1, 5, 5}},
     3,
     2 * 3 * 5 * (4 + 5)},
};

static sp_plan product_plan(const product_case *c)
{
    static const char *const names[] = {"a", "b", "c"};
    writer graph = {0}, node = make_node(c->op, c->input_count == 3 ? "a b c" : "a b", "y");
    sp_host_tensor inputs[3] = {0};
    sp_model model;
    sp_plan plan = {0};
    if (c->attribute != NULL) add_attribute_int(&node, c->attribute, c->value);
    for (uint32_t i = 0; i < c->input_count && i < SP_COUNT_OF(names); i++) {
        add_input(&graph, names[i], c->type, c->shapes[i], c->rank);
        inputs[i] = (sp_host_tensor){.dtype = c->dtype, .rank = (uint32_t)c->rank};
        memcpy(inputs[i].shape, c->shapes[i], sizeof c->shapes[i]);
    }
    add_node(&graph, node);
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, NULL, &model));
    CHECK_OK(sp_plan_create(model, inputs, c->input_count, &plan));
    CHECK_OK(sp_model_release(model));
    return plan;
}

TEST(steps_count_the_multiply_adds_of_products)
{
    for (size_t i = 0; i < SP_COUNT_OF(products); i++) {
        const sp_plan plan = product_plan(&products[i]);
        uint64_t sum = 0;
        sp_plan_step_info step;
        for (uint32_t s = 0; sp_plan_get_step(plan, s, &step) == SP_OK; s++) {
            CHECK_EQ_STR(step.op, products[i].op);
            sum += step.multiply_adds;
        }
        CHECK_EQ_U64(sum, products[i].multiply_adds);
        CHECK_OK(sp_plan_release(plan));
    }
}

TEST(buffers_are_within_the_arena_and_do_not_overlap_while_both_are_used)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 100);
    const sp_plan_info info = info_of(plan);
    CHECK(info.buffer_count > 0);
    for (uint32_t i = 0; i < info.buffer_count; i++) {
        sp_plan_buffer_info a;
        REQUIRE_OK(sp_plan_get_buffer(plan, i, &a));
        CHECK_EQ_U64(a.offset % 64, 0);
        CHECK(a.offset + a.bytes <= info.arena_bytes);
        CHECK(a.first_step <= a.last_step && a.last_step < info.step_count);
        for (uint32_t k = 0; k < i; k++) {
            sp_plan_buffer_info b;
            CHECK_OK(sp_plan_get_buffer(plan, k, &b));
            CHECK(b.first_step <= a.first_step);
            const bool is_apart = a.offset >= b.offset + b.bytes || b.offset >= a.offset + a.bytes;
            CHECK(is_apart || a.first_step >= b.last_step);
        }
    }
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

TEST(kinds_of_devices_say_which_kernels_they_have)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    bool has = false;
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "cpu", &has));
    CHECK(has);
    has = false;
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "null", &has));
    CHECK(has);
    has = false;
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "cuda", &has)); /* whether there is a GPU or not */
    CHECK(has);
    CHECK_STATUS(sp_plan_step_has_kernel(plan, 0, "vulkan", &has), SP_NOT_FOUND);
    CHECK_MESSAGE("\"vulkan\"");
    CHECK_STATUS(sp_plan_step_has_kernel(plan, 0, NULL, &has), SP_INVALID);
    CHECK_STATUS(sp_plan_step_has_kernel(plan, 99, "cpu", &has), SP_NOT_FOUND);
    CHECK_STATUS(sp_plan_step_has_kernel(plan, 0, "cpu", NULL), SP_INVALID);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* cpu has a kernel for it, GPUs have none. */
TEST(a_kind_without_a_kernel_says_so)
{
    static const int64_t dims[] = {4};
    writer graph = {0};
    add_input(&graph, "x", ONNX_DOUBLE, dims, 1);
    add_node(&graph, make_node("Abs", "x", "y"));
    add_output(&graph, "y");
    sp_model model;
    sp_plan plan;
    bool has = true;
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {.dtype = SP_F64, .rank = 1, .shape = {4}};
    REQUIRE_OK(sp_plan_create(model, &x, 1, &plan));
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "cuda", &has));
    CHECK(!has);
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "cpu", &has));
    CHECK(has);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* ---- segments ---- */

TEST(a_plan_of_cpu_is_one_segment)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    sp_plan_segment_info segment;
    REQUIRE_OK(sp_plan_get_segment(plan, 0, &segment));
    CHECK_EQ_U64(segment.first_step, 0);
    CHECK_EQ_U64(segment.step_count, info_of(plan).step_count);
    CHECK_EQ_U64(segment.device.bits, model_info_of(model).device.bits);
    CHECK_EQ_U64(segment.copy_in_count, 1); /* of a device with its own memory */
    CHECK_EQ_U64(segment.copy_in_bytes, 4 * 4);
    CHECK_EQ_U64(segment.copy_out_count, 1);
    CHECK_EQ_U64(segment.copy_out_bytes, 3 * 4);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* STREAMPOOL_CPU_OPS=MatMul, for models of devices other than cpu. */
TEST(segments_say_which_steps_run_on_cpu_and_what_is_copied)
{
    sp_device cpu;
    sp_model_options options = {0};
    CHECK_OK(sp_device_at(0, &cpu));
    REQUIRE_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    const sp_plan plan = small_plan(model, 2);
    const sp_plan_info info = info_of(plan);
    CHECK_EQ_U64(info.cpu_step_count, 1);
    CHECK_EQ_U64(info.segment_count, 3);
    sp_plan_segment_info segments[3];
    for (uint32_t i = 0; i < 3; i++) REQUIRE_OK(sp_plan_get_segment(plan, i, &segments[i]));
    CHECK_EQ_U64(segments[0].device.bits, options.device.bits);
    CHECK_EQ_U64(segments[0].step_count, 0);
    CHECK_EQ_U64(segments[1].device.bits, cpu.bits);
    CHECK_EQ_U64(segments[1].first_step, 0);
    CHECK_EQ_U64(segments[1].step_count, 1);
    CHECK_EQ_U64(segments[1].copy_in_count + segments[1].copy_out_count, 0);
    CHECK_EQ_U64(segments[2].device.bits, options.device.bits);
    CHECK_EQ_U64(segments[2].first_step, 1);
    CHECK_EQ_U64(segments[2].step_count, info.step_count - 1);
    CHECK_EQ_U64(segments[2].copy_in_count, 1); /* what MatMul wrote */
    CHECK(segments[2].copy_in_bytes >= 2 * 3 * 4);
    for (uint32_t i = 0; i < info.step_count; i++) {
        sp_plan_step_info step;
        CHECK_OK(sp_plan_get_step(plan, i, &step));
        CHECK_EQ_U64(step.segment, i == 0 ? 1 : 2);
    }
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

/* ---- partial plans ---- */

TEST(a_partial_plan_names_where_it_ends)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Relu", "values", "y"));
    add_output(&graph, "y");
    sp_model model;
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 1, .shape = {8}};
    sp_plan plan;
    REQUIRE_OK(sp_plan_create(model, &x, 1, &plan));
    const sp_plan_info info = info_of(plan);
    CHECK(info.is_partial);
    CHECK_EQ_U64(info.loop_count, 0);
    REQUIRE(info.stop_count == 1);
    sp_plan_stop_info stop;
    CHECK_OK(sp_plan_get_stop(plan, 0, &stop));
    CHECK_EQ_STR(stop.op, "NonZero");
    CHECK(!stop.is_condition);
    CHECK(stop.name[0] != '\0');
    CHECK_STATUS(sp_plan_get_stop(plan, 1, &stop), SP_NOT_FOUND);
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* y = (any element of x is above 0) ? Relu(x) : Tanh(x), a condition that a run must compute
 * first. */
TEST(a_partial_plan_names_the_condition_that_it_needs)
{
    static const int64_t dims[] = {4};
    writer graph = {0}, then_branch = {0}, else_branch = {0};
    add_node(&then_branch, make_node("Relu", "x", "result"));
    add_output(&then_branch, "result");
    add_node(&else_branch, make_node("Tanh", "x", "result"));
    add_output(&else_branch, "result");
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    partial_add_floats(&graph, "zero", (const float[]){0}, -1);
    add_node(&graph, partial_node_int("ReduceMax", "x", "most", "keepdims", 0));
    add_node(&graph, make_node("Greater", "most zero", "is_above"));
    add_node(&graph, partial_if("is_above", "y", &then_branch, &else_branch));
    add_output(&graph, "y");
    sp_model model;
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 1, .shape = {4}};
    sp_plan plan;
    sp_plan_stop_info stop;
    REQUIRE_OK(sp_plan_create(model, &x, 1, &plan));
    CHECK(info_of(plan).is_partial);
    REQUIRE(info_of(plan).stop_count == 1);
    CHECK_OK(sp_plan_get_stop(plan, 0, &stop));
    CHECK(stop.is_condition);
    CHECK_EQ_STR(stop.name, "is_above");
    CHECK_EQ_STR(stop.op, "If");
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

/* ---- the times of steps ---- */

#define SMALL_STEPS 2 /* MatMul, Add+Tanh */

static sp_status small_time(sp_model model, float *y, uint64_t *step_ns, uint32_t step_count)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor out = output_y(y, SMALL_OUT);
    return sp_model_time_steps(model, &x, 1, &out, 1, step_ns, step_count);
}

TEST(a_run_whose_steps_are_timed_has_the_bits_of_a_run)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    uint64_t step_ns[SMALL_STEPS] = {UINT64_MAX, UINT64_MAX};
    small_row row = {0};
    const uint64_t runs = model_info_of(model).runs;
    float y[SMALL_OUT];
    CHECK_OK(small_time(model, y, step_ns, SMALL_STEPS));
    memcpy(row.bytes, y, sizeof y);
    CHECK(small_is_same(&row, &expected));
    for (uint32_t i = 0; i < SMALL_STEPS; i++) CHECK(step_ns[i] < UINT64_C(60000000000));
    CHECK(step_ns[0] + step_ns[1] > 0);
    CHECK_EQ_U64(model_info_of(model).runs, runs);
    /* Outputs may also be the library's. */
    const sp_host_tensor x = input_x(1);
    sp_host_tensor out = {0};
    CHECK_OK(sp_model_time_steps(model, &x, 1, &out, 1, step_ns, SMALL_STEPS));
    REQUIRE(out.data != NULL);
    memcpy(row.bytes, out.data, sizeof row.bytes);
    CHECK(small_is_same(&row, &expected));
    sp_host_tensor_free(&out);
    CHECK_OK(sp_model_time_steps(model, &x, 1, NULL, 0, step_ns, SMALL_STEPS));
    CHECK_OK(sp_model_release(model));
}

TEST(steps_cannot_be_timed_with_other_counts_or_inputs)
{
    const sp_model model = small_model(NULL);
    uint64_t step_ns[SMALL_STEPS + 1];
    float y[SMALL_OUT];
    CHECK_STATUS(small_time(model, y, NULL, SMALL_STEPS), SP_INVALID);
    CHECK_MESSAGE("step_ns is NULL");
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS + 1), SP_MISMATCH);
    CHECK_MESSAGE("has 2 steps; there is room for 3");
    CHECK_STATUS(small_time((sp_model){0}, y, step_ns, SMALL_STEPS), SP_INVALID);
    CHECK_STATUS(sp_model_time_steps(model, NULL, 0, NULL, 0, step_ns, SMALL_STEPS), SP_MISMATCH);
    CHECK_MESSAGE("input 'x' is missing");
    const sp_host_tensor x = input_x(1);
    sp_host_tensor none = {.name = "none"};
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, &none, 1, step_ns, SMALL_STEPS), SP_NOT_FOUND);
    sp_host_tensor narrow = output_y(y, SMALL_OUT);
    narrow.capacity = 1;
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, &narrow, 1, step_ns, SMALL_STEPS), SP_MISMATCH);
    CHECK_OK(sp_model_release(model));
}

TEST(steps_are_timed_on_the_cpu_only)
{
    sp_model_options options = {0};
    uint64_t step_ns[SMALL_STEPS];
    float y[SMALL_OUT];
    REQUIRE_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS), SP_UNSUPPORTED);
    CHECK_MESSAGE("on the cpu only; its device is null");
    CHECK_OK(sp_device_close(options.device));
    CHECK_STATUS(small_time(model, y, step_ns, SMALL_STEPS), SP_CLOSED);
    CHECK_OK(sp_model_release(model));
}

TEST(the_steps_of_a_partial_plan_are_not_timed)
{
    writer graph = {0};
    partial_add_found(&graph, "values");
    add_node(&graph, make_node("Relu", "values", "y"));
    add_output(&graph, "y");
    sp_model model;
    uint64_t step_ns[8];
    float values[256] = {0}; /* too many for the key of a plan */
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {
        .data = values, .bytes = sizeof values, .dtype = SP_F32, .rank = 1, .shape = {256}};
    CHECK_STATUS(sp_model_time_steps(model, &x, 1, NULL, 0, step_ns, 8), SP_UNSUPPORTED);
    CHECK_MESSAGE("if one plan computes it");
    CHECK_OK(sp_model_release(model));
}

TEST(without_memory_no_steps_are_timed_and_nothing_stays_behind)
{
    const sp_model model = small_model(NULL);
    uint64_t step_ns[SMALL_STEPS];
    small_run(model);
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        const sp_host_tensor x = input_x(1);
        sp_host_tensor out = {0};
        sp_heap_fail_after(skip);
        const sp_status status = sp_model_time_steps(model, &x, 1, &out, 1, step_ns, SMALL_STEPS);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        sp_host_tensor_free(&out);
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- invalid calls ---- */

typedef sp_status (*plan_question)(sp_plan plan, uint32_t index, bool has_place);

static sp_status ask_input(sp_plan plan, uint32_t index, bool has_place)
{
    sp_host_tensor out;
    return sp_plan_get_input(plan, index, has_place ? &out : NULL);
}

static sp_status ask_output(sp_plan plan, uint32_t index, bool has_place)
{
    sp_host_tensor out;
    return sp_plan_get_output(plan, index, has_place ? &out : NULL);
}

static sp_status ask_step(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_step_info out;
    return sp_plan_get_step(plan, index, has_place ? &out : NULL);
}

static sp_status ask_kernel(sp_plan plan, uint32_t index, bool has_place)
{
    bool out;
    return sp_plan_step_has_kernel(plan, index, "cpu", has_place ? &out : NULL);
}

static sp_status ask_segment(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_segment_info out;
    return sp_plan_get_segment(plan, index, has_place ? &out : NULL);
}

static sp_status ask_buffer(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_buffer_info out;
    return sp_plan_get_buffer(plan, index, has_place ? &out : NULL);
}

static sp_status ask_stop(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_stop_info out;
    return sp_plan_get_stop(plan, index, has_place ? &out : NULL);
}

static sp_status ask_info(sp_plan plan, uint32_t index, bool has_place)
{
    sp_plan_info out;
    (void)index;
    return sp_plan_get_info(plan, has_place ? &out : NULL);
}

/* Those with an index first. */
static const plan_question questions[] = {ask_input,   ask_output, ask_step, ask_kernel,
                                          ask_segment, ask_buffer, ask_stop, ask_info};
enum { INDEXED_QUESTIONS = SP_COUNT_OF(questions) - 1 };

TEST(an_index_past_the_end_is_not_found)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    for (size_t i = 0; i < INDEXED_QUESTIONS; i++) {
        CHECK_STATUS(questions[i](plan, 1000, true), SP_NOT_FOUND);
        CHECK_MESSAGE("none with index 1000");
        CHECK_STATUS(questions[i](plan, UINT32_MAX, true), SP_NOT_FOUND);
    }
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

static void expect_invalid(sp_plan plan, const char *message)
{
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](plan, 0, true), SP_INVALID);
        CHECK_MESSAGE(message);
    }
    CHECK_STATUS(sp_plan_retain(plan), SP_INVALID);
    CHECK_MESSAGE(message);
    if (plan.bits == 0) return; /* the release of the zero handle succeeds */
    CHECK_STATUS(sp_plan_release(plan), SP_INVALID);
    CHECK_MESSAGE(message);
}

TEST(zero_forged_and_stale_plans_are_invalid_in_every_call)
{
    const sp_model model = small_model(NULL);
    const sp_plan live = small_plan(model, 1);
    const sp_plan stale = small_plan(model, 1);
    CHECK_OK(sp_plan_release(stale));
    expect_invalid((sp_plan){0}, "the zero handle");
    expect_invalid(stale, "stale");
    expect_invalid((sp_plan){live.bits | 0xfffffff}, "stale");
    expect_invalid((sp_plan){model.bits}, "no plan handle");
    for (size_t i = 0; i < SP_COUNT_OF(questions); i++) {
        CHECK_STATUS(questions[i](live, 0, false), SP_INVALID); /* out is NULL */
    }
    CHECK_OK(sp_plan_release((sp_plan){0}));
    CHECK_OK(sp_plan_retain(live));
    CHECK_OK(sp_plan_release(live));
    CHECK_OK(ask_info(live, 0, true));
    CHECK_OK(sp_plan_release(live));
    CHECK_OK(sp_model_release(model));
}

static void expect_refused(sp_model model, const sp_host_tensor *inputs, uint32_t count,
                           sp_status status, const char *message)
{
    sp_plan plan = {1};
    CHECK_STATUS(sp_plan_create(model, inputs, count, &plan), status);
    CHECK_MESSAGE(message);
    CHECK_EQ_U64(plan.bits, 0);
}

TEST(wrong_inputs_make_no_plan)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    const sp_host_tensor twice[2] = {x, {.name = "x", .dtype = SP_F32, .rank = 2, .shape = {1, 4}}};
    const sp_host_tensor wide = {.dtype = SP_F32, .rank = 2, .shape = {1, 5}};
    const sp_host_tensor doubles = {.dtype = SP_F64, .rank = 2, .shape = {1, 4}};
    const sp_host_tensor untyped = {.rank = 2, .shape = {1, 4}};
    const sp_host_tensor huge = {.dtype = SP_F32, .rank = 2, .shape = {INT64_MAX, 4}};
    const sp_host_tensor named = {.name = "z", .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    expect_refused(model, NULL, 0, SP_MISMATCH, "input 'x' is missing");
    expect_refused(model, NULL, 1, SP_INVALID, "no inputs");
    expect_refused(model, twice, 2, SP_INVALID, "given twice");
    expect_refused(model, &wide, 1, SP_MISMATCH, "'x'");
    expect_refused(model, &doubles, 1, SP_MISMATCH, "'x'");
    expect_refused(model, &untyped, 1, SP_MISMATCH, "no dtype");
    expect_refused(model, &huge, 1, SP_EXHAUSTED, "'x'");
    expect_refused(model, &named, 1, SP_NOT_FOUND, "no input 'z'");
    expect_refused((sp_model){0}, &x, 1, SP_INVALID, "the zero handle");
    CHECK_STATUS(sp_plan_create(model, &x, 1, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

/* Of the model y = tanh(x * w + b): its own list goes before STREAMPOOL_CPU_OPS=MatMul. */
TEST(a_model_says_which_ops_run_on_cpu)
{
    static const struct {
        const char *ops, *name;
        uint32_t steps;
    } cases[] = {{NULL, "MatMul", 1}, {"", "", 0}, {"Conv, Tanh", "Tanh", 1}};
    sp_model_options options = {0};
    REQUIRE_OK(sp_device_open("null", &options.device));
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        char ops[16] = "";
        if (cases[i].ops != NULL) snprintf(ops, sizeof ops, "%s", cases[i].ops);
        options.cpu_ops = cases[i].ops != NULL ? ops : NULL;
        const sp_model model = small_model(&options);
        memset(ops, 'x', sizeof ops); /* the load has copied it */
        const sp_plan plan = small_plan(model, 1);
        CHECK_EQ_U64(info_of(plan).cpu_step_count, cases[i].steps);
        small_run(model);
        CHECK_EQ_U64(model_info_of(model).cpu_step_count, cases[i].steps);
        sp_model_cpu_op op = {0};
        CHECK_STATUS(sp_model_get_cpu_op(model, 0, &op), cases[i].steps > 0 ? SP_OK : SP_NOT_FOUND);
        CHECK(strstr(op.name, cases[i].name) != NULL); /* Add+Tanh is one step */
        CHECK_OK(sp_plan_release(plan));
        CHECK_OK(sp_model_release(model));
    }
    CHECK_OK(sp_device_close(options.device));
}

TEST(a_plan_of_a_closed_device_is_refused)
{
    sp_model_options options = {0};
    REQUIRE_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    const sp_plan before = small_plan(model, 1);
    CHECK_OK(sp_device_close(options.device));
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    expect_refused(model, &x, 1, SP_CLOSED, "");
    CHECK_OK(ask_info(before, 0, true)); /* existing plans stay readable */
    CHECK_OK(ask_step(before, 0, true));
    CHECK_OK(ask_segment(before, 0, true));
    CHECK_OK(sp_plan_release(before));
    CHECK_OK(sp_model_release(model));
}

TEST(without_memory_there_is_no_plan_and_nothing_stays_behind)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    CHECK_OK(sp_plan_release(small_plan(model, 1))); /* allocates the slab of the handle table */
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_plan plan;
        sp_heap_fail_after(skip);
        const sp_status status = sp_plan_create(model, &x, 1, &plan);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        CHECK_OK(sp_plan_release(plan));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- life cycle and threads ---- */

TEST(a_plan_outlives_the_handle_of_its_model)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_model_retain(model), SP_INVALID);
    sp_plan_step_info step;
    CHECK_OK(sp_plan_get_step(plan, 0, &step));
    CHECK_EQ_STR(step.op, "MatMul");
    CHECK_OK(sp_plan_release(plan));
}

TEST(a_plan_is_made_past_the_limit_of_memory_and_of_plans)
{
    const sp_model_options options = {.max_plans = 1, .max_run_bytes = 1};
    const sp_model model = small_model(&options);
    const sp_plan a = small_plan(model, 1);
    const sp_plan b = small_plan(model, 64);
    CHECK(info_of(b).arena_bytes > info_of(a).arena_bytes);
    CHECK(info_of(b).arena_bytes > 1);
    CHECK_OK(sp_plan_release(a));
    CHECK_OK(sp_plan_release(b));
    CHECK_OK(sp_model_release(model));
}

typedef struct plan_load {
    sp_model model;
    sp_plan shared;
    sp_plan_info expected;
    uint64_t rounds;
} plan_load;

static void read_and_make_plans(void *arg, uint32_t index)
{
    const plan_load *load = arg;
    for (uint64_t i = 0; i < load->rounds; i++) {
        const sp_plan mine = small_plan(load->model, 1 + (index + (int64_t)i) % 3);
        const sp_plan_info info = info_of(load->shared);
        CHECK_EQ_U64(info.step_count, load->expected.step_count);
        CHECK_EQ_U64(info.arena_bytes, load->expected.arena_bytes);
        CHECK_OK(sp_plan_retain(load->shared));
        for (uint32_t s = 0; s < info.step_count; s++) {
            sp_plan_step_info a, b;
            CHECK_OK(sp_plan_get_step(load->shared, s, &a));
            CHECK_OK(sp_plan_get_step(mine, s, &b));
            CHECK_EQ_STR(a.op, b.op);
        }
        CHECK_OK(sp_plan_release(load->shared));
        small_run(load->model);
        CHECK_OK(sp_plan_release(mine));
    }
}

TEST(threads_make_and_read_plans_beside_runs)
{
    plan_load load = {.model = small_model(NULL), .rounds = test_count(1000, 50)};
    load.shared = small_plan(load.model, 2);
    load.expected = info_of(load.shared);
    test_threads(8, read_and_make_plans, &load);
    CHECK_OK(sp_plan_release(load.shared));
    CHECK_OK(sp_model_release(load.model));
}

TEST_MAIN
