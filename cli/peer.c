/* SPDX-License-Identifier: Apache-2.0 */
#include "peer.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "peer_api.h"
#include "process.h"
#include "tensors.h"
#include "text.h"

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

/* Until the process ends. dlopen does not search the working folder for a name without a folder. */
static void *library_open(const char *library)
{
    char path[FILENAME_MAX];
    const bool is_here = strchr(library, '/') == NULL && file_exists(library);
    const int length = snprintf(path, sizeof path, "%s%s", is_here ? "./" : "", library);
    const bool fits = length >= 0 && (size_t)length < sizeof path;
    return dlopen(fits ? path : library, RTLD_NOW | RTLD_LOCAL);
}

sp_status peer_load(peer *self, const char *library)
{
    const peer_api_base *(*get_base)(void) = NULL;
    *self = (peer){0};
    void *handle = library_open(library);
    if (handle == NULL) {
        const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): per thread in glibc */
        return fail(SP_IO, "it cannot be opened: %s", reason);
    }
    /* As POSIX has it: a function's address through an object pointer. */
    *(void **)&get_base = dlsym(handle, "OrtGetApiBase");
    if (get_base == NULL) {
        return fail(SP_UNSUPPORTED,
                    "it is not the library of ONNX Runtime: it has no function OrtGetApiBase");
    }
    const peer_api_base *base = get_base();
    snprintf(self->name, sizeof self->name, "ONNX Runtime %s", base->get_version_string());
    self->api = base->get_api(PEER_API_VERSION);
    if (self->api != NULL) return SP_OK;
    return fail(SP_UNSUPPORTED, "it is %s, which has no version %d of its C API", self->name,
                PEER_API_VERSION);
}

static sp_status session_open(peer *self)
{
    PEER(create_env(PEER_LOG_ERROR, "streampool", &self->env));
    PEER(create_session_options(&self->options));
    PEER(set_intra_op_num_threads(self->options, 1));
    PEER(set_inter_op_num_threads(self->options, 1));
    PEER(create_session(self->env, self->of->path, self->options, &self->session));
    return SP_OK;
}

/* ---- tensors ---- */

static sp_status input_open(peer *self, uint32_t i)
{
    const sp_host_tensor *tensor = &self->of->inputs[i];
    self->input_names[i] = tensor->name;
    PEER(create_tensor_with_data_as_ort_value(self->memory, tensor->data, tensor->bytes,
                                              tensor->shape, tensor->rank,
                                              element_types[tensor->dtype], &self->inputs[i]));
    return SP_OK;
}

static sp_status memory_allocate(peer *self, uint32_t threads)
{
    const size_t inputs = (size_t)self->of->input_count + 1;
    const size_t outputs = (size_t)self->of->output_count + 1;
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
    TRY(memory_allocate(self, threads));
    PEER(create_cpu_memory_info(PEER_ARENA_ALLOCATOR, PEER_MEMORY_DEFAULT, &self->memory));
    for (uint32_t i = 0; i < self->of->input_count; i++) TRY(input_open(self, i));
    for (uint32_t i = 0; i < self->of->output_count; i++) {
        self->output_names[i] = self->of->outputs[i].name;
    }
    return SP_OK;
}

/* ---- runs ---- */

sp_status peer_call(void *ctx, uint32_t thread)
{
    const peer *self = ctx;
    PEER(run(self->session, NULL, self->input_names, self->inputs, self->of->input_count,
             self->output_names, self->of->output_count, self->outputs[thread]));
    return SP_OK;
}

static sp_status info_read(const peer *self, const void *info, int *type, size_t *count)
{
    PEER(get_tensor_element_type(info, type));
    PEER(get_tensor_shape_element_count(info, count));
    return SP_OK;
}

static sp_status output_check(peer *self, uint32_t i)
{
    const sp_host_tensor *want = &self->of->outputs[i];
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
    self->difference = fmax(self->difference, difference.largest);
    if (difference.bad_count == 0) return SP_OK;
    return fail(SP_MISMATCH, "output '%s' of ONNX Runtime has %g where ours has %g",
                self->output_names[i], difference.got, difference.want);
}

sp_status peer_open(peer *self, const peer_case *of, uint32_t threads)
{
    self->of = of;
    uint64_t start_ns = clock_ns();
    TRY(session_open(self));
    self->load_ns = clock_ns() - start_ns;
    TRY(tensors_open(self, threads));
    start_ns = clock_ns();
    TRY(peer_call(self, 0));
    self->first_run_ns = clock_ns() - start_ns;
    for (uint32_t i = 0; i < of->output_count; i++) TRY(output_check(self, i));
    return SP_OK;
}

static void values_release(const peer *self, void **values, uint32_t count)
{
    for (uint32_t i = 0; values != NULL && i < count; i++) {
        if (values[i] != NULL) self->api->release_value(values[i]);
    }
}

static void tensors_close(peer *self)
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

void peer_close(peer *self)
{
    if (self->api == NULL) return;
    if (self->of != NULL) tensors_close(self);
    if (self->session != NULL) self->api->release_session(self->session);
    if (self->memory != NULL) self->api->release_memory_info(self->memory);
    if (self->options != NULL) self->api->release_session_options(self->options);
    if (self->env != NULL) self->api->release_env(self->env);
    *self = (peer){0};
}
