/* SPDX-License-Identifier: Apache-2.0 */
/* GraphProto, NodeProto, ValueInfoProto and the types inside. Each message is scanned twice: once
 * to count its repeated fields, once to fill tables of exactly that size. */
#include "base/error.h"
#include "base/macros.h"
#include "onnx/onnx_reader.h"
#include "tensor/onnx_dtype.h"

enum {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE_INITIALIZER = 15
};
enum {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8
};
enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
enum { TYPE_TENSOR = 1 };
enum { TENSOR_TYPE_ELEMENT = 1, TENSOR_TYPE_SHAPE = 2 };
enum { SHAPE_DIM = 1 };
enum { DIM_VALUE = 1, DIM_PARAM = 2 };

static sp_status read_dim(sp_proto proto, sp_onnx_dim *out)
{
    out->value = -1;
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number == DIM_VALUE) SP_TRY(sp__proto_int(&proto, &field, &out->value));
        if (field.number == DIM_PARAM) SP_TRY(sp__proto_text(&proto, &field, &out->param));
    }
    /* Exporters write free dimensions as -1, 0 or a name; negative sizes have no other meaning. */
    if (out->value < 0 || out->param.len > 0) out->value = -1;
    return proto.status;
}

static sp_status read_shape(sp_onnx_reader *reader, sp_proto proto, sp_onnx_value_info *out)
{
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(sp__proto_counts(&proto, counts));
    if (counts[SHAPE_DIM] > SP_MAX_RANK) {
        return sp__fail(SP_UNSUPPORTED, "value '%s' has rank %llu; at most %d is supported",
                        sp__text_print(out->name).text, (unsigned long long)counts[SHAPE_DIM],
                        SP_MAX_RANK);
    }
    sp_onnx_dim *dims = NULL;
    SP_TRY(SP_ONNX_ARRAY(reader, counts[SHAPE_DIM], dims, &out->rank));
    out->dims = dims;
    out->has_shape = true;
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != SHAPE_DIM) continue;
        sp_proto inner;
        SP_TRY(sp__proto_enter(&proto, &field, "TensorShapeProto.Dimension", &inner));
        SP_TRY(read_dim(inner, dims++));
    }
    return proto.status;
}

static sp_status read_tensor_type(sp_onnx_reader *reader, sp_proto proto, sp_onnx_value_info *out)
{
    out->is_tensor = true;
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number == TENSOR_TYPE_ELEMENT) {
            int64_t data_type;
            SP_TRY(sp__proto_int(&proto, &field, &data_type));
            if (data_type != 0) SP_TRY(sp__onnx_dtype(data_type, &out->dtype));
        } else if (field.number == TENSOR_TYPE_SHAPE) {
            sp_proto inner;
            SP_TRY(sp__proto_enter(&proto, &field, "TensorShapeProto", &inner));
            SP_TRY(read_shape(reader, inner, out));
        }
    }
    return proto.status;
}

static sp_status read_type(sp_onnx_reader *reader, sp_proto proto, sp_onnx_value_info *out)
{
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != TYPE_TENSOR) continue;
        sp_proto inner;
        SP_TRY(sp__proto_enter(&proto, &field, "TypeProto.Tensor", &inner));
        SP_TRY(read_tensor_type(reader, inner, out));
    }
    return proto.status;
}

sp_status sp__onnx_read_value_info(sp_onnx_reader *reader, sp_proto proto, sp_onnx_value_info *out)
{
    /* The name first, wherever the field is: messages about the type use it. */
    sp_proto names = proto;
    for (sp_proto_field field; sp__proto_next(&names, &field);) {
        if (field.number == VALUE_NAME) SP_TRY(sp__proto_text(&names, &field, &out->name));
    }
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != VALUE_TYPE) continue;
        out->has_type = true;
        sp_proto inner;
        SP_TRY(sp__proto_enter(&proto, &field, "TypeProto", &inner));
        SP_TRY(read_type(reader, inner, out));
    }
    return proto.status;
}

/* Lists of the lengths in `counts`; the caller's loop fills them in order. */
typedef struct node_lists {
    sp_text *inputs, *outputs;
    sp_attribute *attributes;
} node_lists;

static sp_status make_node_lists(sp_onnx_reader *reader, const sp_proto *proto, sp_onnx_node *out,
                                 node_lists *lists)
{
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(sp__proto_counts(proto, counts));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[NODE_INPUT], lists->inputs, &out->input_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[NODE_OUTPUT], lists->outputs, &out->output_count));
    SP_TRY(
        SP_ONNX_ARRAY(reader, counts[NODE_ATTRIBUTE], lists->attributes, &out->attributes.count));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has counted this node */
    out->inputs = lists->inputs;
    out->outputs = lists->outputs;
    out->attributes.items = lists->attributes;
    return SP_OK;
}

sp_status sp__onnx_read_node(sp_onnx_reader *reader, sp_proto proto, sp_onnx_node *out)
{
    const sp_proto whole = proto;
    node_lists lists = {0};
    SP_TRY(make_node_lists(reader, &proto, out, &lists));
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        sp_proto inner;
        switch (field.number) {
        case NODE_INPUT:
            SP_TRY(sp__proto_text(&proto, &field, lists.inputs++));
            break;
        case NODE_OUTPUT:
            SP_TRY(sp__proto_text(&proto, &field, lists.outputs++));
            break;
        case NODE_NAME:
            SP_TRY(sp__proto_text(&proto, &field, &out->name));
            break;
        case NODE_OP_TYPE:
            SP_TRY(sp__proto_text(&proto, &field, &out->op_type));
            break;
        case NODE_DOMAIN:
            SP_TRY(sp__proto_text(&proto, &field, &out->domain));
            break;
        case NODE_OVERLOAD:
            SP_TRY(sp__proto_text(&proto, &field, &out->overload));
            break;
        case NODE_ATTRIBUTE:
            SP_TRY(sp__proto_enter(&proto, &field, "AttributeProto", &inner));
            SP_TRY(sp__onnx_read_attribute(reader, inner, lists.attributes++));
            break;
        default:
            break;
        }
    }
    SP_TRY(proto.status);
    return sp__onnx_check_attributes(whole, out->attributes);
}

typedef struct graph_lists {
    sp_onnx_node *nodes;
    sp_onnx_tensor *initializers;
    sp_onnx_value_info *inputs, *outputs;
} graph_lists;

static sp_status make_graph_lists(sp_onnx_reader *reader, const sp_proto *proto, sp_onnx_graph *out,
                                  graph_lists *lists)
{
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(sp__proto_counts(proto, counts));
    if (counts[GRAPH_SPARSE_INITIALIZER] > 0) {
        return sp__fail(SP_UNSUPPORTED, "the graph has sparse initializers: not supported");
    }
    SP_TRY(SP_ONNX_ARRAY(reader, counts[GRAPH_NODE], lists->nodes, &out->node_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[GRAPH_INITIALIZER], lists->initializers,
                         &out->initializer_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[GRAPH_INPUT], lists->inputs, &out->input_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[GRAPH_OUTPUT], lists->outputs, &out->output_count));
    out->nodes = lists->nodes;
    out->initializers = lists->initializers;
    out->inputs = lists->inputs;
    out->outputs = lists->outputs;
    return SP_OK;
}

static sp_status read_graph_fields(sp_onnx_reader *reader, sp_proto proto, sp_onnx_graph *out)
{
    graph_lists lists = {0};
    SP_TRY(make_graph_lists(reader, &proto, out, &lists));
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        sp_proto inner;
        switch (field.number) {
        case GRAPH_NAME:
            SP_TRY(sp__proto_text(&proto, &field, &out->name));
            break;
        case GRAPH_NODE:
            SP_TRY(sp__proto_enter(&proto, &field, "NodeProto", &inner));
            SP_TRY(sp__onnx_read_node(reader, inner, lists.nodes++));
            break;
        case GRAPH_INITIALIZER:
            SP_TRY(sp__proto_enter(&proto, &field, "TensorProto", &inner));
            SP_TRY(sp__onnx_read_initializer(inner, lists.initializers++));
            break;
        case GRAPH_INPUT:
            SP_TRY(sp__proto_enter(&proto, &field, "ValueInfoProto", &inner));
            SP_TRY(sp__onnx_read_value_info(reader, inner, lists.inputs++));
            break;
        case GRAPH_OUTPUT:
            SP_TRY(sp__proto_enter(&proto, &field, "ValueInfoProto", &inner));
            SP_TRY(sp__onnx_read_value_info(reader, inner, lists.outputs++));
            break;
        default:
            break;
        }
    }
    return proto.status;
}

sp_status sp__onnx_read_graph(sp_onnx_reader *reader, sp_proto proto, sp_onnx_graph *out)
{
    /* The recursion graph -> node -> attribute -> graph ends here. */
    if (reader->depth == SP_ONNX_MAX_DEPTH) {
        return sp__fail(SP_EXHAUSTED, "graphs are nested more than %d deep", SP_ONNX_MAX_DEPTH);
    }
    reader->depth++;
    const sp_status status = read_graph_fields(reader, proto, out);
    reader->depth--;
    return status;
}
