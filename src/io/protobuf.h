/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the protobuf wire format over bytes in memory. Allocates nothing, never reads outside
 * [at, end), takes time linear in the bytes it is given. A reader is a value: copy it to scan a
 * message twice. Not shared between threads; the bytes may be.
 *
 *     for (sp_proto_field f; sp__proto_next(&reader, &f);) ...
 *     SP_TRY(reader.status);                 // SP_OK if the loop read the whole message */
#ifndef SP_IO_PROTOBUF_H
#define SP_IO_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"

/* Groups (3 and 4) are refused: no supported format uses them. */
typedef enum sp_proto_wire {
    SP_PROTO_VARINT = 0,
    SP_PROTO_FIXED64 = 1,
    SP_PROTO_BYTES = 2,
    SP_PROTO_FIXED32 = 5
} sp_proto_wire;

typedef struct sp_proto {
    const uint8_t *start; /* of the whole file: messages give offsets from here */
    const uint8_t *at, *end;
    const char *message; /* static name of the message's type, for errors */
    sp_status status;    /* the error that ended the loop, or SP_OK */
} sp_proto;

/* One field. `bytes` is the encoding of its value, without tag and length: of an unpacked scalar
 * exactly the bytes that it would have inside a packed field. */
typedef struct sp_proto_field {
    uint32_t number;
    sp_proto_wire wire;
    uint64_t value; /* of a scalar */
    const uint8_t *bytes;
    size_t len;
} sp_proto_field;

sp_proto sp__proto_open(const void *bytes, size_t len, const char *message);

/* The next field; false at the end and on an error. */
bool sp__proto_next(sp_proto *reader, sp_proto_field *out);

/* Sets the reader's status to SP_CORRUPT with `what` and the byte offset; returns it. */
sp_status sp__proto_fail(sp_proto *reader, const sp_proto_field *field, const char *what);

/* The field must have wire type `wire`. */
sp_status sp__proto_want(sp_proto *reader, const sp_proto_field *field, sp_proto_wire wire);

/* A reader of the message that is the field's value. */
sp_status sp__proto_enter(sp_proto *reader, const sp_proto_field *field, const char *message,
                          sp_proto *out);

sp_status sp__proto_text(sp_proto *reader, const sp_proto_field *field, sp_text *out);
sp_status sp__proto_int(sp_proto *reader, const sp_proto_field *field, int64_t *out);
sp_status sp__proto_float(sp_proto *reader, const sp_proto_field *field, float *out);

/* A reader of the scalars of one occurrence of a repeated field, packed or not; `wire` is the wire
 * type of one scalar. */
sp_status sp__proto_scalars(sp_proto *reader, const sp_proto_field *field, sp_proto_wire wire,
                            sp_proto *out);

/* The next scalar from such a reader; false at the end and on an error. */
bool sp__proto_scalar_next(sp_proto *scalars, sp_proto_wire wire, uint64_t *out);

/* How often each field below SP_PROTO_COUNTED occurs; checks the message's framing to its end. */
#define SP_PROTO_COUNTED 32
sp_status sp__proto_counts(const sp_proto *reader, uint64_t counts[SP_PROTO_COUNTED]);

#endif
