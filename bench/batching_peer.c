/* SPDX-License-Identifier: Apache-2.0 */
#include "batching_peer.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "batching_peer_api.h"
#include "failure.h"
#include "tensors.h"

/* By sp_dtype: values of ONNXTensorElementDataType. */
static const int element_types[] = {
    [SP_F32] = 1,  [SP_U8] = 2,   [SP_I8] = 3,    [SP_U16] = 4,  [SP_I16] = 5,
    [SP_I32] = 6,  [SP_I64] = 7,  [SP_BOOL] = 9,  [SP_F16] = 10, [SP_F64] = 11,
    [SP_U32] = 12, [SP_U64] = 13, [SP_BF16] = 16,
};

/* A wrong call or place in the table gives other numbers altogether; sums may be in another order.
 */
static const tensor_tolerance tolerance = {.absolute = 1e-3, .relative = 1e-2};

static sp_status from_peer(const peer *self, peer_status *status)
{
    if (status == NULL) return SP_OK;
    const sp_status code =
        fail(SP_INTERNAL, "ONNX Runtime: %s", self->api->get_error_message(status));
    self->api->release_status(status);
    return code;
}

#define PEER(call) TRY(from_peer(self, self->api->call))

/* ---- the library ---- */

/* NULL with the thread's failure set. */
static const peer_api *api_open(const char *library)
{
    const peer_api_base *(*get_base)(void) = NULL;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); /* until the process ends */
    /* As POSIX has it: a function's address through an object pointer. */
    if (handle != NULL) *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
    if (get_base == NULL) {
        fail(SP_IO, "it is not the library of ONNX Runtime: %s", dlerror());
        return NULL;
    }
    const peer_api_base *base = get_base();
    const peer_api *api = base->get_api(PEER_API_VERSION);
    if (api == NULL) {
        fail(SP_UNSUPPORTED, "%s is ONNX Runtime %s, which has no version %d of its C API", library,
             base->get_version_string(), PEER_API_VERSION);
    }
    return api;
}

static sp_status session_open(peer *self)
{
    PEER(create_env(PEER_LOG_WARNING, "bench_batching", &self->env));
    PEER(create_session_options(&self->options));
    PEER(set_intra_op_num_threads(self->options, 1));
    PEER(set_inter_op_num_threads(self->options, 1));
    PEER(create_session(self->env, self->model->arguments.path, self->options, &self->session));
    return SP_OK;
}

/* ---- tensors ---- */

static sp_status input_open(peer *self, uint32_t i)
{
    const model_inputs *inputs = &self->model->runner.inputs;
    const sp_host_tensor *tensor = &inputs->tensors[i];
    self->input_names[i] = inputs->list[i].port.name;
    PEER(create_tensor_with_data_as_ort_value(self->memory, tensor->data, tensor->bytes,
                                              tensor->shape, tensor->rank,
                                              element_types[tensor->dtype], &self->inputs[i]));
    return SP_OK;
}

static sp_status memory_allocate(peer *self, uint32_t threads)
{
    const size_t inputs = (size_t)self->model->runner.inputs.count + 1;
    const size_t outputs = (size_t)self->model->runner.output_count + 1;
    self->input_names = calloc(inputs + outputs, sizeof *self->input_names);
    self->inputs = calloc(inputs, sizeof *self->inputs);
    self->outputs = calloc(threads, sizeof *self->outputs);
    if (self->input_names == NULL || self->inputs == NULL || self->outputs == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for the tensors of ONNX Runtime");
    }
    self->output_names = self->input_names + inputs;
    for (; self->thread_count < threads; self->thread_count++) {
        void **values = calloc(outputs, sizeof *values);
        if (values == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
        self->outputs[self->thread_count] = values;
    }
    return SP_OK;
}

static sp_status tensors_open(peer *self, uint32_t threads)
{
    const model_runner *runner = &self->model->runner;
    TRY(memory_allocate(self, threads));
    PEER(create_cpu_memory_info(PEER_ARENA_ALLOCATOR, PEER_MEMORY_DEFAULT, &self->memory));
    for (uint32_t i = 0; i < runner->inputs.count; i++) TRY(input_open(self, i));
    for (uint32_t i = 0; i < runner->output_count; i++) {
        sp_port port;
        CALL(sp_model_get_output(runner->model, i, &port));
        self->output_names[i] = port.name;
    }
    return SP_OK;
}

/* ---- runs ---- */

sp_status peer_call(void *ctx, uint32_t thread)
{
    const peer *self = ctx;
    const model_runner *runner = &self->model->runner;
    PEER(run(self->session, NULL, self->input_names, self->inputs, runner->inputs.count,
             self->output_names, runner->output_count, self->outputs[thread]));
    return SP_OK;
}

static sp_status info_read(const peer *self, const void *info, int *type, size_t *count)
{
    PEER(get_tensor_element_type(info, type));
    PEER(get_tensor_shape_element_count(info, count));
    return SP_OK;
}

static sp_status output_check(const peer *self, uint32_t i)
{
    const sp_host_tensor *want = &self->model->runner.expected[i];
    sp_host_tensor got = *want;
    tensor_difference difference;
    int type = 0;
    size_t count = 0;
    void *info;
    PEER(get_tensor_type_and_shape(self->outputs[0][i], &info));
    const sp_status status = info_read(self, info, &type, &count);
    self->api->release_tensor_type_and_shape_info(info);
    TRY(status);
    if (type != element_types[want->dtype] || count * sp_dtype_bytes(want->dtype) != want->bytes) {
        return fail(SP_MISMATCH, "output '%s' of ONNX Runtime has another type or size",
                    self->output_names[i]);
    }
    if (count == 0) return SP_OK;
    PEER(get_tensor_mutable_data(self->outputs[0][i], &got.data));
    TRY(tensor_compare(&got, want, tolerance, &difference));
    if (difference.bad_count == 0) return SP_OK;
    return fail(SP_MISMATCH, "output '%s' of ONNX Runtime has %g where ours has %g",
                self->output_names[i], difference.got, difference.want);
}

sp_status peer_open(peer *self, const char *library, const subject *model, uint32_t threads)
{
    *self = (peer){.model = model, .api = api_open(library)};
    if (self->api == NULL) return SP_UNSUPPORTED;
    TRY(session_open(self));
    TRY(tensors_open(self, threads));
    TRY(peer_call(self, 0));
    for (uint32_t i = 0; i < model->runner.output_count; i++) TRY(output_check(self, i));
    return SP_OK;
}

static void values_release(const peer *self, void **values, uint32_t count)
{
    for (uint32_t i = 0; values != NULL && i < count; i++) {
        if (values[i] != NULL) self->api->release_value(values[i]);
    }
}

void peer_close(peer *self)
{
    if (self->api == NULL) return;
    for (uint32_t i = 0; i < self->thread_count; i++) {
        values_release(self, self->outputs[i], self->model->runner.output_count);
        free(self->outputs[i]);
    }
    values_release(self, self->inputs, self->model->runner.inputs.count);
    free(self->outputs);
    free(self->inputs);
    free(self->input_names);
    if (self->session != NULL) self->api->release_session(self->session);
    if (self->memory != NULL) self->api->release_memory_info(self->memory);
    if (self->options != NULL) self->api->release_session_options(self->options);
    if (self->env != NULL) self->api->release_env(self->env);
    *self = (peer){0};
}
