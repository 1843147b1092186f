/* SPDX-License-Identifier: Apache-2.0 */
/* The contents of an ONNX file, also of one that cannot be loaded as a model: versions, inputs and
 * outputs, and which of its operators are supported. For tools; not needed for sp_model_load.
 *
 * The object is a summary: it keeps neither the file nor its weights. It is immutable and may be
 * read from any thread. Its strings live as long as the object; a NUL inside a name of the file is
 * replaced by '?'. Errors of all calls that take one: SP_INVALID for a zero, stale or foreign
 * handle; of calls that take an index: SP_NOT_FOUND past the end. */
#ifndef STREAMPOOL_MODEL_FILE_H
#define STREAMPOOL_MODEL_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/dtype.h>
#include <streampool/status.h>

SP_EXTERN_C_BEGIN

typedef struct sp_model_file {
    uint64_t bits;
} sp_model_file;

/* Reads a file and checks its format, not whether it can run. Errors: SP_IO, with the file's name;
 * SP_CORRUPT, SP_UNSUPPORTED (element types, ranks), with the place in the file; SP_EXHAUSTED for
 * tables out of proportion to the file's size. */
SP_API sp_status sp_model_file_open(const char *path, sp_model_file *out);
/* The same from the bytes of a file, which are borrowed for the call. */
SP_API sp_status sp_model_file_open_memory(const void *bytes, size_t len, sp_model_file *out);

/* One more reference. SP_EXHAUSTED past 65,535. */
SP_API sp_status sp_model_file_retain(sp_model_file file);
/* One reference less. The zero handle is fine. */
SP_API sp_status sp_model_file_release(sp_model_file file);

typedef struct sp_model_file_info {
    int64_t ir_version;   /* of ONNX's format */
    const char *producer; /* "" if the file does not say */
    uint32_t opset_count;
    uint32_t node_count; /* of the main graph */
    uint32_t initializer_count;
    uint32_t function_count; /* defined in the file */
    uint32_t input_count;    /* includes initializers that are also inputs */
    uint32_t output_count;
    uint32_t op_count;             /* distinct operators, including subgraphs and functions */
    uint32_t unsupported_op_count; /* of these; unless 0, sp_model_load is SP_UNSUPPORTED */
} sp_model_file_info;

/* Versions and counts. */
SP_API sp_status sp_model_file_get_info(sp_model_file file, sp_model_file_info *out);

/* An operator set that the file imports. */
typedef struct sp_model_file_opset {
    const char *domain; /* "" and "ai.onnx" are ONNX's own */
    int64_t version;
} sp_model_file_opset;

/* The `index`-th operator set. */
SP_API sp_status sp_model_file_get_opset(sp_model_file file, uint32_t index,
                                         sp_model_file_opset *out);

/* An input or output of the main graph. */
typedef struct sp_model_file_port {
    const char *name;
    bool is_tensor; /* false: a sequence, a map, or not given; the fields below are then 0 */
    bool has_shape; /* false: not given in the file */
    sp_dtype dtype; /* SP_DTYPE_NONE: not given in the file */
    uint32_t rank;
    int64_t shape[SP_MAX_RANK];         /* -1: a free dimension */
    const char *dim_names[SP_MAX_RANK]; /* of free dimensions, "" if unnamed */
} sp_model_file_port;

/* The `index`-th input. */
SP_API sp_status sp_model_file_get_input(sp_model_file file, uint32_t index,
                                         sp_model_file_port *out);
/* The `index`-th output. */
SP_API sp_status sp_model_file_get_output(sp_model_file file, uint32_t index,
                                          sp_model_file_port *out);

/* An operator that nodes of the file use. */
typedef struct sp_model_file_op {
    const char *domain; /* "" is ONNX's own */
    const char *name;
    int64_t version;   /* of its domain's operator set at the first use; 0 if not imported */
    uint32_t count;    /* nodes; each node of a function counts once */
    bool is_function;  /* defined in the file */
    bool is_supported; /* a function, or an operator that models may use in this version */
} sp_model_file_op;

/* The `index`-th operator: the most frequent first, then by name. */
SP_API sp_status sp_model_file_get_op(sp_model_file file, uint32_t index, sp_model_file_op *out);

SP_EXTERN_C_END

#endif
