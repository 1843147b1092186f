/* SPDX-License-Identifier: Apache-2.0 */
/* The wire format: tag varints, and values of four wire types. Input is untrusted: every read is
 * bounded by `end`, every length by the remaining bytes. */
#include "io/protobuf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"

sp_proto sp__proto_open(const void *bytes, size_t len, const char *message)
{
    /* An empty message may have NULL bytes; pointer arithmetic needs an object. */
    const uint8_t *start = bytes ? bytes : (const uint8_t *)"";
    return (sp_proto){
        .start = start, .at = start, .end = start + (bytes ? len : 0), .message = message};
}

static void fail_at(sp_proto *reader, const uint8_t *where, uint32_t number, const char *what)
{
    char field[32] = "";
    if (number != 0) (void)snprintf(field, sizeof(field), " field %" PRIu32, number);
    reader->status = sp__fail(SP_CORRUPT, "malformed file: %s%s at byte %zu: %s", reader->message,
                              field, (size_t)(where - reader->start), what);
    reader->at = reader->end;
}

sp_status sp__proto_fail(sp_proto *reader, const sp_proto_field *field, const char *what)
{
    fail_at(reader, field->bytes, field->number, what);
    return reader->status;
}

/* Ten bytes hold 64 bits; bits above are refused rather than dropped. */
static bool read_varint(sp_proto *reader, uint64_t *out)
{
    const uint8_t *first = reader->at;
    uint64_t value = 0;
    for (uint32_t shift = 0; shift < 70; shift += 7) {
        if (reader->at == reader->end) {
            fail_at(reader, first, 0, "a number is cut off by the end of its message");
            return false;
        }
        const uint8_t byte = *reader->at++;
        if (shift == 63 && byte > 1) break;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *out = value;
            return true;
        }
    }
    fail_at(reader, first, 0, "a number is longer than 64 bits");
    return false;
}

static bool read_fixed(sp_proto *reader, size_t len, uint64_t *out)
{
    if ((size_t)(reader->end - reader->at) < len) {
        fail_at(reader, reader->at, 0, "a number is cut off by the end of its message");
        return false;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++) value |= (uint64_t)reader->at[i] << (8 * i);
    reader->at += len;
    *out = value;
    return true;
}

static bool read_scalar(sp_proto *reader, sp_proto_wire wire, uint64_t *out)
{
    if (wire == SP_PROTO_VARINT) return read_varint(reader, out);
    return read_fixed(reader, wire == SP_PROTO_FIXED32 ? 4 : 8, out);
}

static bool read_bytes(sp_proto *reader, sp_proto_field *out)
{
    uint64_t len;
    const uint8_t *first = reader->at;
    if (!read_varint(reader, &len)) return false;
    if (len > (uint64_t)(reader->end - reader->at)) {
        fail_at(reader, first, out->number, "a length exceeds its message");
        return false;
    }
    out->bytes = reader->at;
    out->len = (size_t)len;
    reader->at += len;
    return true;
}

bool sp__proto_next(sp_proto *reader, sp_proto_field *out)
{
    if (reader->status != SP_OK || reader->at == reader->end) return false;
    uint64_t tag;
    const uint8_t *first = reader->at;
    if (!read_varint(reader, &tag)) return false;
    if (tag >> 3 == 0 || tag >> 3 > 0x1fffffff) {
        fail_at(reader, first, 0, "an invalid field number");
        return false;
    }
    *out = (sp_proto_field){
        .number = (uint32_t)(tag >> 3), .wire = (sp_proto_wire)(tag & 7), .bytes = reader->at};
    switch (tag & 7) {
    case SP_PROTO_VARINT:
    case SP_PROTO_FIXED64:
    case SP_PROTO_FIXED32:
        if (!read_scalar(reader, out->wire, &out->value)) return false;
        out->len = (size_t)(reader->at - out->bytes);
        return true;
    case SP_PROTO_BYTES:
        return read_bytes(reader, out);
    default:
        fail_at(reader, first, out->number, "an unknown wire type");
        return false;
    }
}

sp_status sp__proto_want(sp_proto *reader, const sp_proto_field *field, sp_proto_wire wire)
{
    if (field->wire == wire) return SP_OK;
    return sp__proto_fail(reader, field, "wrong wire type for this field");
}

sp_status sp__proto_enter(sp_proto *reader, const sp_proto_field *field, const char *message,
                          sp_proto *out)
{
    SP_TRY(sp__proto_want(reader, field, SP_PROTO_BYTES));
    *out = (sp_proto){.start = reader->start,
                      .at = field->bytes,
                      .end = field->bytes + field->len,
                      .message = message};
    return SP_OK;
}

sp_status sp__proto_text(sp_proto *reader, const sp_proto_field *field, sp_text *out)
{
    SP_TRY(sp__proto_want(reader, field, SP_PROTO_BYTES));
    *out = (sp_text){(const char *)field->bytes, field->len};
    return SP_OK;
}

sp_status sp__proto_int(sp_proto *reader, const sp_proto_field *field, int64_t *out)
{
    SP_TRY(sp__proto_want(reader, field, SP_PROTO_VARINT));
    *out = (int64_t)field->value;
    return SP_OK;
}

sp_status sp__proto_float(sp_proto *reader, const sp_proto_field *field, float *out)
{
    SP_TRY(sp__proto_want(reader, field, SP_PROTO_FIXED32));
    const uint32_t bits = (uint32_t)field->value;
    memcpy(out, &bits, sizeof(bits));
    return SP_OK;
}

sp_status sp__proto_scalars(sp_proto *reader, const sp_proto_field *field, sp_proto_wire wire,
                            sp_proto *out)
{
    if (field->wire != SP_PROTO_BYTES) SP_TRY(sp__proto_want(reader, field, wire));
    *out = (sp_proto){.start = reader->start,
                      .at = field->bytes,
                      .end = field->bytes + field->len,
                      .message = reader->message};
    return SP_OK;
}

bool sp__proto_scalar_next(sp_proto *scalars, sp_proto_wire wire, uint64_t *out)
{
    if (scalars->status != SP_OK || scalars->at == scalars->end) return false;
    return read_scalar(scalars, wire, out);
}

sp_status sp__proto_counts(const sp_proto *reader, uint64_t counts[SP_PROTO_COUNTED])
{
    sp_proto scan = *reader;
    memset(counts, 0, SP_PROTO_COUNTED * sizeof(counts[0]));
    for (sp_proto_field field; sp__proto_next(&scan, &field);) {
        if (field.number < SP_PROTO_COUNTED) counts[field.number]++;
    }
    return scan.status;
}
