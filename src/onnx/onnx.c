/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto: the file's outermost message. The model owns the tables of everything below it. */
#include "onnx/onnx.h"

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "onnx/onnx_reader.h"

enum { MODEL_IR_VERSION = 1, MODEL_PRODUCER = 2, MODEL_GRAPH = 7, MODEL_OPSET = 8 };
enum { MODEL_FUNCTIONS = 25 };
enum { OPSET_DOMAIN = 1, OPSET_VERSION = 2 };

enum { TABLE_BYTES_PER_BYTE = 16, TABLE_BYTES_FREE = 1 << 20 };

/* Stores the tables with the model that callers see. */
typedef struct model_tables {
    sp_onnx_model model;
    sp_bump bump;
} model_tables;

sp_status sp__onnx_array(sp_onnx_reader *reader, uint64_t count, uint64_t element_bytes,
                         void *array_out, uint32_t *count_out)
{
    if (count > UINT32_MAX) return sp__fail(SP_EXHAUSTED, "a list of more than 2^32 elements");
    SP_TRY(sp__bump_array(reader->bump, count, element_bytes, array_out));
    *count_out = (uint32_t)count;
    return SP_OK;
}

sp_status sp__onnx_read_opset(sp_proto proto, sp_onnx_opset *out)
{
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number == OPSET_DOMAIN) SP_TRY(sp__proto_text(&proto, &field, &out->domain));
        if (field.number == OPSET_VERSION) SP_TRY(sp__proto_int(&proto, &field, &out->version));
    }
    return proto.status;
}

/* Counts the outermost fields. Text, a picture or a TensorProto is reported as not an ONNX model; a
 * truncated model, which has its version at the beginning, as malformed. */
static sp_status count_fields(const sp_proto *proto, uint64_t counts[SP_PROTO_COUNTED])
{
    const sp_status status = sp__proto_counts(proto, counts);
    if (status != SP_OK && counts[MODEL_IR_VERSION] > 0) return status;
    if (status != SP_OK) return sp__fail_prefix(status, "this is not an ONNX model: ");
    if (counts[MODEL_GRAPH] == 1) return SP_OK;
    if (counts[MODEL_GRAPH] > 1) {
        return sp__fail(SP_CORRUPT, "malformed file: ModelProto holds more than one graph");
    }
    return sp__fail(SP_CORRUPT, "this is not an ONNX model: it holds no graph");
}

sp_status sp__onnx_check_opsets(uint64_t count)
{
    if (count <= SP_ONNX_OPSETS) return SP_OK;
    return sp__fail(SP_EXHAUSTED, "the file imports %llu operator sets, the limit is %d",
                    (unsigned long long)count, SP_ONNX_OPSETS);
}

static sp_status read_model(sp_onnx_reader *reader, sp_proto proto, sp_onnx_model *out)
{
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(count_fields(&proto, counts));
    sp_onnx_opset *opsets = NULL;
    SP_TRY(sp__onnx_check_opsets(counts[MODEL_OPSET]));
    SP_TRY(SP_ONNX_ARRAY(reader, counts[MODEL_OPSET], opsets, &out->opset_count));
    out->opsets = opsets;
    sp_onnx_function *functions = NULL;
    SP_TRY(SP_ONNX_ARRAY(reader, counts[MODEL_FUNCTIONS], functions, &out->function_count));
    out->functions = functions;
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        sp_proto inner;
        switch (field.number) {
        case MODEL_IR_VERSION:
            SP_TRY(sp__proto_int(&proto, &field, &out->ir_version));
            break;
        case MODEL_PRODUCER:
            SP_TRY(sp__proto_text(&proto, &field, &out->producer));
            break;
        case MODEL_OPSET:
            SP_TRY(sp__proto_enter(&proto, &field, "OperatorSetIdProto", &inner));
            SP_TRY(sp__onnx_read_opset(inner, opsets++));
            break;
        case MODEL_GRAPH:
            SP_TRY(sp__proto_enter(&proto, &field, "GraphProto", &inner));
            SP_TRY(sp__onnx_read_graph(reader, inner, &out->graph));
            break;
        case MODEL_FUNCTIONS:
            SP_TRY(sp__proto_enter(&proto, &field, "FunctionProto", &inner));
            SP_TRY(sp__onnx_read_function(reader, inner, functions++));
            break;
        default:
            break;
        }
    }
    return proto.status;
}

sp_status sp__onnx_read(const void *bytes, size_t len, const sp_onnx_model **out)
{
    *out = NULL;
    if (!bytes && len > 0) return sp__fail(SP_INVALID, "the model's bytes are NULL");
    model_tables *tables = sp_calloc(1, sizeof(*tables));
    if (!tables) return sp__fail(SP_OUT_OF_MEMORY, "no memory to read a model");
    /* A length of more than 2^59 cannot be an object's size. */
    sp__bump_init(&tables->bump, (uint64_t)len * TABLE_BYTES_PER_BYTE + TABLE_BYTES_FREE);
    sp_onnx_reader reader = {.bump = &tables->bump};
    const sp_status status =
        read_model(&reader, sp__proto_open(bytes, len, "ModelProto"), &tables->model);
    if (status != SP_OK) {
        sp__onnx_destroy(&tables->model);
        return status;
    }
    *out = &tables->model;
    return SP_OK;
}

void sp__onnx_destroy(const sp_onnx_model *model)
{
    if (!model) return;
    /* Only sp__onnx_read makes models, always inside these tables. */
    model_tables *tables = (model_tables *)((uintptr_t)model - offsetof(model_tables, model));
    sp__bump_deinit(&tables->bump);
    sp_free(tables);
}
