/* SPDX-License-Identifier: Apache-2.0 */
#include "run_fixture.h"

#include <string.h>

#include <streampool/check.h>
#include <streampool/model_tensors.h>
#include <streampool/plan.h>

#include "base/heap.h"
#include "base/thread.h"
#include "runtime/runtime_state.h"

const char *const fixture_models[FIXTURE_MODELS] = {
    "blazeface_front_128", "mnist_8", "policy_go1", "policy_g1", "torch_linear", "torch_mlp"};

const char *const fixture_all_models[FIXTURE_ALL_MODELS] = {"basic_pitch",
                                                            "blazeface_front_128",
                                                            "dtln_1",
                                                            "dtln_2",
                                                            "fastestdet",
                                                            "gtcrn_simple",
                                                            "light_densenet121",
                                                            "light_resnet50",
                                                            "light_shufflenet",
                                                            "magika_v3_3",
                                                            "mnist_8",
                                                            "policy_g1",
                                                            "policy_go1",
                                                            "ppocr_cls",
                                                            "ppocr_v4_det",
                                                            "silero_vad_v4",
                                                            "silero_vad_v5",
                                                            "super_resolution_10",
                                                            "torch_bert",
                                                            "torch_conv1d",
                                                            "torch_encoder",
                                                            "torch_linear",
                                                            "torch_lstm",
                                                            "torch_mha",
                                                            "torch_mlp",
                                                            "torch_resnet",
                                                            "ultraface_rfb_320"};

static void read_inputs(const char *name, model_case *out)
{
    for (; out->input_count < FIXTURE_PORTS; out->input_count++) {
        char path[DATA_PATH_BYTES];
        if (!data_path(path, "models/%s/test_data_set_0/input_%u.pb", name, out->input_count)) {
            return;
        }
        CHECK_OK(tensor_read(path, &out->inputs[out->input_count]));
    }
}

void outputs_make(const model_case *c, sp_array *outputs)
{
    sp_host_tensor inputs[FIXTURE_PORTS];
    sp_host_tensor tensors[FIXTURE_PORTS] = {0};
    for (uint32_t i = 0; i < c->input_count; i++) inputs[i] = tensor_of(&c->inputs[i], NULL);
    CHECK_OK(sp_model_infer(c->model, inputs, c->input_count, tensors, c->output_count));
    for (uint32_t i = 0; i < c->output_count; i++) CHECK_OK(tensor_room(&tensors[i], &outputs[i]));
}

void outputs_free(const model_case *c, sp_array *outputs)
{
    for (uint32_t i = 0; i < c->output_count; i++) sp__array_deinit(&outputs[i]);
}

void outputs_wipe(const model_case *c, const sp_array *outputs)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        memset(outputs[i].data, 0xff, (size_t)outputs[i].bytes);
    }
}

sp_status case_run(const model_case *c, const sp_array *outputs)
{
    sp_host_tensor inputs[FIXTURE_PORTS];
    sp_host_tensor tensors[FIXTURE_PORTS];
    for (uint32_t i = 0; i < c->input_count; i++) inputs[i] = tensor_of(&c->inputs[i], NULL);
    for (uint32_t i = 0; i < c->output_count; i++) tensors[i] = tensor_of(&outputs[i], NULL);
    return sp_model_run(c->model, inputs, c->input_count, tensors, c->output_count);
}

bool case_is_same(const model_case *c, const sp_array *outputs)
{
    for (uint32_t i = 0; i < c->output_count; i++) {
        if (memcmp(outputs[i].data, c->outputs[i].data, outputs[i].bytes) != 0) return false;
    }
    return true;
}

void case_run_rounds(void *arg, uint32_t index)
{
    (void)index;
    case_load *load = arg;
    sp_array outputs[FIXTURE_PORTS] = {0};
    outputs_make(load->c, outputs);
    for (uint32_t round = 0; round < load->rounds; round++) {
        outputs_wipe(load->c, outputs);
        CHECK_OK(case_run(load->c, outputs));
        if (!case_is_same(load->c, outputs)) sp_fetch_add_relaxed(&load->differing, 1);
    }
    outputs_free(load->c, outputs);
}

void cases_run_rounds(void *arg, uint32_t index)
{
    cases_load *l = arg;
    for (uint32_t i = 0; i < l->count; i++) {
        case_load one = {.c = &l->cases[(index + i) % l->count], .rounds = l->rounds};
        case_run_rounds(&one, index);
        sp_fetch_add_relaxed(&l->differing, sp_load_relaxed(&one.differing));
    }
}

bool case_open(const char *name, const sp_model_options *options, model_case *out)
{
    *out = (model_case){0};
    char path[DATA_PATH_BYTES];
    if (!data_path(path, "models/%s/model.onnx", name)) return false;
    sp_model_info info = {0};
    CHECK_OK(sp_model_load(path, options, &out->model));
    CHECK_OK(sp_model_get_info(out->model, &info));
    out->output_count = info.output_count;
    read_inputs(name, out);
    CHECK_EQ_U64(out->input_count, info.input_count);
    outputs_make(out, out->outputs);
    CHECK_OK(case_run(out, out->outputs));
    return true;
}

void case_close(model_case *c)
{
    for (uint32_t i = 0; i < FIXTURE_PORTS; i++) {
        sp__array_deinit(&c->inputs[i]);
        sp__array_deinit(&c->outputs[i]);
    }
    CHECK_OK(sp_model_release(c->model));
    CHECK_EQ_U64(sp_check_report_count(), 0); /* of the checker, if it is on */
}

bool cases_open(const char *const *names, uint32_t count, const sp_model_options *options,
                cases_load *out)
{
    *out = (cases_load){.cases = sp_calloc(count, sizeof *out->cases)};
    for (; out->count < count; out->count++) {
        if (case_open(names[out->count], options, &out->cases[out->count])) continue;
        cases_close(out);
        return false;
    }
    return true;
}

void cases_close(cases_load *l)
{
    for (uint32_t i = 0; i < l->count; i++) case_close(&l->cases[i]);
    sp_free(l->cases);
}

sp_model small_model(const sp_model_options *options)
{
    static const int64_t x_dims[2] = {-1, 4};
    static const int64_t y_dims[2] = {-1, 3};
    static const int64_t w_dims[2] = {4, 3};
    static const int64_t b_dims[1] = {3};
    float weights[12];
    for (int i = 0; i < 12; i++) weights[i] = (float)i * 0.25f - 1.0f;
    const float bias[3] = {-0.5f, 0.5f, -1.0f};
    writer graph = {0};
    writer node = make_node("MatMul", "x w", "p");
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    node = make_node("Sub", "p b", "s");
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    node = make_node("Tanh", "s", "y");
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    writer part = make_tensor("w", 1, w_dims, 2, weights, sizeof weights);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &part);
    part = make_tensor("b", 1, b_dims, 1, bias, sizeof bias);
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &part);
    part = make_value("x", 1, x_dims, 2);
    write_message(&graph, GRAPH_INPUT_FIELD, &part);
    part = make_value("b", 1, b_dims, 1); /* a default that a caller may override */
    write_message(&graph, GRAPH_INPUT_FIELD, &part);
    part = make_value("y", 1, y_dims, 2);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &part);
    return graph_load(&graph, options);
}

sp_model graph_load(writer *graph, const sp_model_options *options)
{
    writer file = make_model(graph, 13);
    sp_model model = {0};
    CHECK_OK(sp_model_load_from_memory(file.bytes, file.len, options, &model));
    writer_free(&file);
    return model;
}

void small_fill_rows(float *x, uint64_t first, uint64_t rows)
{
    for (uint64_t i = 0; i < rows * SMALL_IN; i++) {
        x[i] = (float)((first * SMALL_IN + i) % 97) * 0.03125f - 1.5f;
    }
}

sp_status small_run_rows(sp_model model, const float *x, uint64_t rows, float *y)
{
    const sp_host_tensor in = {.data = (void *)(uintptr_t)x,
                               .bytes = rows * SMALL_IN * sizeof *x,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {(int64_t)rows, SMALL_IN}};
    sp_host_tensor out = {.data = y, .capacity = rows * SMALL_OUT * sizeof *y};
    return sp_model_run(model, &in, 1, &out, 1);
}

sp_model_info model_info_of(sp_model model)
{
    sp_model_info info = {0};
    CHECK_OK(sp_model_get_info(model, &info));
    return info;
}

sp_model_statistics statistics_of(sp_model model)
{
    sp_model_statistics statistics = {0};
    CHECK_OK(sp_model_get_statistics(model, &statistics));
    return statistics;
}

void await_in_flight(sp_model model, uint32_t count)
{
    while (statistics_of(model).in_flight < count) sp_thread_yield();
}

sp_host_tensor input_x(int64_t rows)
{
    static float x_data[8] = {1, 2, 3, 4, -1, -2, -3, -4};
    return (sp_host_tensor){.data = x_data,
                            .bytes = (uint64_t)rows * 16,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {rows, 4}};
}

sp_host_tensor output_y(float *data, uint64_t count)
{
    return (sp_host_tensor){.data = data, .capacity = count * sizeof *data};
}

sp_status small_submit(sp_model model, small_row *out, sp_future *future)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out->bytes, 3);
    return sp_model_submit(model, &x, 1, &y, 1, future);
}

sp_status small_submit_with(sp_model model, sp_cancel_token token, small_row *out,
                            sp_future *future)
{
    const sp_run_options options = {.cancel_token = token};
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out->bytes, 3);
    return sp_model_submit_with(model, &options, &x, 1, &y, 1, future);
}

sp_status small_run_with(sp_model model, sp_cancel_token token, small_row *out)
{
    const sp_run_options options = {.cancel_token = token};
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out->bytes, 3);
    return sp_model_run_with(model, &options, &x, 1, &y, 1);
}

small_row small_run(sp_model model)
{
    small_row out = {{0}};
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out.bytes, 3);
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    return out;
}

bool small_is_same(const small_row *a, const small_row *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void await_count(sp_atomic_u32 *count, uint32_t wanted)
{
    while (sp_load_acquire(count) < wanted) sp_thread_yield();
}

/* ---- every call ---- */

static sp_status call_retain(sp_model model)
{
    SP_TRY(sp_model_retain(model));
    return sp_model_release(model);
}

static sp_status call_get_info(sp_model model)
{
    sp_model_info info;
    return sp_model_get_info(model, &info);
}

static sp_status call_get_input(sp_model model)
{
    sp_port port;
    return sp_model_get_input(model, 0, &port);
}

static sp_status call_get_output(sp_model model)
{
    sp_port port;
    return sp_model_get_output(model, 0, &port);
}

static sp_status call_find_input(sp_model model)
{
    uint32_t index;
    return sp_model_find_input(model, "x", &index);
}

static sp_status call_find_output(sp_model model)
{
    uint32_t index;
    return sp_model_find_output(model, "y", &index);
}

/* A model on cpu has no steps on a fallback device. */
static sp_status call_get_cpu_op(sp_model model)
{
    sp_model_cpu_op op;
    const sp_status status = sp_model_get_cpu_op(model, 0, &op);
    return status == SP_NOT_FOUND ? SP_OK : status;
}

static sp_status infer_or_run(sp_model model, bool is_run)
{
    float in[4] = {1, 2, 3, 4};
    float out[3];
    const sp_host_tensor x = {
        .data = in, .bytes = sizeof in, .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    sp_host_tensor y = {.data = out, .capacity = sizeof out};
    return is_run ? sp_model_run(model, &x, 1, &y, 1) : sp_model_infer(model, &x, 1, &y, 1);
}

static sp_status call_infer(sp_model model)
{
    return infer_or_run(model, false);
}

static sp_status call_run(sp_model model)
{
    return infer_or_run(model, true);
}

static sp_status call_submit(sp_model model)
{
    float in[4] = {1, 2, 3, 4};
    float out[3];
    const sp_host_tensor x = {
        .data = in, .bytes = sizeof in, .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    sp_host_tensor y = {.data = out, .capacity = sizeof out};
    sp_future future;
    SP_TRY(sp_model_submit(model, &x, 1, &y, 1, &future));
    const sp_status status = sp_future_wait(future);
    CHECK_OK(sp_future_release(future));
    return status;
}

static sp_status call_try_run(sp_model model)
{
    float in[4] = {1, 2, 3, 4};
    float out[3];
    const sp_host_tensor x = {
        .data = in, .bytes = sizeof in, .dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    sp_host_tensor y = {.data = out, .capacity = sizeof out};
    const sp_status status = sp_model_try_run(model, SP_FOREVER, &x, 1, &y, 1);
    return status == SP_BUSY ? SP_OK : status; /* by the model's state or the thread's */
}

static sp_status call_run_with(sp_model model)
{
    small_row out;
    return small_run_with(model, (sp_cancel_token){0}, &out);
}

static sp_status call_submit_with(sp_model model)
{
    small_row out;
    sp_future future;
    SP_TRY(small_submit_with(model, (sp_cancel_token){0}, &out, &future));
    const sp_status status = sp_future_wait(future);
    CHECK_OK(sp_future_release(future));
    return status;
}

static sp_status call_run_tensors(sp_model model)
{
    float y[3];
    sp_host_tensor x = input_x(1), out = output_y(y, 3);
    const sp_model_tensor input = {.host = &x};
    sp_model_tensor output = {.host = &out};
    return sp_model_run_tensors(model, (sp_stream){0}, NULL, &input, 1, &output, 1);
}

static sp_status call_submit_tensors(sp_model model)
{
    sp_host_tensor x = input_x(1);
    const sp_model_tensor input = {.host = &x};
    sp_model_tensor output = {.host = NULL};
    sp_future future;
    SP_TRY(sp_model_submit_tensors(model, (sp_stream){0}, NULL, &input, 1, &output, 1, &future));
    const sp_status status = sp_future_wait(future);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_tensor_release(output.tensor));
    return status;
}

static sp_status call_plan_create(sp_model model)
{
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    sp_plan plan;
    SP_TRY(sp_plan_create(model, &x, 1, &plan));
    return sp_plan_release(plan);
}

/* The plan has two steps, since the Tanh is fused. Models of other devices have none on the cpu. */
static sp_status call_time_steps(sp_model model)
{
    uint64_t step_ns[2];
    float y[3];
    const sp_host_tensor x = input_x(1);
    sp_host_tensor out = output_y(y, 3);
    const sp_status status = sp_model_time_steps(model, &x, 1, &out, 1, step_ns, 2);
    return status == SP_UNSUPPORTED ? SP_OK : status;
}

static sp_status call_get_batching(sp_model model)
{
    const sp_host_tensor x = {.dtype = SP_F32, .rank = 2, .shape = {1, 4}};
    sp_model_batching batching;
    return sp_model_get_batching(model, &x, 1, 2, &batching, NULL, NULL);
}

const model_call model_calls[] = {
    {"sp_model_retain", call_retain},
    {"sp_model_get_info", call_get_info},
    {"sp_model_get_input", call_get_input},
    {"sp_model_get_output", call_get_output},
    {"sp_model_find_input", call_find_input},
    {"sp_model_find_output", call_find_output},
    {"sp_model_get_cpu_op", call_get_cpu_op},
    {"sp_model_infer", call_infer},
    {"sp_model_get_batching", call_get_batching},
    {"sp_model_run", call_run},
    {"sp_model_submit", call_submit},
    {"sp_model_run_with", call_run_with},
    {"sp_model_submit_with", call_submit_with},
    {"sp_model_try_run", call_try_run},
    {"sp_model_run_tensors", call_run_tensors},
    {"sp_model_submit_tensors", call_submit_tensors},
    {"sp_plan_create", call_plan_create},
    {"sp_model_time_steps", call_time_steps},
};

const uint32_t model_call_count = SP_COUNT_OF(model_calls);

null_fixture null_open(void)
{
    null_fixture f = {0};
    sp_rt_device *device = NULL;
    CHECK_OK(sp_device_open("null", &f.device));
    CHECK_OK(sp__rt_device_find(f.device, &device));
    f.dev = device->dev;
    f.options.device = f.device;
    return f;
}
