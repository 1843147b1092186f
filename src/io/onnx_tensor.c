/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: raw or typed values. Reading checks that the values fill the shape exactly; so
 * decoding cannot run out of them. The machine is little-endian, as raw_data is. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "io/onnx_tensor_reader.h"
#include "tensor/onnx_dtype.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is copied without conversion");

enum {
    TENSOR_SEGMENT = 3,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT32_DATA = 5,
    TENSOR_STRING_DATA = 6,
    TENSOR_INT64_DATA = 7,
    TENSOR_DOUBLE_DATA = 10,
    TENSOR_UINT64_DATA = 11,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14
};

/* The typed field for values of the type. */
static uint32_t typed_field(sp_dtype dtype)
{
    switch (dtype) {
    case SP_F32:
        return TENSOR_FLOAT_DATA;
    case SP_F64:
        return TENSOR_DOUBLE_DATA;
    case SP_I64:
        return TENSOR_INT64_DATA;
    case SP_U32:
    case SP_U64:
        return TENSOR_UINT64_DATA;
    default:
        return TENSOR_INT32_DATA;
    }
}

static sp_proto_wire wire_of(uint32_t field)
{
    if (field == TENSOR_FLOAT_DATA) return SP_PROTO_FIXED32;
    return field == TENSOR_DOUBLE_DATA ? SP_PROTO_FIXED64 : SP_PROTO_VARINT;
}

static sp_status count_typed(sp_proto proto, uint32_t number, uint64_t *out)
{
    uint64_t count = 0;
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != number) continue;
        sp_proto scalars;
        SP_TRY(sp__proto_scalars(&proto, &field, wire_of(number), &scalars));
        for (uint64_t value; sp__proto_scalar_next(&scalars, wire_of(number), &value);) count++;
        SP_TRY(scalars.status);
    }
    *out = count;
    return proto.status;
}

/* The scalar fields, before they are checked. */
typedef struct tensor_head {
    int64_t data_type, location;
    int64_t dims[SP_MAX_RANK];
    uint64_t rank;
    bool has_raw;
} tensor_head;

static sp_status read_dims(sp_proto *proto, const sp_proto_field *field, tensor_head *head)
{
    sp_proto scalars;
    SP_TRY(sp__proto_scalars(proto, field, SP_PROTO_VARINT, &scalars));
    for (uint64_t value; sp__proto_scalar_next(&scalars, SP_PROTO_VARINT, &value);) {
        if (head->rank < SP_MAX_RANK) head->dims[head->rank] = (int64_t)value;
        head->rank++;
    }
    return scalars.status;
}

static sp_status read_head(sp_proto proto, sp_onnx_tensor *out, tensor_head *head)
{
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        switch (field.number) {
        case SP_ONNX_TENSOR_DIMS:
            SP_TRY(read_dims(&proto, &field, head));
            break;
        case SP_ONNX_TENSOR_DATA_TYPE:
            SP_TRY(sp__proto_int(&proto, &field, &head->data_type));
            break;
        case TENSOR_DATA_LOCATION:
            SP_TRY(sp__proto_int(&proto, &field, &head->location));
            break;
        case SP_ONNX_TENSOR_NAME:
            SP_TRY(sp__proto_text(&proto, &field, &out->name));
            break;
        case SP_ONNX_TENSOR_RAW_DATA:
            SP_TRY(sp__proto_text(&proto, &field, &out->content));
            head->has_raw = true;
            break;
        default:
            break;
        }
    }
    return proto.status;
}

static bool is_external(const tensor_head *head, const uint64_t counts[SP_PROTO_COUNTED])
{
    return head->location != 0 || counts[TENSOR_EXTERNAL_DATA] > 0;
}

static sp_status check_kind(const uint64_t counts[SP_PROTO_COUNTED], const sp_onnx_tensor *tensor,
                            const tensor_head *head, bool may_be_external)
{
    const sp_text_print name = sp__text_print(tensor->name);
    if (is_external(head, counts) && !may_be_external) {
        return sp__fail(SP_UNSUPPORTED,
                        "tensor '%s' has external data, which only initializers of a model "
                        "may have",
                        name.text);
    }
    if (counts[TENSOR_SEGMENT] > 0) {
        return sp__fail(SP_UNSUPPORTED, "tensor '%s' is a segment: not supported", name.text);
    }
    if (head->rank > SP_MAX_RANK) {
        return sp__fail(SP_UNSUPPORTED, "tensor '%s' has rank %" PRIu64 "; at most %d is supported",
                        name.text, head->rank, SP_MAX_RANK);
    }
    return SP_OK;
}

/* The file must hold exactly as many values as the shape needs. */
static sp_status check_values(const sp_proto *proto, const tensor_head *head, sp_onnx_tensor *out)
{
    const uint64_t wanted = out->bytes / sp_dtype_bytes(out->dtype);
    uint64_t found = 0;
    if (head->has_raw) {
        out->storage = SP_ONNX_RAW;
        found = out->content.len / sp_dtype_bytes(out->dtype);
        if (out->content.len != out->bytes && found == wanted) found++; /* a partial last element */
    } else {
        out->field = typed_field(out->dtype);
        SP_TRY(count_typed(*proto, out->field, &found));
        out->storage = found > 0 ? SP_ONNX_TYPED : SP_ONNX_NONE;
        out->content = (sp_text){(const char *)proto->at, (size_t)(proto->end - proto->at)};
    }
    if (found == wanted) return SP_OK;
    return sp__fail(SP_CORRUPT,
                    "malformed file: tensor '%s' of shape %s and type %s holds %" PRIu64
                    " values, wanted %" PRIu64,
                    sp__text_print(out->name).text, sp__shape_print(&out->shape).text,
                    sp_dtype_name(out->dtype), found, wanted);
}

static sp_status read_tensor(sp_proto proto, bool may_be_external, sp_onnx_tensor *out)
{
    tensor_head head = {0};
    uint64_t counts[SP_PROTO_COUNTED];
    SP_TRY(read_head(proto, out, &head));
    SP_TRY(sp__proto_counts(&proto, counts));
    SP_TRY(check_kind(counts, out, &head, may_be_external));
    sp_status status = sp__onnx_dtype(head.data_type, &out->dtype);
    if (status == SP_OK) status = sp__shape_make(head.dims, head.rank, &out->shape);
    if (status == SP_OK) status = sp__shape_bytes(&out->shape, out->dtype, &out->bytes);
    if (status == SP_MISMATCH) status = SP_CORRUPT; /* a file's shape, not a caller's */
    if (status != SP_OK) {
        return sp__fail_prefix(status, "tensor '%s': ", sp__text_print(out->name).text);
    }
    if (is_external(&head, counts)) return sp__onnx_read_external(proto, out);
    return check_values(&proto, &head, out);
}

sp_status sp__onnx_read_tensor(sp_proto proto, sp_onnx_tensor *out)
{
    return read_tensor(proto, false, out);
}

sp_status sp__onnx_read_initializer(sp_proto proto, sp_onnx_tensor *out)
{
    return read_tensor(proto, true, out);
}

/* Writes one element; the typed fields hold small types in wider ones. */
static char *store_element(char *to, sp_dtype dtype, uint64_t value)
{
    const size_t bytes = sp_dtype_bytes(dtype);
    if (dtype == SP_BOOL) value = value != 0;
    memcpy(to, &value, bytes); /* little-endian: the low bytes */
    return to + bytes;
}

static sp_status decode_typed(const sp_onnx_tensor *tensor, char *to)
{
    const sp_proto_wire wire = wire_of(tensor->field);
    sp_proto proto = sp__proto_open(tensor->content.ptr, tensor->content.len, "TensorProto");
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != tensor->field) continue;
        sp_proto scalars;
        SP_TRY(sp__proto_scalars(&proto, &field, wire, &scalars));
        for (uint64_t value; sp__proto_scalar_next(&scalars, wire, &value);) {
            to = store_element(to, tensor->dtype, value);
        }
        SP_TRY(scalars.status);
    }
    return proto.status;
}

sp_status sp__onnx_tensor_decode(const sp_onnx_tensor *tensor, void *out)
{
    if (tensor->bytes == 0) return SP_OK;
    if (tensor->storage == SP_ONNX_TYPED) return decode_typed(tensor, out);
    memcpy(out, tensor->content.ptr, (size_t)tensor->bytes);
    sp__onnx_clean_bools(tensor, out);
    return SP_OK;
}

void sp__onnx_clean_bools(const sp_onnx_tensor *tensor, void *data)
{
    if (tensor->dtype != SP_BOOL) return;
    unsigned char *bools = data;
    for (uint64_t i = 0; i < tensor->bytes; i++) bools[i] = bools[i] != 0;
}

sp_status sp__onnx_tensor_load(const void *bytes, size_t len, sp_array *out)
{
    *out = (sp_array){0};
    sp_onnx_tensor tensor = {0};
    SP_TRY(sp__onnx_read_tensor(sp__proto_open(bytes, len, "TensorProto"), &tensor));
    SP_TRY(sp__array_init(out, tensor.dtype, &tensor.shape));
    const sp_status status = sp__onnx_tensor_decode(&tensor, out->data);
    if (status != SP_OK) sp__array_deinit(out);
    return status;
}
