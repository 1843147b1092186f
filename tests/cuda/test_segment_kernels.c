/* SPDX-License-Identifier: Apache-2.0 */
/* Models with steps without CUDA kernels, by op or by type: they run on the cpu without any option,
 * with the bits of the cpu. The null device has all kernels. */
#include <string.h>

#include "segment_fixture.h"
#include "support/onnx_writer.h"

enum { ONNX_FLOAT = 1, ONNX_DOUBLE = 11, ROWS = 5, COUNT = ROWS * 4 };

static const int64_t dims_x[2] = {-1, 4}, dims_b[1] = {4};

/* The inputs x [n, 4] and a weight b [4]. */
static writer begin_graph(void)
{
    static const float b[4] = {0.5f, 3.0f, 1.25f, 2.0f};
    writer graph = {0};
    writer tensor = make_tensor("b", ONNX_FLOAT, dims_b, 1, b, sizeof b);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &tensor);
    add_input(&graph, "x", ONNX_FLOAT, dims_x, 2);
    return graph;
}

static writer make_cast(const char *input, const char *output, int64_t to)
{
    writer node = make_node("Cast", input, output);
    add_attribute_int(&node, "to", to);
    return node;
}

/* Steps of f32 and of f64. */
static writer mixed_graph(void)
{
    writer graph = begin_graph();
    add_node(&graph, make_node("Add", "x b", "s"));
    add_node(&graph, make_node("Sqrt", "s", "q"));
    add_node(&graph, make_node("Mul", "q b", "m"));
    add_node(&graph, make_cast("m", "d", ONNX_DOUBLE));
    add_node(&graph, make_node("Add", "d d", "e"));
    add_node(&graph, make_cast("e", "f", ONNX_FLOAT));
    add_node(&graph, make_node("Sub", "f x", "y"));
    return graph;
}

/* Bools are copied between the devices. */
static writer choosing_graph(void)
{
    writer graph = begin_graph();
    add_node(&graph, make_node("Greater", "x b", "c"));
    add_node(&graph, make_node("Not", "c", "n"));
    add_node(&graph, make_node("Where", "n x b", "w"));
    add_node(&graph, make_node("Tanh", "w", "t"));
    add_node(&graph, make_node("Where", "c t x", "y"));
    return graph;
}

static sp_model load(writer graph, sp_device device)
{
    add_output(&graph, "y");
    return graph_load(&graph, &(sp_model_options){.device = device});
}

static void run(sp_model model, float first, float *y)
{
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = first + (float)i * 0.375f;
    const sp_host_tensor input = {
        .data = x, .bytes = sizeof x, .dtype = SP_F32, .rank = 2, .shape = {ROWS, 4}};
    sp_host_tensor output = {.data = y, .capacity = sizeof x};
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
}

typedef struct both_models {
    sp_model model, on_cpu;
} both_models;

static void run_both(void *arg, uint32_t index)
{
    const both_models *both = arg;
    for (uint32_t round = 0; round < test_count(200, 20); round++) {
        const float first = (float)index * 0.625f - (float)round * 0.03125f;
        float y[COUNT], wanted[COUNT];
        run(both->model, first, y);
        run(both->on_cpu, first, wanted);
        CHECK_EQ_MEM(y, wanted, sizeof y);
    }
}

/* Runs from 8 threads with the bits of the cpu; checks the number of cpu steps and of segments. */
static void check_graph(writer (*make)(void), const char *cpu_ops, uint32_t cpu_steps,
                        uint32_t segments)
{
    const sp_device device = segment_begin();
    segment_set_ops(cpu_ops);
    both_models both = {load(make(), device), load(make(), (sp_device){0})};
    test_threads(8, run_both, &both);
    sp_model_info info;
    CHECK_OK(sp_model_get_info(both.model, &info));
    CHECK_EQ_U64(info.cpu_step_count, cpu_steps);
    CHECK_EQ_U64(info.segment_count, segments);
    CHECK_OK(sp_model_release(both.model));
    CHECK_OK(sp_model_release(both.on_cpu));
    segment_end();
}

TEST(steps_of_every_type_run_on_the_device)
{
    check_graph(mixed_graph, "", 0, 1);
    check_graph(choosing_graph, "", 0, 1);
}

TEST(those_that_are_named_run_on_the_cpu)
{
    check_graph(mixed_graph, "Sqrt,Cast", 3, 7);
    check_graph(mixed_graph, "Add,Sqrt,Cast", 5, 5);
    check_graph(choosing_graph, "Greater,Not,Where", 4, 5);
    check_graph(choosing_graph, "Tanh,Not", 2, 5);
}

TEST(their_ops_are_told_and_counted_as_the_devices)
{
    const sp_device device = segment_begin();
    segment_set_ops("Sqrt,Cast");
    const sp_model model = load(mixed_graph(), device);
    float y[COUNT];
    run(model, 1, y);
    static const char *const names[] = {"Sqrt", "Cast"};
    static const uint32_t counts[] = {1, 2};
    sp_model_cpu_op op;
    for (uint32_t i = 0; i < SP_COUNT_OF(names); i++) {
        CHECK_OK(sp_model_get_cpu_op(model, i, &op));
        CHECK_EQ_STR(op.name, names[i]);
        CHECK_EQ_U64(op.step_count, counts[i]);
    }
    CHECK_STATUS(sp_model_get_cpu_op(model, SP_COUNT_OF(names), &op), SP_NOT_FOUND);
    CHECK_OK(sp_model_release(model));
    sp_device_ops ops;
    CHECK_OK(sp_device_get_ops(device, &ops));
    CHECK_EQ_U64(ops.own_count, ops.op_count);
    CHECK_EQ_INT(ops.instruction_set == NULL, segment_is_cuda());
    segment_end();
}

TEST_MAIN
