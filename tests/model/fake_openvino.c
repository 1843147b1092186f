/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the C API of OpenVINO, as far as the program calls it (fake_peer.h). It refuses a
 * model whose sizes are not those of its input, settings other than one thread for each stream,
 * more infer requests than streams, and a request that two threads run at the same time.
 * primitive: the atomic that finds those; the file is a library of its own. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_peer.h"
#include "openvino_api.h"

#define DECLARE(name, type, parameters) type ov_##name parameters;
OPENVINO_CALLS(DECLARE)
#undef DECLARE

enum { OV_OK = 0, OV_GENERAL_ERROR = -1, OV_F32 = 4, OV_F64 = 5 };

typedef struct model {
    size_t count; /* elements of the first input, which is a scalar until it has sizes */
} model;

typedef struct compiled_model {
    const model *of;
    int streams, requests;
} compiled_model;

typedef struct tensor {
    float *data;
    size_t count;
} tensor;

typedef struct infer_request {
    tensor x, y;
    atomic_bool is_busy;
} infer_request;

static int object; /* the core */
static const char *error;

static int refuse(const char *message)
{
    error = message;
    return OV_GENERAL_ERROR;
}

static void *object_allocate(size_t bytes)
{
    void *out = calloc(1, bytes);
    if (out == NULL) abort();
    return out;
}

/* ---- the library ---- */

int ov_get_openvino_version(openvino_version *version)
{
    version->build_number = strdup(fake_peer_is("old") ? "2025.4.1-20000-x" : "9998.7.6-20000-x");
    version->description = NULL;
    return OV_OK;
}

void ov_version_free(openvino_version *version)
{
    free((void *)(uintptr_t)version->build_number);
}

const char *ov_get_error_info(int status)
{
    return status == OV_GENERAL_ERROR ? "GENERAL_ERROR" : "OK";
}

const char *ov_get_last_err_msg(void)
{
    return error != NULL ? strdup(error) : NULL;
}

void ov_free(const char *text)
{
    free((void *)(uintptr_t)text);
}

int ov_core_create(void **core)
{
    *core = &object;
    return OV_OK;
}

void ov_core_free(void *core)
{
    (void)core;
}

/* ---- models ---- */

int ov_core_read_model(const void *core, const char *path, const char *weights, void **out)
{
    (void)core;
    if (weights != NULL || access(path, R_OK) != 0) return refuse("there is no such model");
    model *self = object_allocate(sizeof *self);
    self->count = 1;
    *out = self;
    return OV_OK;
}

int ov_model_reshape(const void *reshaped, const char **names, const openvino_partial_shape *shapes,
                     size_t count)
{
    model *self = (model *)(uintptr_t)reshaped;
    if (count != 1 || strcmp(names[0], "x") != 0) return refuse("another input than x");
    if (shapes->rank.min < 1 || shapes->rank.min != shapes->rank.max) {
        return refuse("a rank that is not known");
    }
    self->count = 1;
    for (int64_t i = 0; i < shapes->rank.min; i++) {
        if (shapes->dims[i].min != shapes->dims[i].max) return refuse("a size that is not known");
        self->count *= (size_t)shapes->dims[i].min;
    }
    return OV_OK;
}

void ov_model_free(void *freed)
{
    free(freed);
}

/* Streams that have the expected number of threads each, or 0. */
static int streams_of(size_t text_count, va_list texts)
{
    int streams = 0, threads = 0;
    bool is_f32 = false;
    for (size_t i = 0; i < text_count; i += 2) {
        const char *key = va_arg(texts, const char *);
        const char *value = va_arg(texts, const char *);
        if (strcmp(key, "NUM_STREAMS") == 0) streams = (int)strtol(value, NULL, 10);
        if (strcmp(key, "INFERENCE_NUM_THREADS") == 0) threads = (int)strtol(value, NULL, 10);
        if (strcmp(key, "INFERENCE_PRECISION_HINT") == 0) is_f32 = strcmp(value, "f32") == 0;
    }
    return is_f32 && streams * fake_peer_run_threads() == threads ? streams : 0;
}

int ov_core_compile_model(const void *core, const void *of, const char *device, size_t text_count,
                          void **compiled, ...)
{
    va_list texts;
    (void)core;
    va_start(texts, compiled);
    const int streams = streams_of(text_count, texts);
    va_end(texts);
    if (fake_peer_is("refused")) return refuse("the model\nis refused");
    if (strcmp(device, "CPU") != 0 || streams == 0) return refuse("other settings");
    compiled_model *out = object_allocate(sizeof *out);
    *out = (compiled_model){.of = of, .streams = streams};
    *compiled = out;
    return OV_OK;
}

void ov_compiled_model_free(void *compiled)
{
    free(compiled);
}

/* ---- tensors ---- */

static tensor *tensor_create(float *data, size_t count)
{
    tensor *out = object_allocate(sizeof *out);
    *out = (tensor){data, count};
    return out;
}

int ov_tensor_create_from_host_ptr(int element_type, openvino_shape shape, void *data, void **out)
{
    size_t count = 1;
    if (element_type != OV_F32) return refuse("another type than f32");
    for (int64_t i = 0; i < shape.rank; i++) count *= (size_t)shape.dims[i];
    *out = tensor_create(data, count);
    return OV_OK;
}

int ov_tensor_get_element_type(const void *of, int *element_type)
{
    (void)of;
    *element_type = fake_peer_is("type") ? OV_F64 : OV_F32;
    return OV_OK;
}

int ov_tensor_get_size(const void *of, size_t *element_count)
{
    *element_count = ((const tensor *)of)->count - (fake_peer_is("small") ? 1 : 0);
    return OV_OK;
}

int ov_tensor_data(const void *of, void **data)
{
    *data = ((const tensor *)of)->data;
    return OV_OK;
}

void ov_tensor_free(void *freed)
{
    free(freed);
}

/* ---- runs ---- */

int ov_compiled_model_create_infer_request(const void *compiled, void **request)
{
    compiled_model *self = (compiled_model *)(uintptr_t)compiled;
    if (++self->requests > self->streams) return refuse("more requests than streams");
    infer_request *out = object_allocate(sizeof *out);
    out->y = (tensor){object_allocate((self->of->count + 1) * sizeof(float)), self->of->count};
    *request = out;
    return OV_OK;
}

int ov_infer_request_set_tensor(void *request, const char *name, const void *set)
{
    infer_request *self = request;
    if (strcmp(name, "x") != 0) return refuse("another input than x");
    self->x = *(const tensor *)set;
    return self->x.count == self->y.count ? OV_OK : refuse("another size");
}

int ov_infer_request_infer(void *request)
{
    infer_request *self = request;
    if (atomic_exchange(&self->is_busy, true)) return refuse("the request is busy");
    fake_peer_begin();
    fake_peer_compute(self->x.data, self->y.data, self->y.count);
    atomic_store(&self->is_busy, false);
    return OV_OK;
}

int ov_infer_request_get_tensor(const void *request, const char *name, void **out)
{
    const infer_request *self = request;
    if (strcmp(name, "y") != 0) return refuse("another output than y");
    *out = tensor_create(self->y.data, self->y.count);
    return OV_OK;
}

void ov_infer_request_free(void *request)
{
    free(((infer_request *)request)->y.data);
    free(request);
}
