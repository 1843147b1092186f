/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX Runtime as a peer, called through the table of its C API. One session for all threads. With
 * one intra-op thread a run uses the calling thread only; its nodes run one after the other. All
 * else is as the library has it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "failure.h"
#include "onnxruntime_api.h"
#include "peer_kind.h"

typedef struct onnxruntime {
    const onnxruntime_api *api;
    const peer_case *of;
    void *env, *options, *memory, *session;
    const char **input_names, **output_names;
    void **inputs;   /* values, shared by the threads */
    void ***outputs; /* values by thread and output; created by the thread's first run */
    uint32_t thread_count;
} onnxruntime;

/* Values of ONNXTensorElementDataType. */
static const int element_types[] = {
    [SP_F32] = 1,  [SP_U8] = 2,   [SP_I8] = 3,    [SP_U16] = 4,  [SP_I16] = 5,
    [SP_I32] = 6,  [SP_I64] = 7,  [SP_BOOL] = 9,  [SP_F16] = 10, [SP_F64] = 11,
    [SP_U32] = 12, [SP_U64] = 13, [SP_BF16] = 16,
};

static sp_status from_onnxruntime(const onnxruntime *self, onnxruntime_status *status)
{
    if (status == NULL) return SP_OK;
    const sp_status code =
        fail(SP_INTERNAL, "ONNX Runtime: %s", self->api->get_error_message(status));
    self->api->release_status(status);
    return code;
}

#define ORT(call) TRY(from_onnxruntime(self, self->api->call))

static sp_status onnxruntime_load(void *state, void *library, char *name)
{
    onnxruntime *self = state;
    const onnxruntime_api_base *(*get_base)(void) = NULL;
    /* As POSIX has it: a function's address through an object pointer. */
    *(void **)&get_base = dlsym(library, sp__peer_onnxruntime.symbol);
    const onnxruntime_api_base *base = get_base();
    snprintf(name, PEER_NAME_BYTES, "ONNX Runtime %s", base->get_version_string());
    self->api = base->get_api(ONNXRUNTIME_API_VERSION);
    if (self->api != NULL) return SP_OK;
    return fail(SP_UNSUPPORTED, "it is %s, which has no version %d of its C API", name,
                ONNXRUNTIME_API_VERSION);
}

/* ---- the session and its tensors ---- */

static sp_status session_open(onnxruntime *self, uint32_t run_threads)
{
    ORT(create_env(ONNXRUNTIME_LOG_ERROR, "streampool", &self->env));
    ORT(create_session_options(&self->options));
    ORT(set_intra_op_num_threads(self->options, (int)run_threads));
    ORT(set_inter_op_num_threads(self->options, 1));
    ORT(create_session(self->env, self->of->path, self->options, &self->session));
    return SP_OK;
}

static sp_status memory_allocate(onnxruntime *self)
{
    const size_t inputs = (size_t)self->of->input_count + 1;
    const size_t outputs = (size_t)self->of->output_count + 1;
    self->input_names = calloc(inputs + outputs, sizeof *self->input_names);
    self->inputs = calloc(inputs, sizeof *self->inputs);
    if (self->input_names == NULL || self->inputs == NULL) {
        return fail(SP_OUT_OF_MEMORY, "no memory for the tensors of ONNX Runtime");
    }
    self->output_names = self->input_names + inputs;
    return SP_OK;
}

static sp_status input_open(onnxruntime *self, uint32_t i)
{
    const sp_host_tensor *tensor = &self->of->inputs[i];
    self->input_names[i] = tensor->name;
    ORT(create_tensor_with_data_as_ort_value(self->memory, tensor->data, tensor->bytes,
                                             tensor->shape, tensor->rank,
                                             element_types[tensor->dtype], &self->inputs[i]));
    return SP_OK;
}

static sp_status onnxruntime_open(void *state, const peer_case *of, uint32_t run_threads)
{
    onnxruntime *self = state;
    self->of = of;
    TRY(session_open(self, run_threads));
    TRY(memory_allocate(self));
    ORT(create_cpu_memory_info(ONNXRUNTIME_ARENA_ALLOCATOR, ONNXRUNTIME_MEMORY_DEFAULT,
                               &self->memory));
    for (uint32_t i = 0; i < of->input_count; i++) TRY(input_open(self, i));
    for (uint32_t i = 0; i < of->output_count; i++) self->output_names[i] = of->outputs[i].name;
    return SP_OK;
}

/* ---- runs ---- */

/* Outputs for so many threads; those of fewer remain. */
static sp_status onnxruntime_prepare(void *state, uint32_t threads)
{
    onnxruntime *self = state;
    if (threads <= self->thread_count) return SP_OK;
    void ***outputs = realloc(self->outputs, threads * sizeof *outputs);
    if (outputs == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
    self->outputs = outputs;
    for (; self->thread_count < threads; self->thread_count++) {
        void **values = calloc((size_t)self->of->output_count + 1, sizeof *values);
        if (values == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for outputs");
        outputs[self->thread_count] = values;
    }
    return SP_OK;
}

static sp_status onnxruntime_run(void *state, uint32_t thread)
{
    const onnxruntime *self = state;
    ORT(run(self->session, NULL, self->input_names, self->inputs, self->of->input_count,
            self->output_names, self->of->output_count, self->outputs[thread]));
    return SP_OK;
}

static sp_status info_read(const onnxruntime *self, const void *info, peer_output *out)
{
    ORT(get_tensor_element_type(info, &out->element_type));
    ORT(get_tensor_shape_element_count(info, &out->count));
    return SP_OK;
}

static sp_status onnxruntime_get_output(void *state, uint32_t index, peer_output *out)
{
    const onnxruntime *self = state;
    void *value = self->outputs[0][index], *info;
    ORT(get_tensor_type_and_shape(value, &info));
    const sp_status status = info_read(self, info, out);
    self->api->release_tensor_type_and_shape_info(info);
    TRY(status);
    if (out->count > 0) ORT(get_tensor_mutable_data(value, &out->data));
    return SP_OK;
}

/* ---- end ---- */

static void values_release(const onnxruntime *self, void **values, uint32_t count)
{
    for (uint32_t i = 0; values != NULL && i < count; i++) {
        if (values[i] != NULL) self->api->release_value(values[i]);
    }
}

static void tensors_close(onnxruntime *self)
{
    for (uint32_t i = 0; i < self->thread_count; i++) {
        values_release(self, self->outputs[i], self->of->output_count);
        free(self->outputs[i]);
    }
    values_release(self, self->inputs, self->of->input_count);
    free(self->outputs);
    free(self->inputs);
    free(self->input_names);
}

static void onnxruntime_close(void *state)
{
    onnxruntime *self = state;
    if (self->api == NULL) return;
    if (self->of != NULL) tensors_close(self);
    if (self->session != NULL) self->api->release_session(self->session);
    if (self->memory != NULL) self->api->release_memory_info(self->memory);
    if (self->options != NULL) self->api->release_session_options(self->options);
    if (self->env != NULL) self->api->release_env(self->env);
}

const peer_kind sp__peer_onnxruntime = {
    .label = "ONNX Runtime",
    .symbol = "OrtGetApiBase",
    .element_types = element_types,
    .state_bytes = sizeof(onnxruntime),
    .load = onnxruntime_load,
    .open = onnxruntime_open,
    .prepare = onnxruntime_prepare,
    .run = onnxruntime_run,
    .get_output = onnxruntime_get_output,
    .close = onnxruntime_close,
};
