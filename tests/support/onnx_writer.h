/* SPDX-License-Identifier: Apache-2.0 */
/* Writes protobuf messages, and small ONNX models of them, for tests, also malformed ones. A writer
 * grows as needed and aborts if memory runs out. */
#ifndef SP_TESTS_SUPPORT_ONNX_WRITER_H
#define SP_TESTS_SUPPORT_ONNX_WRITER_H

#include <stddef.h>
#include <stdint.h>

typedef struct writer {
    unsigned char *bytes; /* owned */
    size_t len, capacity;
} writer;

void writer_free(writer *w);
void write_raw(writer *w, const void *bytes, size_t len);
void write_varint(writer *w, uint64_t value);
void write_tag(writer *w, uint32_t field, uint32_t wire);
void write_int(writer *w, uint32_t field, int64_t value);
void write_float(writer *w, uint32_t field, float value);
void write_bytes(writer *w, uint32_t field, const void *bytes, size_t len);
void write_text(writer *w, uint32_t field, const char *text);
/* Appends `inner` as a message and frees it. */
void write_message(writer *w, uint32_t field, writer *inner);

/* TensorProto with raw_data; `data_type` is ONNX's number. */
writer make_tensor(const char *name, int64_t data_type, const int64_t *dims, uint32_t rank,
                   const void *data, size_t bytes);
/* ValueInfoProto of a float tensor; -1 is a dimension named "n"; a negative rank has no shape. */
writer make_value(const char *name, int64_t data_type, const int64_t *dims, int rank);
/* NodeProto; names are separated by spaces, "-" is the empty name. Attributes are appended to it.
 */
writer make_node(const char *op, const char *inputs, const char *outputs);
/* The same of "Op inputs > outputs". */
writer make_text_node(const char *text);
void add_attribute_int(writer *node, const char *name, int64_t value);
void add_attribute_ints(writer *node, const char *name, const int64_t *values, uint32_t count);
void add_attribute_float(writer *node, const char *name, float value);
void add_attribute_floats(writer *node, const char *name, const float *values, uint32_t count);
void add_attribute_text(writer *node, const char *name, const char *value);
void add_attribute_tensor(writer *node, const char *name, writer *tensor);
void add_attribute_graph(writer *node, const char *name, writer *graph);

/* The parts of a GraphProto are written to one writer; make_model wraps it into a ModelProto and
 * frees it. */
enum {
    GRAPH_NODE_FIELD = 1,
    GRAPH_INITIALIZER_FIELD = 5,
    GRAPH_INPUT_FIELD = 11,
    GRAPH_OUTPUT_FIELD = 12
};
/* Appends a node, input or output to a graph; the node is freed. An output has no type, no
 * shape. */
void add_node(writer *graph, writer node);
void add_input(writer *graph, const char *name, int64_t data_type, const int64_t *dims, int rank);
void add_output(writer *graph, const char *name);
writer make_model(writer *graph, int64_t opset);

/* FunctionProto of the domain "own", opset 14; its nodes are appended. Names are separated by
 * spaces. */
writer make_function(const char *name, const char *inputs, const char *outputs);
void add_function_node(writer *function, writer node);
/* A node that calls it. */
writer make_call(const char *function, const char *inputs, const char *outputs);
/* An attribute that refers to the call's attribute `of`; `type` is ONNX's number of its type, or
 * 0. */
void add_reference(writer *node, const char *name, const char *of, int64_t type);
/* Appends a function of a file; the function is freed. */
void add_function(writer *functions, writer function);
/* A model of opset 14 with functions; both are freed. */
writer make_model_with(writer *functions, writer *graph);

/* Loads the file with each allocation failing once: every load must be SP_OUT_OF_MEMORY and leak
 * nothing. */
void check_load_without_memory(const writer *file);

#endif
