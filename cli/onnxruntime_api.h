/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of ONNX Runtime's C API that the program uses, at their places in its table of
 * functions (struct OrtApi of onnxruntime_c_api.h, which only grows at its end). Names are those of
 * the table, in lower case; objects are opaque. A call returns NULL or a status that says what
 * failed. */
#ifndef SP_CLI_ONNXRUNTIME_API_H
#define SP_CLI_ONNXRUNTIME_API_H

#include <stddef.h>
#include <stdint.h>

/* All calls below are in version 1 of the table; a library supports the versions up to its own. */
#define ONNXRUNTIME_API_VERSION 13

typedef struct onnxruntime_status onnxruntime_status;

/* Enumerators of the C API. */
enum {
    ONNXRUNTIME_LOG_ERROR = 3,       /* ORT_LOGGING_LEVEL_ERROR */
    ONNXRUNTIME_ARENA_ALLOCATOR = 1, /* OrtArenaAllocator */
    ONNXRUNTIME_MEMORY_DEFAULT = 0   /* OrtMemTypeDefault */
};

typedef struct onnxruntime_api {
    void *create_status, *get_error_code;
    const char *(*get_error_message)(const onnxruntime_status *status);
    onnxruntime_status *(*create_env)(int log_level, const char *log_id, void **env);
    void *skipped_4[3];
    onnxruntime_status *(*create_session)(void *env, const char *path, void *options,
                                          void **session);
    void *skipped_8;
    onnxruntime_status *(*run)(void *session, const void *run_options,
                               const char *const *input_names, void *const *inputs,
                               size_t input_count, const char *const *output_names,
                               size_t output_count, void **outputs);
    onnxruntime_status *(*create_session_options)(void **options);
    void *skipped_11[13];
    onnxruntime_status *(*set_intra_op_num_threads)(void *options, int threads);
    onnxruntime_status *(*set_inter_op_num_threads)(void *options, int threads);
    void *skipped_26[23];
    onnxruntime_status *(*create_tensor_with_data_as_ort_value)(void *memory, void *data,
                                                                size_t bytes, const int64_t *shape,
                                                                size_t rank, int element_type,
                                                                void **value);
    void *skipped_50;
    onnxruntime_status *(*get_tensor_mutable_data)(void *value, void **data);
    void *skipped_52[8];
    onnxruntime_status *(*get_tensor_element_type)(const void *info, int *element_type);
    void *skipped_61[3];
    onnxruntime_status *(*get_tensor_shape_element_count)(const void *info, size_t *count);
    onnxruntime_status *(*get_tensor_type_and_shape)(const void *value, void **info);
    void *skipped_66[3];
    onnxruntime_status *(*create_cpu_memory_info)(int allocator_type, int memory_type,
                                                  void **memory);
    void *skipped_70[22];
    void (*release_env)(void *env);
    void (*release_status)(onnxruntime_status *status);
    void (*release_memory_info)(void *memory);
    void (*release_session)(void *session);
    void (*release_value)(void *value);
    void *skipped_97[2];
    void (*release_tensor_type_and_shape_info)(void *info);
    void (*release_session_options)(void *options);
} onnxruntime_api;

#define ONNXRUNTIME_SLOT(field) (offsetof(onnxruntime_api, field) / sizeof(void *))
_Static_assert(ONNXRUNTIME_SLOT(create_session) == 7 && ONNXRUNTIME_SLOT(run) == 9,
               "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(set_intra_op_num_threads) == 24, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(create_tensor_with_data_as_ort_value) == 49, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(get_tensor_element_type) == 60, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(get_tensor_type_and_shape) == 65, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(create_cpu_memory_info) == 69, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(release_env) == 92, "places in the table");
_Static_assert(ONNXRUNTIME_SLOT(release_session_options) == 100, "places in the table");

/* What the library's function OrtGetApiBase returns. `get_api` returns NULL for a version that the
 * library does not have. */
typedef struct onnxruntime_api_base {
    const onnxruntime_api *(*get_api)(uint32_t version);
    const char *(*get_version_string)(void);
} onnxruntime_api_base;

#endif
