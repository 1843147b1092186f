/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf output for tests, and the load with failing allocations. */
#include "support/onnx_writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "graph/graph.h"
#include "support/test.h"

void writer_free(writer *w)
{
    free(w->bytes);
    *w = (writer){0};
}

void write_raw(writer *w, const void *bytes, size_t len)
{
    if (w->len + len > w->capacity) {
        w->capacity = (w->len + len) * 2 + 64;
        unsigned char *larger = realloc(w->bytes, w->capacity);
        if (larger == NULL) abort();
        w->bytes = larger;
    }
    if (len > 0) memcpy(w->bytes + w->len, bytes, len);
    w->len += len;
}

void write_varint(writer *w, uint64_t value)
{
    unsigned char bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) bytes[len++] = (unsigned char)(value | 0x80);
    bytes[len++] = (unsigned char)value;
    write_raw(w, bytes, len);
}

void write_tag(writer *w, uint32_t field, uint32_t wire)
{
    write_varint(w, (uint64_t)field << 3 | wire);
}

void write_int(writer *w, uint32_t field, int64_t value)
{
    write_tag(w, field, 0);
    write_varint(w, (uint64_t)value);
}

void write_float(writer *w, uint32_t field, float value)
{
    write_tag(w, field, 5);
    write_raw(w, &value, sizeof(value));
}

void write_bytes(writer *w, uint32_t field, const void *bytes, size_t len)
{
    write_tag(w, field, 2);
    write_varint(w, len);
    write_raw(w, bytes, len);
}

void write_text(writer *w, uint32_t field, const char *text)
{
    write_bytes(w, field, text, strlen(text));
}

void write_message(writer *w, uint32_t field, writer *inner)
{
    write_bytes(w, field, inner->bytes, inner->len);
    writer_free(inner);
}

writer make_tensor(const char *name, int64_t data_type, const int64_t *dims, uint32_t rank,
                   const void *data, size_t bytes)
{
    writer w = {0};
    for (uint32_t i = 0; i < rank; i++) write_int(&w, 1, dims[i]);
    write_int(&w, 2, data_type);
    write_text(&w, 8, name);
    write_bytes(&w, 9, data, bytes);
    return w;
}

writer make_value(const char *name, int64_t data_type, const int64_t *dims, int rank)
{
    writer w = {0}, type = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        writer dim = {0};
        if (dims[i] < 0) write_text(&dim, 2, "n");
        else write_int(&dim, 1, dims[i]);
        write_message(&shape, 1, &dim);
    }
    write_int(&tensor, 1, data_type);
    if (rank >= 0) write_message(&tensor, 2, &shape);
    write_message(&type, 1, &tensor);
    write_text(&w, 1, name);
    write_message(&w, 2, &type);
    return w;
}

static void write_names(writer *w, uint32_t field, const char *names)
{
    while (*names != '\0') {
        const size_t len = strcspn(names, " ");
        const int is_empty = len == 1 && names[0] == '-';
        write_bytes(w, field, names, is_empty ? 0 : len);
        names += len;
        names += strspn(names, " ");
    }
}

writer make_node(const char *op, const char *inputs, const char *outputs)
{
    writer w = {0};
    write_names(&w, 1, inputs);
    write_names(&w, 2, outputs);
    write_text(&w, 4, op);
    return w;
}

/* An attribute without its value; `type` is an AttributeType. */
static writer make_attribute(const char *name, int64_t type)
{
    writer w = {0};
    write_text(&w, 1, name);
    write_int(&w, 20, type);
    return w;
}

void add_attribute_int(writer *node, const char *name, int64_t value)
{
    writer w = make_attribute(name, 2);
    write_int(&w, 3, value);
    write_message(node, 5, &w);
}

void add_attribute_ints(writer *node, const char *name, const int64_t *values, uint32_t count)
{
    writer w = make_attribute(name, 7);
    for (uint32_t i = 0; i < count; i++) write_int(&w, 8, values[i]);
    write_message(node, 5, &w);
}

void add_attribute_float(writer *node, const char *name, float value)
{
    writer w = make_attribute(name, 1);
    write_float(&w, 2, value);
    write_message(node, 5, &w);
}

void add_attribute_floats(writer *node, const char *name, const float *values, uint32_t count)
{
    writer w = make_attribute(name, 6);
    for (uint32_t i = 0; i < count; i++) write_float(&w, 7, values[i]);
    write_message(node, 5, &w);
}

void add_attribute_text(writer *node, const char *name, const char *value)
{
    writer w = make_attribute(name, 3);
    write_text(&w, 4, value);
    write_message(node, 5, &w);
}

/* An attribute of `type` whose value is a message in field `field`. */
static void add_attribute_message(writer *node, const char *name, uint32_t field, int64_t type,
                                  writer *value)
{
    writer w = make_attribute(name, type);
    write_message(&w, field, value);
    write_message(node, 5, &w);
}

void add_attribute_tensor(writer *node, const char *name, writer *tensor)
{
    add_attribute_message(node, name, 5, 4, tensor);
}

void add_attribute_graph(writer *node, const char *name, writer *graph)
{
    add_attribute_message(node, name, 6, 5, graph);
}

void add_node(writer *graph, writer node)
{
    write_message(graph, GRAPH_NODE_FIELD, &node);
}

void add_input(writer *graph, const char *name, int64_t data_type, const int64_t *dims, int rank)
{
    writer value = make_value(name, data_type, dims, rank);
    write_message(graph, GRAPH_INPUT_FIELD, &value);
}

void add_output(writer *graph, const char *name)
{
    writer value = make_value(name, 0, NULL, -1);
    write_message(graph, GRAPH_OUTPUT_FIELD, &value);
}

writer make_model(writer *graph, int64_t opset)
{
    writer w = {0}, import = {0};
    write_int(&w, 1, 8);
    write_text(&import, 1, "");
    write_int(&import, 2, opset);
    write_message(&w, 8, &import);
    write_message(&w, 7, graph);
    return w;
}

/* ---- functions ---- */

enum { FUNCTIONS_FIELD = 25 };

writer make_function(const char *name, const char *inputs, const char *outputs)
{
    writer w = {0}, ends = make_node("", inputs, outputs), import = {0};
    write_text(&w, 1, name);
    /* NodeProto has inputs and outputs in fields 1 and 2, FunctionProto in 4 and 5. */
    for (size_t at = 0; at < ends.len && ends.bytes[at] != (4 << 3 | 2);) {
        ends.bytes[at] = (unsigned char)(ends.bytes[at] == (1 << 3 | 2) ? 4 << 3 | 2 : 5 << 3 | 2);
        write_raw(&w, ends.bytes + at, 2 + ends.bytes[at + 1]);
        at += 2 + (size_t)ends.bytes[at + 1];
    }
    writer_free(&ends);
    write_text(&import, 1, "");
    write_int(&import, 2, 14);
    write_message(&w, 9, &import);
    write_text(&w, 10, "own");
    return w;
}

void add_function_node(writer *function, writer node)
{
    write_message(function, 7, &node);
}

writer make_call(const char *function, const char *inputs, const char *outputs)
{
    writer node = make_node(function, inputs, outputs);
    write_text(&node, 7, "own");
    return node;
}

void add_reference(writer *node, const char *name, const char *of, int64_t type)
{
    writer w = {0};
    write_text(&w, 1, name);
    if (type != 0) write_int(&w, 20, type);
    write_text(&w, 21, of);
    write_message(node, 5, &w);
}

writer make_text_node(const char *text)
{
    char op[32], inputs[64], outputs[32];
    if (sscanf(text, "%31s %63[^>]> %31[^\n]", op, inputs, outputs) != 3) abort();
    inputs[strlen(inputs) - 1] = '\0'; /* the space */
    return make_node(op, inputs, outputs);
}

void add_function(writer *functions, writer function)
{
    write_message(functions, FUNCTIONS_FIELD, &function);
}

writer make_model_with(writer *functions, writer *graph)
{
    writer file = make_model(graph, 14);
    write_raw(&file, functions->bytes, functions->len);
    writer_free(functions);
    return file;
}

void check_load_without_memory(const writer *file)
{
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        const sp_graph *graph = NULL;
        sp_heap_fail_after(skip);
        const sp_status status = sp__graph_load(file->bytes, file->len, &graph);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
        sp__graph_destroy(graph);
    }
}
