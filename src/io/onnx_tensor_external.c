/* SPDX-License-Identifier: Apache-2.0 */
/* The position of a TensorProto's values in a file beside its own: external_data, pairs of texts
 * "location", "offset" and "length"; other keys, such as a checksum, are ignored. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "io/onnx_tensor_reader.h"

enum { TENSOR_EXTERNAL_DATA = 13, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

typedef struct entry {
    sp_text key, value;
} entry;

static sp_status read_entry(sp_proto proto, entry *out)
{
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number == ENTRY_KEY) SP_TRY(sp__proto_text(&proto, &field, &out->key));
        if (field.number == ENTRY_VALUE) SP_TRY(sp__proto_text(&proto, &field, &out->value));
    }
    return proto.status;
}

/* A decimal number of at most 18 digits, so below 2^63, as every offset in a file. */
static sp_status read_number(const entry *from, const sp_onnx_tensor *tensor, uint64_t *out)
{
    uint64_t number = 0;
    bool is_number = from->value.len > 0 && from->value.len <= 18;
    for (size_t i = 0; i < from->value.len && is_number; i++) {
        const char digit = from->value.ptr[i];
        is_number = digit >= '0' && digit <= '9';
        number = number * 10 + (uint64_t)(digit - '0');
    }
    if (!is_number) {
        return sp__fail(SP_CORRUPT,
                        "tensor '%s': the %s of its external data is '%s', not a number",
                        sp__text_print(tensor->name).text, sp__text_print(from->key).text,
                        sp__text_print(from->value).text);
    }
    *out = number;
    return SP_OK;
}

sp_status sp__onnx_read_external(sp_proto proto, sp_onnx_tensor *out)
{
    uint64_t length = out->bytes;
    out->storage = SP_ONNX_EXTERNAL;
    out->content = (sp_text){0};
    for (sp_proto_field field; sp__proto_next(&proto, &field);) {
        if (field.number != TENSOR_EXTERNAL_DATA) continue;
        sp_proto inner;
        entry pair = {0};
        SP_TRY(sp__proto_enter(&proto, &field, "StringStringEntryProto", &inner));
        SP_TRY(read_entry(inner, &pair));
        if (sp__text_is(pair.key, "location")) out->content = pair.value;
        if (sp__text_is(pair.key, "offset")) SP_TRY(read_number(&pair, out, &out->offset));
        if (sp__text_is(pair.key, "length")) SP_TRY(read_number(&pair, out, &length));
    }
    SP_TRY(proto.status);
    if (length == out->bytes) return SP_OK;
    return sp__fail(SP_CORRUPT,
                    "tensor '%s' of shape %s and type %s has %" PRIu64
                    " bytes of external data, wanted %" PRIu64,
                    sp__text_print(out->name).text, sp__shape_print(&out->shape).text,
                    sp_dtype_name(out->dtype), length, out->bytes);
}
