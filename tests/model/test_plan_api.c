/* SPDX-License-Identifier: Apache-2.0 */
/* Plans through the public API: what they say of themselves. */
#include <stdio.h>
#include <string.h>

#include "partial_fixture.h"
#include "plan_fixture.h"

TEST(a_plan_has_the_counts_of_the_one_that_runs)
{
    const sp_model model = small_model(NULL);
    const sp_plan plan = small_plan(model, 1);
    CHECK_EQ_U64(model_info_of(model).plan_builds, 0); /* it is not in the model's cache */
    small_run(model);
    const sp_model_info ran = model_info_of(model);
    const sp_plan_info info = plan_info_of(plan);
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
    CHECK_EQ_U64(plan_info_of(plan).input_count, 1);
    CHECK_EQ_U64(plan_info_of(plan).output_count, 1);
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
    CHECK_EQ_U64(plan_info_of(plan).input_count, 2);
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
    CHECK_OK(sp_plan_get_step(plan, plan_info_of(plan).step_count - 1, &step));
    CHECK(strstr(step.op, "Tanh") != NULL); /* alone, or fused into the Sub */
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
    const sp_plan_info info = plan_info_of(plan);
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

static void add_number(writer *graph, const char *name, float value)
{
    writer tensor = make_tensor(name, ONNX_FLOAT, NULL, 0, &value, sizeof value);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

/* GELU by tanh is one step. */
TEST(each_kind_has_a_kernel_of_a_fused_step)
{
    static const int64_t dims[] = {40};
    writer graph = {0};
    add_input(&graph, "x", ONNX_FLOAT, dims, 1);
    add_number(&graph, "a", 0.0447149985f);
    add_number(&graph, "b", 1);
    add_number(&graph, "c", 0.5f);
    add_number(&graph, "d", 0.797884583f);
    add_node(&graph, make_node("Mul", "a x", "i"));
    add_node(&graph, make_node("Mul", "x i", "j"));
    add_node(&graph, make_node("Mul", "x j", "k"));
    add_node(&graph, make_node("Add", "x k", "s"));
    add_node(&graph, make_node("Mul", "d s", "t"));
    add_node(&graph, make_node("Tanh", "t", "e"));
    add_node(&graph, make_node("Add", "b e", "v"));
    add_node(&graph, make_node("Mul", "c v", "p"));
    add_node(&graph, make_node("Mul", "x p", "y"));
    add_output(&graph, "y");
    sp_model model;
    sp_plan plan;
    bool has = false;
    REQUIRE_OK(partial_load(&graph, NULL, &model));
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 1, .shape = {40}};
    REQUIRE_OK(sp_plan_create(model, &x, 1, &plan));
    sp_plan_step_info step;
    REQUIRE_OK(sp_plan_get_step(plan, 0, &step));
    CHECK_EQ_STR(step.kernel, "tanh_gate_f32");
    CHECK_OK(sp_plan_step_has_kernel(plan, 0, "cuda", &has));
    CHECK(has);
    has = false;
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
    CHECK_EQ_U64(segment.step_count, plan_info_of(plan).step_count);
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
    const sp_plan_info info = plan_info_of(plan);
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
        CHECK_EQ_U64(plan_info_of(plan).cpu_step_count, cases[i].steps);
        small_run(model);
        CHECK_EQ_U64(model_info_of(model).cpu_step_count, cases[i].steps);
        sp_model_cpu_op op = {0};
        CHECK_STATUS(sp_model_get_cpu_op(model, 0, &op), cases[i].steps > 0 ? SP_OK : SP_NOT_FOUND);
        CHECK(strstr(op.name, cases[i].name) != NULL); /* Sub+Tanh is one step */
        CHECK_OK(sp_plan_release(plan));
        CHECK_OK(sp_model_release(model));
    }
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
    const sp_plan_info info = plan_info_of(plan);
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
    CHECK(plan_info_of(plan).is_partial);
    REQUIRE(plan_info_of(plan).stop_count == 1);
    CHECK_OK(sp_plan_get_stop(plan, 0, &stop));
    CHECK(stop.is_condition);
    CHECK_EQ_STR(stop.name, "is_above");
    CHECK_EQ_STR(stop.op, "If");
    CHECK_OK(sp_plan_release(plan));
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
