/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX files as read-only tables. The tables point into the file's bytes, which must outlive them.
 * Reading checks the file's form (framing, types, sizes, counts of values); what the graph means is
 * checked by graph.c. Immutable once made, so any thread may read them.
 *
 * Limits, whatever the file says: SP_ONNX_MAX_DEPTH nested graphs, rank SP_MAX_RANK, tables of at
 * most 16 bytes for each byte of the file plus 1 MiB. */
#ifndef SP_ONNX_ONNX_H
#define SP_ONNX_ONNX_H

#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"
#include "io/onnx_tensor.h"
#include "ops/attribute.h"

#define SP_ONNX_MAX_DEPTH 8

typedef struct sp_onnx_dim {
    int64_t value; /* -1 is free */
    sp_text param; /* name of a free dimension, or empty */
} sp_onnx_dim;

typedef struct sp_onnx_value_info {
    sp_text name;
    bool has_type;  /* the file says what it is */
    bool is_tensor; /* false: a sequence, map, ... or no type at all */
    sp_dtype dtype; /* SP_DTYPE_NONE if the file does not say */
    bool has_shape;
    uint32_t rank;
    const sp_onnx_dim *dims;
} sp_onnx_value_info;

typedef struct sp_onnx_node {
    sp_text name, op_type, domain, overload;
    const sp_text *inputs, *outputs; /* an empty text is an absent optional one */
    uint32_t input_count, output_count;
    sp_attribute_list attributes;
} sp_onnx_node;

typedef struct sp_onnx_graph {
    sp_text name;
    const sp_onnx_node *nodes;
    const sp_onnx_tensor *initializers;
    const sp_onnx_value_info *inputs, *outputs;
    uint32_t node_count, initializer_count, input_count, output_count;
} sp_onnx_graph;

typedef struct sp_onnx_opset {
    sp_text domain;
    int64_t version;
} sp_onnx_opset;

/* A function of the file's own: its nodes replace a call of it. */
typedef struct sp_onnx_function {
    sp_text name, domain, overload;
    const sp_text *inputs, *outputs;
    const sp_onnx_node *nodes;
    const sp_onnx_opset *opsets; /* for its nodes */
    sp_attribute_list defaults;  /* of attributes that a call may leave out */
    uint32_t input_count, output_count, node_count, opset_count;
} sp_onnx_function;

typedef struct sp_onnx_model {
    int64_t ir_version;
    sp_text producer;
    const sp_onnx_opset *opsets;
    uint32_t opset_count;
    const sp_onnx_function *functions;
    uint32_t function_count;
    sp_onnx_graph graph;
} sp_onnx_model;

/* Reads a model file. `bytes` must outlive *out. Errors: SP_CORRUPT, SP_UNSUPPORTED (element types,
 * sparse initializers, external data of attributes), SP_EXHAUSTED (limits), SP_OUT_OF_MEMORY; the
 * message names the problem and its byte offset. */
sp_status sp__onnx_read(const void *bytes, size_t len, const sp_onnx_model **out);
void sp__onnx_destroy(const sp_onnx_model *model);

/* External data; `folder` is the model's. Checks that the file beside it holds that many bytes,
 * before memory is allocated: the model's own file does not bound it. Errors: as
 * sp_file_read_below; SP_INVALID without a folder. */
sp_status sp__onnx_external_check(const sp_onnx_tensor *tensor, const char *folder);
/* Reads the values. */
sp_status sp__onnx_external_read(const sp_onnx_tensor *tensor, const char *folder, void *out);

#endif
