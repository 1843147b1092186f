/* SPDX-License-Identifier: Apache-2.0 */
/* OpenVINO as a peer, called through its C API. Each thread has an infer request of its own. The
 * model has the sizes of the case's inputs: OpenVINO compiles it for them, as plans are. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "openvino_api.h"
#include "peer_kind.h"

typedef struct openvino {
    openvino_api api;
    const peer_case *of;
    void *core, *model, *compiled;
    void **inputs;   /* tensors, shared by the threads */
    void **requests; /* by thread */
    uint32_t thread_count;
    uint32_t run_threads; /* of a stream, or 0 */
} openvino;

/* Values of ov_element_type_e. */
static const int element_types[] = {
    [SP_BOOL] = 1, [SP_BF16] = 2, [SP_F16] = 3,  [SP_F32] = 4,  [SP_F64] = 5,
    [SP_I8] = 7,   [SP_I16] = 8,  [SP_I32] = 9,  [SP_I64] = 10, [SP_U8] = 16,
    [SP_U16] = 17, [SP_U32] = 18, [SP_U64] = 19,
};

/* Its texts have several lines; a message is one. */
static sp_status from_openvino(const openvino *self, int status)
{
    char message[FAILURE_BYTES];
    if (status == 0) return SP_OK;
    const char *text = self->api.get_last_err_msg();
    snprintf(message, sizeof message, "%s", text != NULL ? text : "");
    if (text != NULL) self->api.free(text);
    for (char *end; (end = strchr(message, '\n')) != NULL;) *end = ' ';
    return fail(SP_INTERNAL, "OpenVINO: %s: %s", self->api.get_error_info(status), message);
}

#define OPENVINO(call) TRY(from_openvino(self, self->api.call))

/* ---- the library ---- */

static sp_status functions_find(openvino_api *api, void *library)
{
    /* As POSIX has it: a function's address through an object pointer. */
#define FIND(name, type, parameters)                                                               \
    *(void **)&api->name = dlsym(library, "ov_" #name);                                            \
    if (api->name == NULL) return fail(SP_UNSUPPORTED, "it has no function ov_" #name);
    OPENVINO_CALLS(FIND)
#undef FIND
    return SP_OK;
}

static sp_status openvino_load(void *state, void *library, char *name)
{
    openvino *self = state;
    openvino_version version = {0};
    TRY(functions_find(&self->api, library));
    OPENVINO(get_openvino_version(&version));
    const int length = (int)strcspn(version.build_number, "-");
    const long year = strtol(version.build_number, NULL, 10);
    snprintf(name, PEER_NAME_BYTES, "OpenVINO %.*s", length, version.build_number);
    self->api.version_free(&version);
    if (year >= OPENVINO_OLDEST_YEAR) return SP_OK;
    return fail(SP_UNSUPPORTED, "it is %s; %d.0 or newer is needed", name, OPENVINO_OLDEST_YEAR);
}

/* ---- the model ---- */

/* Scalars have no sizes, and the C API takes rank 0 for one that is not known. */
static sp_status model_reshape(openvino *self, const char **names, openvino_partial_shape *shapes,
                               openvino_dimension *dims)
{
    size_t count = 0;
    for (uint32_t i = 0; i < self->of->input_count; i++) {
        const sp_host_tensor *input = &self->of->inputs[i];
        if (input->rank == 0) continue;
        names[count] = input->name;
        shapes[count++] = (openvino_partial_shape){{input->rank, input->rank}, dims};
        for (uint32_t d = 0; d < input->rank; d++, dims++) {
            *dims = (openvino_dimension){input->shape[d], input->shape[d]};
        }
    }
    if (count > 0) OPENVINO(model_reshape(self->model, names, shapes, count));
    return SP_OK;
}

/* A size that the file leaves open would otherwise be found in each run. */
static sp_status sizes_set(openvino *self)
{
    const size_t count = (size_t)self->of->input_count + 1;
    const char **names = calloc(count, sizeof *names);
    openvino_partial_shape *shapes = calloc(count, sizeof *shapes);
    openvino_dimension *dims = calloc(count * SP_MAX_RANK, sizeof *dims);
    const bool has_memory = names != NULL && shapes != NULL && dims != NULL;
    const sp_status status = has_memory
                                 ? model_reshape(self, names, shapes, dims)
                                 : fail(SP_OUT_OF_MEMORY, "no memory for the sizes of inputs");
    free(dims);
    free(shapes);
    free(names);
    return status;
}

static sp_status input_open(openvino *self, uint32_t i)
{
    sp_host_tensor *input = &self->of->inputs[i];
    const openvino_shape shape = {.rank = input->rank, .dims = input->shape};
    OPENVINO(tensor_create_from_host_ptr(element_types[input->dtype], shape, input->data,
                                         &self->inputs[i]));
    return SP_OK;
}

static void compiled_close(openvino *self)
{
    for (uint32_t i = 0; i < self->thread_count; i++) {
        if (self->requests[i] != NULL) self->api.infer_request_free(self->requests[i]);
    }
    free(self->requests);
    if (self->compiled != NULL) self->api.compiled_model_free(self->compiled);
    self->requests = NULL;
    self->compiled = NULL;
    self->thread_count = 0;
}

/* A stream computes one run at a time, by threads of its own; without a number the streams share
 * the processors. One thread in each, and a stream for each caller, is what fits callers that keep
 * all processors busy; the library makes no more streams than there are processors. A single stream
 * of one thread runs on its caller's thread.
 * f32: otherwise processors with bf16 compute in that. All else is as the library has it. */
static sp_status model_compile(openvino *self, uint32_t threads)
{
    char streams[16], all[16];
    snprintf(streams, sizeof streams, "%u", threads);
    snprintf(all, sizeof all, "%u", threads * self->run_threads);
    OPENVINO(core_compile_model(self->core, self->model, "CPU", self->run_threads > 0 ? 6 : 4,
                                &self->compiled, "NUM_STREAMS", streams, "INFERENCE_PRECISION_HINT",
                                "f32", "INFERENCE_NUM_THREADS", all));
    return SP_OK;
}

static sp_status request_create(openvino *self, void **out)
{
    OPENVINO(compiled_model_create_infer_request(self->compiled, out));
    for (uint32_t i = 0; i < self->of->input_count; i++) {
        OPENVINO(infer_request_set_tensor(*out, self->of->inputs[i].name, self->inputs[i]));
    }
    return SP_OK;
}

/* The number of streams is constant in a compiled model: another number is another one. */
static sp_status openvino_prepare(void *state, uint32_t threads)
{
    openvino *self = state;
    if (threads == self->thread_count) return SP_OK;
    compiled_close(self);
    TRY(model_compile(self, threads));
    self->requests = calloc(threads, sizeof *self->requests);
    if (self->requests == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for infer requests");
    self->thread_count = threads;
    for (uint32_t i = 0; i < threads; i++) TRY(request_create(self, &self->requests[i]));
    return SP_OK;
}

static sp_status openvino_open(void *state, const peer_case *of, uint32_t run_threads)
{
    openvino *self = state;
    self->of = of;
    self->run_threads = run_threads;
    self->inputs = calloc((size_t)of->input_count + 1, sizeof *self->inputs);
    if (self->inputs == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for inputs");
    OPENVINO(core_create(&self->core));
    OPENVINO(core_read_model(self->core, of->path, NULL, &self->model));
    TRY(sizes_set(self));
    for (uint32_t i = 0; i < of->input_count; i++) TRY(input_open(self, i));
    return openvino_prepare(self, 1);
}

/* ---- runs ---- */

static sp_status openvino_run(void *state, uint32_t thread)
{
    const openvino *self = state;
    OPENVINO(infer_request_infer(self->requests[thread]));
    return SP_OK;
}

static sp_status tensor_read_output(const openvino *self, const void *tensor, peer_output *out)
{
    OPENVINO(tensor_get_element_type(tensor, &out->element_type));
    OPENVINO(tensor_get_size(tensor, &out->count));
    if (out->count > 0) OPENVINO(tensor_data(tensor, &out->data));
    return SP_OK;
}

/* The memory is the request's. */
static sp_status openvino_get_output(void *state, uint32_t index, peer_output *out)
{
    const openvino *self = state;
    void *tensor;
    OPENVINO(infer_request_get_tensor(self->requests[0], self->of->outputs[index].name, &tensor));
    const sp_status status = tensor_read_output(self, tensor, out);
    self->api.tensor_free(tensor);
    return status;
}

static void openvino_close(void *state)
{
    openvino *self = state;
    compiled_close(self);
    for (uint32_t i = 0; self->inputs != NULL && i < self->of->input_count; i++) {
        if (self->inputs[i] != NULL) self->api.tensor_free(self->inputs[i]);
    }
    free(self->inputs);
    if (self->model != NULL) self->api.model_free(self->model);
    if (self->core != NULL) self->api.core_free(self->core);
}

const peer_kind sp__peer_openvino = {
    .label = "OpenVINO",
    .symbol = "ov_get_openvino_version",
    .element_types = element_types,
    .state_bytes = sizeof(openvino),
    .load = openvino_load,
    .open = openvino_open,
    .prepare = openvino_prepare,
    .run = openvino_run,
    .get_output = openvino_get_output,
    .close = openvino_close,
};
