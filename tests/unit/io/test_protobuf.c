/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf reader: valid messages, and malformed bytes, which are SP_CORRUPT without reading
 * beyond them. */
#include "io/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "support/onnx_writer.h"
#include "support/test.h"

static sp_status read_all(const void *bytes, size_t len, uint32_t *fields)
{
    sp_proto reader = sp__proto_open(bytes, len, "Test");
    *fields = 0;
    for (sp_proto_field field; sp__proto_next(&reader, &field);) {
        CHECK(field.len <= len);
        ++*fields;
    }
    return reader.status;
}

TEST(each_wire_type_is_read)
{
    writer w = {0};
    write_int(&w, 1, -1);
    write_float(&w, 2, 1.5f);
    write_text(&w, 3, "abc");
    write_tag(&w, 4, 1);
    write_raw(&w, "\1\2\3\4\5\6\7\10", 8);
    sp_proto reader = sp__proto_open(w.bytes, w.len, "Test");
    sp_proto_field field;
    int64_t number;
    float real;
    sp_text text;
    REQUIRE(sp__proto_next(&reader, &field));
    CHECK_OK(sp__proto_int(&reader, &field, &number));
    CHECK_EQ_INT(number, -1);
    REQUIRE(sp__proto_next(&reader, &field));
    CHECK_OK(sp__proto_float(&reader, &field, &real));
    CHECK(real == 1.5f);
    REQUIRE(sp__proto_next(&reader, &field));
    CHECK_OK(sp__proto_text(&reader, &field, &text));
    CHECK(sp__text_is(text, "abc"));
    REQUIRE(sp__proto_next(&reader, &field));
    CHECK_EQ_U64(field.value, 0x0807060504030201u);
    CHECK(!sp__proto_next(&reader, &field));
    CHECK_OK(reader.status);
    writer_free(&w);
}

TEST(packed_and_unpacked_scalars_read_alike)
{
    writer packed = {0}, w = {0};
    for (uint64_t i = 0; i < 5; i++) write_varint(&packed, i * 1000);
    write_message(&w, 7, &packed);
    for (int64_t i = 5; i < 8; i++) write_int(&w, 7, i * 1000);
    sp_proto reader = sp__proto_open(w.bytes, w.len, "Test");
    uint64_t next = 0;
    for (sp_proto_field field; sp__proto_next(&reader, &field);) {
        sp_proto scalars;
        REQUIRE_OK(sp__proto_scalars(&reader, &field, SP_PROTO_VARINT, &scalars));
        for (uint64_t v; sp__proto_scalar_next(&scalars, SP_PROTO_VARINT, &v);) {
            CHECK_EQ_U64(v, next++ * 1000);
        }
        CHECK_OK(scalars.status);
    }
    CHECK_EQ_U64(next, 8);
    writer_free(&w);
}

typedef struct broken_case {
    const char *bytes;
    size_t len;
    const char *message;
} broken_case;

TEST(broken_bytes_are_corrupt)
{
    static const broken_case broken[] = {
        {"\x08", 1, "cut off"},
        {"\x08\xff", 2, "cut off"},
        {"\x80", 1, "cut off"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, "longer than 64 bits"},
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, "longer than 64 bits"},
        {"\x0a\x05"
         "abcd",
         6, "exceeds its message"},
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, "exceeds its message"},
        {"\x0d\1\2\3", 4, "cut off"},
        {"\x09\1\2\3\4\5\6\7", 8, "cut off"},
        {"\x0b", 1, "wire type"},
        {"\x0c", 1, "wire type"},
        {"\x0e", 1, "wire type"},
        {"\x0f", 1, "wire type"},
        {"\x00\x00", 2, "invalid field number"},
        {"\xfa\xff\xff\xff\xff\xff\x01\x00", 8, "invalid field number"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(broken); i++) {
        uint32_t fields;
        /* A copy of exactly this size: AddressSanitizer reports reads past the end. */
        char *copy = malloc(broken[i].len);
        memcpy(copy, broken[i].bytes, broken[i].len);
        CHECK_STATUS(read_all(copy, broken[i].len, &fields), SP_CORRUPT);
        CHECK_MESSAGE(broken[i].message);
        CHECK_MESSAGE("Test");
        free(copy);
    }
}

TEST(an_empty_message_has_no_fields)
{
    uint32_t fields;
    CHECK_OK(read_all(NULL, 0, &fields));
    CHECK_EQ_U64(fields, 0);
    CHECK_OK(read_all("x", 0, &fields));
    CHECK_EQ_U64(fields, 0);
}

TEST(wrong_wire_types_are_refused_with_field_and_byte)
{
    writer w = {0};
    write_int(&w, 3, 5);
    sp_proto reader = sp__proto_open(w.bytes, w.len, "Test");
    sp_proto_field field;
    sp_text text;
    REQUIRE(sp__proto_next(&reader, &field));
    CHECK_STATUS(sp__proto_text(&reader, &field, &text), SP_CORRUPT);
    CHECK_MESSAGE("Test field 3 at byte 1");
    CHECK(!sp__proto_next(&reader, &field));
    writer_free(&w);
}

TEST(counts_check_the_framing_to_the_end)
{
    writer w = {0};
    uint64_t counts[SP_PROTO_COUNTED];
    for (int i = 0; i < 3; i++) write_text(&w, 5, "x");
    write_int(&w, 31, 1);
    write_int(&w, 1000, 1);
    sp_proto reader = sp__proto_open(w.bytes, w.len, "Test");
    CHECK_OK(sp__proto_counts(&reader, counts));
    CHECK_EQ_U64(counts[5], 3);
    CHECK_EQ_U64(counts[31], 1);
    write_tag(&w, 5, 2);
    reader = sp__proto_open(w.bytes, w.len, "Test");
    CHECK_STATUS(sp__proto_counts(&reader, counts), SP_CORRUPT);
    writer_free(&w);
}

TEST_MAIN
