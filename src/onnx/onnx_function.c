/* SPDX-License-Identifier: Apache-2.0 */
/* FunctionProto: a function that the file defines. */
#include "base/error.h"
#include "base/macros.h"
#include "onnx/onnx_reader.h"

enum {
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10,
    FUNCTION_DEFAULT = 11, /* attribute_proto: an attribute with its default */
    FUNCTION_OVERLOAD = 13
};

typedef struct function_lists {
    sp_text *inputs, *outputs;
    sp_onnx_node *nodes;
    sp_onnx_opset *opsets;
    sp_attribute *defaults;
} function_lists;

static sp_status make_lists(sp_onnx_reader *reader, const sp_proto *proto, sp_onnx_function *out,
                            function_lists *lists)
{
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(sp__proto_counts(proto, counts));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[FUNCTION_INPUT], lists->inputs, &out->input_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[FUNCTION_OUTPUT], lists->outputs, &out->output_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[FUNCTION_NODE], lists->nodes, &out->node_count));
    SP_TRY(sp__onnx_check_opsets(counts[FUNCTION_OPSET]));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[FUNCTION_OPSET], lists->opsets, &out->opset_count));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[FUNCTION_DEFAULT], lists->defaults, &out->defaults.count));
    out->inputs = lists->inputs;
    out->outputs = lists->outputs;
    out->nodes = lists->nodes;
    out->opsets = lists->opsets;
    out->defaults.items = lists->defaults;
    return SP_OK;
}

/* Nested messages; the caller reads the texts. */
static sp_status read_inner_message(sp_onnx_reader *reader, sp_proto *proto,
                                    const sp_proto_field *field, function_lists *lists)
{
    sp_proto inner;
    switch (field->number) {
    case FUNCTION_NODE:
        SP_TRY(sp__proto_enter(proto, field, "NodeProto", &inner));
        return sp__onnx_read_node(reader, inner, lists->nodes++);
    case FUNCTION_OPSET:
        SP_TRY(sp__proto_enter(proto, field, "OperatorSetIdProto", &inner));
        return sp__onnx_read_opset(inner, lists->opsets++);
    case FUNCTION_DEFAULT:
        SP_TRY(sp__proto_enter(proto, field, "AttributeProto", &inner));
        return sp__onnx_read_attribute(reader, inner, lists->defaults++);
    default:
        return SP_OK;
    }
}

sp_status sp__onnx_read_function(sp_onnx_reader *reader, sp_proto proto, sp_onnx_function *out)
{
    function_lists lists = {0};
    SP_TRY(make_lists(reader, &proto, out, &lists));
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        switch (field.number) {
        case FUNCTION_NAME:
            SP_TRY(sp__proto_text(&proto, &field, &out->name));
            break;
        case FUNCTION_DOMAIN:
            SP_TRY(sp__proto_text(&proto, &field, &out->domain));
            break;
        case FUNCTION_OVERLOAD:
            SP_TRY(sp__proto_text(&proto, &field, &out->overload));
            break;
        case FUNCTION_INPUT:
            SP_TRY(sp__proto_text(&proto, &field, lists.inputs++));
            break;
        case FUNCTION_OUTPUT:
            SP_TRY(sp__proto_text(&proto, &field, lists.outputs++));
            break;
        default:
            SP_TRY(read_inner_message(reader, &proto, &field, &lists));
            break;
        }
    }
    return proto.status;
}
