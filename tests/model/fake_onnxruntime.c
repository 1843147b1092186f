/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the C API of ONNX Runtime, as far as the program calls it (fake_peer.h). */
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "fake_peer.h"
#include "onnxruntime_api.h"

struct onnxruntime_status {
    const char *message;
};

typedef struct value {
    float *data;
    size_t count;
    bool is_owned;
} value;

static int object; /* what other handles point at */

static const char *get_error_message(const onnxruntime_status *status)
{
    return status->message;
}

static onnxruntime_status *create_env(int log_level, const char *log_id, void **env)
{
    (void)log_level;
    (void)log_id;
    *env = &object;
    return NULL;
}

static onnxruntime_status *create_session(void *env, const char *path, void *options,
                                          void **session)
{
    static onnxruntime_status refused = {"the model is refused"};
    (void)env;
    (void)options;
    *session = &object;
    return fake_peer_is("refused") || access(path, R_OK) != 0 ? &refused : NULL;
}

static onnxruntime_status *create_options(void **options)
{
    *options = &object;
    return NULL;
}

static onnxruntime_status *set_run_threads(void *options, int threads)
{
    static onnxruntime_status wrong = {"another number of threads"};
    (void)options;
    return threads == fake_peer_run_threads() ? NULL : &wrong;
}

static onnxruntime_status *set_nodes(void *options, int threads)
{
    static onnxruntime_status wrong = {"more nodes at a time than one"};
    (void)options;
    return threads == 1 ? NULL : &wrong;
}

static onnxruntime_status *create_memory(int allocator_type, int memory_type, void **memory)
{
    (void)allocator_type;
    (void)memory_type;
    *memory = &object;
    return NULL;
}

static onnxruntime_status *create_tensor(void *memory, void *data, size_t bytes,
                                         const int64_t *shape, size_t rank, int element_type,
                                         void **out)
{
    value *tensor = calloc(1, sizeof *tensor);
    (void)memory;
    (void)shape;
    (void)rank;
    (void)element_type;
    if (tensor == NULL) abort();
    *tensor = (value){.data = data, .count = bytes / sizeof(float)};
    *out = tensor;
    return NULL;
}

static void *output_create(size_t count)
{
    value *tensor = calloc(1, sizeof *tensor);
    if (tensor == NULL) abort();
    *tensor = (value){.data = calloc(count + 1, sizeof(float)), .count = count, .is_owned = true};
    if (tensor->data == NULL) abort();
    return tensor;
}

static onnxruntime_status *run(void *session, const void *run_options,
                               const char *const *input_names, void *const *inputs,
                               size_t input_count, const char *const *output_names,
                               size_t output_count, void **outputs)
{
    const value *x = inputs[0];
    (void)session;
    (void)run_options;
    (void)input_names;
    (void)input_count;
    (void)output_names;
    fake_peer_begin();
    for (size_t i = 0; i < output_count; i++) {
        if (outputs[i] == NULL) outputs[i] = output_create(x->count);
        const value *y = outputs[i];
        fake_peer_compute(x->data, y->data, y->count);
    }
    return NULL;
}

static onnxruntime_status *get_data(void *tensor, void **data)
{
    *data = ((value *)tensor)->data;
    return NULL;
}

static onnxruntime_status *get_info(const void *tensor, void **info)
{
    *info = (void *)(uintptr_t)tensor;
    return NULL;
}

static onnxruntime_status *get_type(const void *info, int *element_type)
{
    (void)info;
    *element_type = fake_peer_is("type") ? 11 : 1; /* double, float */
    return NULL;
}

static onnxruntime_status *get_count(const void *info, size_t *count)
{
    *count = ((const value *)info)->count - (fake_peer_is("small") ? 1 : 0);
    return NULL;
}

static void release_status(onnxruntime_status *status)
{
    (void)status;
}

static void release_value(void *tensor)
{
    value *released = tensor;
    if (released->is_owned) free(released->data);
    free(released);
}

static void release_object(void *released)
{
    (void)released;
}

static const onnxruntime_api api = {.get_error_message = get_error_message,
                                    .create_env = create_env,
                                    .create_session = create_session,
                                    .run = run,
                                    .create_session_options = create_options,
                                    .set_intra_op_num_threads = set_run_threads,
                                    .set_inter_op_num_threads = set_nodes,
                                    .create_tensor_with_data_as_ort_value = create_tensor,
                                    .get_tensor_mutable_data = get_data,
                                    .get_tensor_element_type = get_type,
                                    .get_tensor_shape_element_count = get_count,
                                    .get_tensor_type_and_shape = get_info,
                                    .create_cpu_memory_info = create_memory,
                                    .release_env = release_object,
                                    .release_status = release_status,
                                    .release_memory_info = release_object,
                                    .release_session = release_object,
                                    .release_value = release_value,
                                    .release_tensor_type_and_shape_info = release_object,
                                    .release_session_options = release_object};

static const onnxruntime_api *get_api(uint32_t version)
{
    return fake_peer_is("old") || version != ONNXRUNTIME_API_VERSION ? NULL : &api;
}

static const char *get_version(void)
{
    return "9.8.7";
}

const onnxruntime_api_base *
OrtGetApiBase(void); /* NOLINT(readability-identifier-naming): the peer's */

const onnxruntime_api_base *OrtGetApiBase(void) /* NOLINT(readability-identifier-naming) */
{
    static const onnxruntime_api_base base = {get_api, get_version};
    return &base;
}
