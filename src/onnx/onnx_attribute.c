/* SPDX-License-Identifier: Apache-2.0 */
/* AttributeProto. Its values become the arrays of an sp_attribute, with tensors decoded, so the ops
 * do not depend on files. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/name_map.h"
#include "onnx/onnx_reader.h"

enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_G = 6,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TENSORS = 10,
    ATTRIBUTE_GRAPHS = 11,
    ATTRIBUTE_TYPE = 20,
    ATTRIBUTE_REF = 21
};

/* The field that holds the values of each type. */
static const uint32_t field_of_type[] = {
    [SP_ATTRIBUTE_FLOAT] = ATTRIBUTE_F,         [SP_ATTRIBUTE_INT] = ATTRIBUTE_I,
    [SP_ATTRIBUTE_STRING] = ATTRIBUTE_S,        [SP_ATTRIBUTE_TENSOR] = ATTRIBUTE_T,
    [SP_ATTRIBUTE_GRAPH] = ATTRIBUTE_G,         [SP_ATTRIBUTE_FLOATS] = ATTRIBUTE_FLOATS,
    [SP_ATTRIBUTE_INTS] = ATTRIBUTE_INTS,       [SP_ATTRIBUTE_STRINGS] = ATTRIBUTE_STRINGS,
    [SP_ATTRIBUTE_TENSORS] = ATTRIBUTE_TENSORS, [SP_ATTRIBUTE_GRAPHS] = ATTRIBUTE_GRAPHS,
};

static bool is_singular(sp_attribute_type type)
{
    return type >= SP_ATTRIBUTE_FLOAT && type <= SP_ATTRIBUTE_GRAPH;
}

static sp_proto_wire wire_of(sp_attribute_type type)
{
    switch (type) {
    case SP_ATTRIBUTE_FLOAT:
    case SP_ATTRIBUTE_FLOATS:
        return SP_PROTO_FIXED32;
    case SP_ATTRIBUTE_INT:
    case SP_ATTRIBUTE_INTS:
        return SP_PROTO_VARINT;
    default:
        return SP_PROTO_BYTES;
    }
}

/* Name, type, and the name of the referenced attribute; in files before IR version 2 the type
 * follows from the field in use. */
static sp_status read_head(sp_proto proto, sp_attribute *out)
{
    int64_t type = 0;
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(sp__proto_counts(&proto, counts));
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number == ATTRIBUTE_NAME) SP_TRY(sp__proto_text(&proto, &field, &out->name));
        if (field.number == ATTRIBUTE_TYPE) SP_TRY(sp__proto_int(&proto, &field, &type));
        if (field.number == ATTRIBUTE_REF) SP_TRY(sp__proto_text(&proto, &field, &out->reference));
    }
    for (int64_t i = 1; type == 0 && i < (int64_t)SP_COUNT_OF(field_of_type); i++) {
        if (counts[field_of_type[i]] > 0) type = i;
    }
    const int64_t least = out->reference.len > 0 ? 0 : 1;
    if (type < least || type >= (int64_t)SP_COUNT_OF(field_of_type)) {
        return sp__fail(SP_UNSUPPORTED, "attribute '%s' is of type %" PRId64 ": not supported",
                        sp__text_print(out->name).text, type);
    }
    out->type = (sp_attribute_type)type;
    return proto.status;
}

static sp_status count_values(sp_proto proto, const sp_attribute *attribute, uint64_t *out)
{
    uint64_t count = 0;
    const sp_proto_wire wire = wire_of(attribute->type);
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != field_of_type[attribute->type]) continue;
        if (wire == SP_PROTO_BYTES) {
            count++;
            continue;
        }
        sp_proto scalars;
        SP_TRY(sp__proto_scalars(&proto, &field, wire, &scalars));
        for (uint64_t value; sp__proto_scalar_next(&scalars, wire, &value);) count++;
        SP_TRY(scalars.status);
    }
    *out = count;
    return proto.status;
}

static sp_status read_tensor_value(sp_onnx_reader *reader, sp_proto proto, sp_array_view *out)
{
    sp_onnx_tensor tensor = {0};
    SP_TRY(sp__onnx_read_tensor(proto, &tensor));
    void *data;
    SP_TRY(sp__bump_array(reader->bump, tensor.bytes, 1, &data));
    SP_TRY(sp__onnx_tensor_decode(&tensor, data));
    *out = (sp_array_view){.dtype = tensor.dtype, .shape = tensor.shape, .data = data};
    return SP_OK;
}

/* Position of the next value; only the pointer for the attribute's type is not NULL. */
typedef struct value_cursor {
    float *floats;
    int64_t *ints;
    sp_text *strings;
    sp_array_view *tensors;
    sp_onnx_graph *graphs;
} value_cursor;

static sp_status read_scalars(sp_proto *proto, const sp_proto_field *field, value_cursor *to)
{
    const sp_proto_wire wire = to->floats ? SP_PROTO_FIXED32 : SP_PROTO_VARINT;
    sp_proto scalars;
    SP_TRY(sp__proto_scalars(proto, field, wire, &scalars));
    for (uint64_t value; sp__proto_scalar_next(&scalars, wire, &value);) {
        if (to->floats) {
            const uint32_t bits = (uint32_t)value;
            memcpy(to->floats++, &bits, sizeof(bits));
        } else {
            *to->ints++ = (int64_t)value;
        }
    }
    return scalars.status;
}

static sp_status read_value(sp_onnx_reader *reader, sp_proto *proto, const sp_proto_field *field,
                            value_cursor *to)
{
    sp_proto inner;
    if (to->floats || to->ints) return read_scalars(proto, field, to);
    if (to->strings) return sp__proto_text(proto, field, to->strings++);
    if (to->tensors) {
        SP_TRY(sp__proto_enter(proto, field, "TensorProto", &inner));
        return read_tensor_value(reader, inner, to->tensors++);
    }
    SP_TRY(sp__proto_enter(proto, field, "GraphProto", &inner));
    return sp__onnx_read_graph(reader, inner, to->graphs++);
}

static sp_status make_values(sp_onnx_reader *reader, uint64_t count, sp_attribute *out,
                             value_cursor *to)
{
    switch (out->type) {
    case SP_ATTRIBUTE_FLOAT:
    case SP_ATTRIBUTE_FLOATS:
        SP_TRY(SP_ONNX_ARRAY(reader, count, to->floats, &out->count));
        out->as.floats = to->floats;
        return SP_OK;
    case SP_ATTRIBUTE_INT:
    case SP_ATTRIBUTE_INTS:
        SP_TRY(SP_ONNX_ARRAY(reader, count, to->ints, &out->count));
        out->as.ints = to->ints;
        return SP_OK;
    case SP_ATTRIBUTE_STRING:
    case SP_ATTRIBUTE_STRINGS:
        SP_TRY(SP_ONNX_ARRAY(reader, count, to->strings, &out->count));
        out->as.strings = to->strings;
        return SP_OK;
    case SP_ATTRIBUTE_TENSOR:
    case SP_ATTRIBUTE_TENSORS:
        SP_TRY(SP_ONNX_ARRAY(reader, count, to->tensors, &out->count));
        out->as.tensors = to->tensors;
        return SP_OK;
    default:
        SP_TRY(SP_ONNX_ARRAY(reader, count, to->graphs, &out->count));
        out->as.graphs = to->graphs;
        return SP_OK;
    }
}

sp_status sp__onnx_read_attribute(sp_onnx_reader *reader, sp_proto proto, sp_attribute *out)
{
    SP_TRY(read_head(proto, out));
    if (out->reference.len > 0) return SP_OK; /* the call has the value */
    uint64_t count = 0;
    SP_TRY(count_values(proto, out, &count));
    if (is_singular(out->type) && count > 1) {
        return sp__fail(SP_CORRUPT,
                        "malformed file: attribute '%s' is a single %s with %" PRIu64 " values",
                        sp__text_print(out->name).text, sp__attribute_type_name(out->type), count);
    }
    /* proto3 does not write zeros and empty strings: an absent single scalar is one. */
    const bool is_default = is_singular(out->type) && count == 0;
    if (is_default && (out->type == SP_ATTRIBUTE_TENSOR || out->type == SP_ATTRIBUTE_GRAPH)) {
        return sp__fail(SP_CORRUPT, "malformed file: attribute '%s' has no value",
                        sp__text_print(out->name).text);
    }
    value_cursor to = {0};
    SP_TRY(make_values(reader, is_default ? 1 : count, out, &to));
    if (count == 0) return SP_OK; /* fields without elements: nothing to read */
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != field_of_type[out->type]) continue;
        SP_TRY(read_value(reader, &proto, &field, &to));
    }
    return proto.status;
}

/* ---- names of attributes ---- */

enum { FEW_ATTRIBUTES = 16 };

static sp_status fail_duplicate(const sp_attribute *attribute)
{
    return sp__fail(SP_CORRUPT, "malformed file: two attributes of one node are named '%s'",
                    sp__text_print(attribute->name).text);
}

static sp_status check_many_names(sp_proto proto, sp_attribute_list list)
{
    sp_name_map names;
    sp_status status = SP_OK;
    SP_TRY(sp__name_map_init(&names, list.count,
                             sp__name_map_key(proto.at, (size_t)(proto.end - proto.at))));
    for (uint32_t i = 0; i < list.count && status == SP_OK; i++) {
        if (!sp__name_map_add(&names, list.items[i].name, i))
            status = fail_duplicate(&list.items[i]);
    }
    sp__name_map_deinit(&names);
    return status;
}

sp_status sp__onnx_check_attributes(sp_proto proto, sp_attribute_list list)
{
    if (list.count > FEW_ATTRIBUTES) return check_many_names(proto, list);
    for (uint32_t i = 0; i < list.count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (sp__text_equal(list.items[i].name, list.items[k].name)) {
                return fail_duplicate(&list.items[i]);
            }
        }
    }
    return SP_OK;
}
