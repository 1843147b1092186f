/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of OpenVINO's C API that the program uses (openvino/c/openvino.h, versions 2026.0 and
 * later; the numbers of element types were others before). Names are those of the library without
 * the prefix ov_; objects are opaque. An int that a call returns is 0, or says what failed. */
#ifndef SP_CLI_OPENVINO_API_H
#define SP_CLI_OPENVINO_API_H

#include <stddef.h>
#include <stdint.h>

#define OPENVINO_OLDEST_YEAR 2026

typedef struct openvino_version {
    const char *build_number; /* "2026.4.1-22982-..." */
    const char *description;
} openvino_version;

typedef struct openvino_shape {
    int64_t rank;
    int64_t *dims;
} openvino_shape;

typedef struct openvino_dimension {
    int64_t min, max;
} openvino_dimension;

typedef struct openvino_partial_shape {
    openvino_dimension rank;
    openvino_dimension *dims;
} openvino_partial_shape;

/* CALL(name, type, parameters). Properties of core_compile_model follow as texts, keys and values
 * in turns, `text_count` of both. The text of get_last_err_msg is freed by free. */
#define OPENVINO_CALLS(CALL)                                                                       \
    CALL(get_openvino_version, int, (openvino_version * version))                                  \
    CALL(version_free, void, (openvino_version * version))                                         \
    CALL(get_error_info, const char *, (int status))                                               \
    CALL(get_last_err_msg, const char *, (void))                                                   \
    CALL(free, void, (const char *text))                                                           \
    CALL(core_create, int, (void **core))                                                          \
    CALL(core_free, void, (void *core))                                                            \
    CALL(core_read_model, int,                                                                     \
         (const void *core, const char *path, const char *weights, void **model))                  \
    CALL(core_compile_model, int,                                                                  \
         (const void *core, const void *model, const char *device, size_t text_count,              \
          void **compiled, ...))                                                                   \
    CALL(model_reshape, int,                                                                       \
         (const void *model, const char **names, const openvino_partial_shape *shapes,             \
          size_t count))                                                                           \
    CALL(model_free, void, (void *model))                                                          \
    CALL(compiled_model_create_infer_request, int, (const void *compiled, void **request))         \
    CALL(compiled_model_free, void, (void *compiled))                                              \
    CALL(infer_request_set_tensor, int, (void *request, const char *name, const void *tensor))     \
    CALL(infer_request_get_tensor, int, (const void *request, const char *name, void **tensor))    \
    CALL(infer_request_infer, int, (void *request))                                                \
    CALL(infer_request_free, void, (void *request))                                                \
    CALL(tensor_create_from_host_ptr, int,                                                         \
         (int element_type, openvino_shape shape, void *data, void **tensor))                      \
    CALL(tensor_get_element_type, int, (const void *tensor, int *element_type))                    \
    CALL(tensor_get_size, int, (const void *tensor, size_t *element_count))                        \
    CALL(tensor_data, int, (const void *tensor, void **data))                                      \
    CALL(tensor_free, void, (void *tensor))

#define OPENVINO_FIELD(name, type, parameters) type(*name) parameters;
typedef struct openvino_api {
    OPENVINO_CALLS(OPENVINO_FIELD)
} openvino_api;

#endif
