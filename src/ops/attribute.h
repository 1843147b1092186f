/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of one use of an op: named values that are part of the program, not of the data.
 * Immutable; arrays and text are borrowed from the attribute's source (a model's tables, or the
 * caller of an eager op). */
#ifndef SP_OPS_ATTRIBUTE_H
#define SP_OPS_ATTRIBUTE_H

#include <stdint.h>

#include "base/text.h"
#include "tensor/array.h"

/* Values are those of ONNX's AttributeProto.type. */
#define SP_ATTRIBUTE_TYPE_LIST(X)                                                                  \
    X(FLOAT, 1, "float")                                                                           \
    X(INT, 2, "int")                                                                               \
    X(STRING, 3, "string")                                                                         \
    X(TENSOR, 4, "tensor")                                                                         \
    X(GRAPH, 5, "graph")                                                                           \
    X(FLOATS, 6, "floats")                                                                         \
    X(INTS, 7, "ints")                                                                             \
    X(STRINGS, 8, "strings")                                                                       \
    X(TENSORS, 9, "tensors")                                                                       \
    X(GRAPHS, 10, "graphs")

typedef enum sp_attribute_type {
    SP_ATTRIBUTE_NONE = 0,
#define SP_ATTRIBUTE_ENUM(code, value, name) SP_ATTRIBUTE_##code = value,
    SP_ATTRIBUTE_TYPE_LIST(SP_ATTRIBUTE_ENUM)
#undef SP_ATTRIBUTE_ENUM
} sp_attribute_type;

struct sp_onnx_graph;

typedef struct sp_attribute {
    sp_text name;
    sp_text reference; /* in a function body: the caller's attribute with the value */
    sp_attribute_type type;
    uint32_t count; /* values: 1 for the singular types */
    union {         /* `count` values of the type's kind, NULL when count is 0 */
        const float *floats;
        const int64_t *ints;
        const sp_text *strings;
        const sp_array_view *tensors;
        const struct sp_onnx_graph *graphs; /* opaque here: onnx defines them */
    } as;
} sp_attribute;

typedef struct sp_attribute_list {
    const sp_attribute *items;
    uint32_t count;
} sp_attribute_list;

const char *sp__attribute_type_name(sp_attribute_type type);

/* The attribute called `name`, or NULL. */
const sp_attribute *sp__attribute_find(sp_attribute_list list, const char *name);

/* The value, or `fallback` if the attribute is absent. Precondition: the schema has checked its
 * type. */
int64_t sp__attribute_int(sp_attribute_list list, const char *name, int64_t fallback);
float sp__attribute_float(sp_attribute_list list, const char *name, float fallback);
sp_text sp__attribute_text(sp_attribute_list list, const char *name, const char *fallback);

/* Reads exactly `count` integers, or `fallback` for each if the attribute is absent. Errors:
 * SP_MISMATCH for another count. */
sp_status sp__attribute_ints(sp_attribute_list list, const char *name, uint32_t count,
                             int64_t fallback, int64_t *out);

#endif
