/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "support/onnx_writer.h"

sp_tensor tensor_from(sp_device device, const sp_array *array)
{
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(device, array->dtype, array->shape.rank, array->shape.dims,
                                 array->data, array->bytes, &tensor));
    return tensor;
}

bool tensor_is(sp_tensor tensor, const sp_array *array)
{
    sp_tensor_info info;
    if (sp_tensor_get_info(tensor, &info) != SP_OK) return false;
    if (info.dtype != array->dtype || info.rank != array->shape.rank) return false;
    if (memcmp(info.shape, array->shape.dims, info.rank * sizeof info.shape[0]) != 0) return false;
    if (info.bytes != array->bytes) return false;
    void *bytes = malloc((size_t)info.bytes + 1);
    const bool is_same = bytes != NULL && sp_tensor_read(tensor, bytes, info.bytes) == SP_OK &&
                         memcmp(bytes, array->data, (size_t)info.bytes) == 0;
    free(bytes);
    return is_same;
}

tensor_case tensor_case_make(const model_case *c, sp_device device)
{
    tensor_case t = {.c = c};
    for (uint32_t i = 0; i < c->input_count; i++) {
        t.inputs[i].tensor = tensor_from(device, &c->inputs[i]);
    }
    return t;
}

void tensor_case_free(tensor_case *t)
{
    for (uint32_t i = 0; i < t->c->input_count; i++) {
        CHECK_OK(sp_tensor_release(t->inputs[i].tensor));
    }
}

sp_status tensor_case_run(tensor_case *t, sp_stream stream)
{
    memset(t->outputs, 0, sizeof t->outputs);
    return sp_model_run_tensors(t->c->model, stream, NULL, t->inputs, t->c->input_count, t->outputs,
                                t->c->output_count);
}

bool tensor_case_take(tensor_case *t)
{
    bool is_same = true;
    for (uint32_t i = 0; i < t->c->output_count; i++) {
        is_same = tensor_is(t->outputs[i].tensor, &t->c->outputs[i]) && is_same;
        is_same = sp_tensor_release(t->outputs[i].tensor) == SP_OK && is_same;
        t->outputs[i].tensor.bits = 0;
    }
    return is_same;
}

sp_tensor tensor_of_rows(sp_device device, uint64_t first, uint64_t rows)
{
    float x[64 * SMALL_IN];
    sp_tensor tensor = {0};
    const int64_t shape[] = {(int64_t)rows, SMALL_IN};
    small_fill_rows(x, first, rows);
    CHECK_OK(
        sp_tensor_from_host(device, SP_F32, 2, shape, x, rows * SMALL_IN * sizeof *x, &tensor));
    return tensor;
}

sp_status tensor_run_small(sp_model model, sp_tensor x, sp_tensor *y)
{
    const sp_model_tensor input = {.tensor = x};
    sp_model_tensor output = {.tensor = {0}};
    const sp_status status =
        sp_model_run_tensors(model, (sp_stream){0}, NULL, &input, 1, &output, 1);
    *y = output.tensor;
    return status;
}

sp_model tanh_model(sp_device device)
{
    static const int64_t dims[2] = {-1, SMALL_OUT};
    const sp_model_options options = {.device = device};
    writer graph = {0};
    add_input(&graph, "x", 1, dims, 2);
    add_node(&graph, make_node("Tanh", "x", "y"));
    add_output(&graph, "y");
    writer file = make_model(&graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, &options, &model));
    writer_free(&file);
    return model;
}

void tanh_of(const float *x, uint32_t count, float *y)
{
    const sp_model model = tanh_model((sp_device){0});
    const sp_host_tensor input = {.data = (void *)(uintptr_t)x,
                                  .bytes = count * sizeof *x,
                                  .dtype = SP_F32,
                                  .rank = 2,
                                  .shape = {count / SMALL_OUT, SMALL_OUT}};
    sp_host_tensor output = {.data = y, .capacity = count * sizeof *y};
    CHECK_OK(sp_model_run(model, &input, 1, &output, 1));
    CHECK_OK(sp_model_release(model));
}

void small_of_rows(sp_model model, uint64_t first, uint64_t rows, float *y)
{
    float x[64 * SMALL_IN];
    small_fill_rows(x, first, rows);
    CHECK_OK(small_run_rows(model, x, rows, y));
}

bool take_floats(sp_tensor tensor, const float *wanted, uint64_t count)
{
    float got[256];
    if (count > 256 || sp_tensor_read(tensor, got, count * sizeof *got) != SP_OK) return false;
    const bool is_same = memcmp(got, wanted, count * sizeof *got) == 0;
    return sp_tensor_release(tensor) == SP_OK && is_same;
}

sp_stream current_on(sp_device device)
{
    sp_stream stream = {0};
    CHECK_OK(sp_stream_current(device, &stream));
    return stream;
}

gate gate_on(sp_device device, sp_stream stream)
{
    gate closed = gate_closed(device);
    gate_hold(&closed, stream);
    return closed;
}
