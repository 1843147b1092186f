/* SPDX-License-Identifier: Apache-2.0 */
#include "partial_fixture.h"

static void add_tensor(writer *graph, const char *name, int64_t type, const void *data,
                       int64_t count, size_t element)
{
    const size_t bytes = (size_t)(count < 0 ? 1 : count) * element;
    writer tensor = make_tensor(name, type, &count, count < 0 ? 0 : 1, data, bytes);
    write_message(graph, GRAPH_INITIALIZER_FIELD, &tensor);
}

void partial_add_floats(writer *graph, const char *name, const float *data, int64_t count)
{
    add_tensor(graph, name, ONNX_FLOAT, data, count, sizeof *data);
}

void partial_add_ints(writer *graph, const char *name, const int64_t *data, int64_t count)
{
    add_tensor(graph, name, ONNX_INT64, data, count, sizeof *data);
}

void partial_add_bool(writer *graph, const char *name, bool value)
{
    add_tensor(graph, name, ONNX_BOOL, &value, -1, 1);
}

void partial_add_result(writer *graph, const char *name, int64_t data_type, const int64_t *dims,
                        int rank)
{
    writer value = make_value(name, data_type, dims, rank);
    write_message(graph, GRAPH_OUTPUT_FIELD, &value);
}

writer partial_node_ints(const char *op, const char *inputs, const char *outputs, const char *name,
                         const int64_t *values, uint32_t count)
{
    writer node = make_node(op, inputs, outputs);
    add_attribute_ints(&node, name, values, count);
    return node;
}

writer partial_node_int(const char *op, const char *inputs, const char *outputs, const char *name,
                        int64_t value)
{
    writer node = make_node(op, inputs, outputs);
    add_attribute_int(&node, name, value);
    return node;
}

writer partial_loop(const char *inputs, const char *outputs, writer *body)
{
    writer node = make_node("Loop", inputs, outputs);
    add_attribute_graph(&node, "body", body);
    return node;
}

writer partial_if(const char *condition, const char *outputs, writer *then_branch,
                  writer *else_branch)
{
    writer node = make_node("If", condition, outputs);
    add_attribute_graph(&node, "then_branch", then_branch);
    add_attribute_graph(&node, "else_branch", else_branch);
    return node;
}

writer partial_body(int v_rank)
{
    static const int64_t free_dims[4] = {-1, -1, -1, -1};
    writer body = {0};
    add_input(&body, "i", ONNX_INT64, NULL, 0);
    add_input(&body, "on", ONNX_BOOL, NULL, 0);
    add_input(&body, "v", ONNX_FLOAT, free_dims, v_rank);
    return body;
}

static sp_status load_graph(writer *graph, int64_t opset, const sp_model_options *options,
                            sp_model *out)
{
    writer file = make_model(graph, opset);
    const sp_status status = sp_model_load_from_memory(file.bytes, file.len, options, out);
    writer_free(&file);
    return status;
}

sp_status partial_load(writer *graph, const sp_model_options *options, sp_model *out)
{
    return load_graph(graph, 13, options, out);
}

void partial_add_found(writer *graph, const char *out)
{
    static const int64_t any_dims[1] = {-1};
    add_input(graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(graph, "flat", (const int64_t[]){-1}, 1);
    add_node(graph, make_node("NonZero", "x", "found"));
    add_node(graph, make_node("Reshape", "found flat", "places"));
    add_node(graph, make_node("Gather", "x places", out));
}

sp_status partial_load_opset(writer *graph, int64_t opset, sp_model *out)
{
    return load_graph(graph, opset, NULL, out);
}

static sp_host_tensor tensor_of(const char *name, const void *data, sp_dtype dtype, int64_t count)
{
    return (sp_host_tensor){.name = name,
                            .data = (void *)(uintptr_t)data,
                            .bytes = (uint64_t)(count < 0 ? 1 : count) * sp_dtype_bytes(dtype),
                            .dtype = dtype,
                            .rank = count < 0 ? 0 : 1,
                            .shape = {count < 0 ? 0 : count}};
}

sp_host_tensor partial_floats(const char *name, const float *data, int64_t count)
{
    return tensor_of(name, data, SP_F32, count);
}

sp_host_tensor partial_ints(const char *name, const int64_t *data, int64_t count)
{
    return tensor_of(name, data, SP_I64, count);
}

sp_host_tensor partial_bool(const char *name, const bool *value)
{
    return tensor_of(name, value, SP_BOOL, -1);
}

sp_host_tensor partial_room(const char *name, void *data, uint64_t bytes)
{
    return (sp_host_tensor){.name = name, .data = data, .capacity = bytes};
}

sp_model_info partial_info(sp_model model)
{
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(model, &info));
    return info;
}

static void run_endless(void *arg)
{
    partial_endless *e = arg;
    const float x[2] = {1, 2};
    float y[2];
    const sp_host_tensor input = partial_floats("x", x, 2);
    sp_host_tensor output = partial_room("y", y, sizeof y);
    e->status = sp_model_run_with(e->model, &e->run_options, &input, 1, &output, 1);
}

void partial_endless_begin(partial_endless *e, const sp_model_options *options, bool has_node)
{
    partial_endless_begin_with(e, options, has_node, &(sp_run_options){0});
}

void partial_endless_begin_with(partial_endless *e, const sp_model_options *options, bool has_node,
                                const sp_run_options *run_options)
{
    static const int64_t any_dims[1] = {-1};
    writer graph = {0};
    writer body = partial_body(1);
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(&graph, "n", (const int64_t[]){(int64_t)1 << 62}, -1);
    partial_add_bool(&graph, "c", true);
    if (has_node) add_node(&body, make_node("Neg", "v", "w"));
    add_output(&body, "on");
    add_output(&body, has_node ? "w" : "v");
    add_node(&graph, partial_loop("n c x", "y", &body));
    add_output(&graph, "y");
    *e = (partial_endless){.run_options = *run_options};
    REQUIRE_OK(partial_load(&graph, options, &e->model));
    REQUIRE_OK(sp_thread_create(&e->thread, "endless", run_endless, e));
    while (partial_info(e->model).runs == 0) sp_thread_yield();
}

sp_status partial_endless_join(partial_endless *e)
{
    sp_thread_join(&e->thread);
    CHECK_OK(sp_model_release(e->model));
    return e->status;
}
