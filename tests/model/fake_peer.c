/* SPDX-License-Identifier: Apache-2.0 */
/* A library with the C API of ONNX Runtime, as far as the program calls it: each output is the Relu
 * of the first input, which has floats. FAKE_PEER names what is wrong: "old", no version of the
 * API; "refused", no session; "wrong", other values; "type", another type; "small", too few
 * elements; "dies", the process ends in the third run; "slow", a run takes 10 s.
 * primitive: that sleep. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peer_api.h"

struct peer_status {
    const char *message;
};

typedef struct value {
    float *data;
    size_t count;
    bool is_owned;
} value;

static int object; /* what other handles point at */

static bool is_fault(const char *name)
{
    const char *fault = getenv("FAKE_PEER");
    return fault != NULL && strcmp(fault, name) == 0;
}

static const char *get_error_message(const peer_status *status)
{
    return status->message;
}

static peer_status *create_env(int log_level, const char *log_id, void **env)
{
    (void)log_level;
    (void)log_id;
    *env = &object;
    return NULL;
}

static peer_status *create_session(void *env, const char *path, void *options, void **session)
{
    static peer_status refused = {"the model is refused"};
    (void)env;
    (void)options;
    *session = &object;
    return is_fault("refused") || access(path, R_OK) != 0 ? &refused : NULL;
}

static peer_status *create_options(void **options)
{
    *options = &object;
    return NULL;
}

static peer_status *set_threads(void *options, int threads)
{
    static peer_status wrong = {"more threads than one"};
    (void)options;
    return threads == 1 ? NULL : &wrong;
}

static peer_status *create_memory(int allocator_type, int memory_type, void **memory)
{
    (void)allocator_type;
    (void)memory_type;
    *memory = &object;
    return NULL;
}

static peer_status *create_tensor(void *memory, void *data, size_t bytes, const int64_t *shape,
                                  size_t rank, int element_type, void **out)
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

static peer_status *run(void *session, const void *run_options, const char *const *input_names,
                        void *const *inputs, size_t input_count, const char *const *output_names,
                        size_t output_count, void **outputs)
{
    static int runs; /* of one thread if they are counted */
    const value *x = inputs[0];
    (void)session;
    (void)run_options;
    (void)input_names;
    (void)input_count;
    (void)output_names;
    if (is_fault("dies") && ++runs == 3) _exit(1);
    if (is_fault("slow")) sleep(10);
    for (size_t i = 0; i < output_count; i++) {
        if (outputs[i] == NULL) outputs[i] = output_create(x->count);
        const value *y = outputs[i];
        for (size_t k = 0; k < y->count; k++) {
            y->data[k] = (x->data[k] > 0 ? x->data[k] : 0) + (is_fault("wrong") ? 0.5f : 0);
        }
    }
    return NULL;
}

static peer_status *get_data(void *tensor, void **data)
{
    *data = ((value *)tensor)->data;
    return NULL;
}

static peer_status *get_info(const void *tensor, void **info)
{
    *info = (void *)(uintptr_t)tensor;
    return NULL;
}

static peer_status *get_type(const void *info, int *element_type)
{
    (void)info;
    *element_type = is_fault("type") ? 11 : 1; /* double, float */
    return NULL;
}

static peer_status *get_count(const void *info, size_t *count)
{
    *count = ((const value *)info)->count - (is_fault("small") ? 1 : 0);
    return NULL;
}

static void release_status(peer_status *status)
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

static const peer_api api = {.get_error_message = get_error_message,
                             .create_env = create_env,
                             .create_session = create_session,
                             .run = run,
                             .create_session_options = create_options,
                             .set_intra_op_num_threads = set_threads,
                             .set_inter_op_num_threads = set_threads,
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

static const peer_api *get_api(uint32_t version)
{
    return is_fault("old") || version != PEER_API_VERSION ? NULL : &api;
}

static const char *get_version(void)
{
    return "9.8.7";
}

const peer_api_base *OrtGetApiBase(void); /* NOLINT(readability-identifier-naming): the peer's */

const peer_api_base *OrtGetApiBase(void) /* NOLINT(readability-identifier-naming) */
{
    static const peer_api_base base = {get_api, get_version};
    return &base;
}
