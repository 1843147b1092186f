/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto: every storage of values, unusual shapes, and inconsistent files. */
#include <string.h>

#include "base/heap.h"
#include "io/onnx_tensor.h"
#include "support/model_data.h"
#include "support/onnx_writer.h"
#include "support/test.h"

static sp_status load(writer *w, sp_array *out)
{
    const sp_status status = sp__onnx_tensor_load(w->bytes, w->len, out);
    writer_free(w);
    return status;
}

static writer head(int64_t data_type, int64_t size)
{
    writer w = {0};
    write_int(&w, 1, size);
    write_int(&w, 2, data_type);
    write_text(&w, 8, "t");
    return w;
}

TEST(raw_and_typed_values_read_alike)
{
    const float want[3] = {1.0f, -2.5f, 3e-40f};
    writer raw = head(1, 3), packed = head(1, 3), unpacked = head(1, 3);
    write_bytes(&raw, 9, want, sizeof(want));
    write_bytes(&packed, 4, want, sizeof(want));
    for (int i = 0; i < 3; i++) write_float(&unpacked, 4, want[i]);
    writer *const all[] = {&raw, &packed, &unpacked};
    for (int i = 0; i < 3; i++) {
        sp_array array;
        REQUIRE_OK(load(all[i], &array));
        CHECK_EQ_INT(array.dtype, SP_F32);
        CHECK_EQ_U64(array.bytes, sizeof(want));
        CHECK_EQ_MEM(array.data, want, sizeof(want));
        sp__array_deinit(&array);
    }
}

/* ONNX's number, the field of its values, and its type. */
static const struct {
    int64_t data_type;
    uint32_t field;
    sp_dtype dtype;
} integer_types[] = {{2, 5, SP_U8},    {3, 5, SP_I8},    {4, 5, SP_U16},  {5, 5, SP_I16},
                     {6, 5, SP_I32},   {7, 7, SP_I64},   {9, 5, SP_BOOL}, {10, 5, SP_F16},
                     {16, 5, SP_BF16}, {12, 11, SP_U32}, {13, 11, SP_U64}};

TEST(every_integer_type_reads_from_its_typed_field)
{
    for (size_t i = 0; i < SP_COUNT_OF(integer_types); i++) {
        for (int is_packed = 0; is_packed < 2; is_packed++) {
            writer w = head(integer_types[i].data_type, 2), inner = {0};
            const bool is_signed =
                integer_types[i].dtype == SP_I8 || integer_types[i].dtype == SP_I16 ||
                integer_types[i].dtype == SP_I32 || integer_types[i].dtype == SP_I64;
            const int64_t values[2] = {1, is_signed ? -1 : 1};
            for (int k = 0; k < 2; k++) {
                if (is_packed) write_varint(&inner, (uint64_t)values[k]);
                else write_int(&w, integer_types[i].field, values[k]);
            }
            if (is_packed) write_message(&w, integer_types[i].field, &inner);
            sp_array array;
            REQUIRE_OK(load(&w, &array));
            CHECK_EQ_INT(array.dtype, integer_types[i].dtype);
            const size_t bytes = sp_dtype_bytes(array.dtype);
            CHECK_EQ_MEM(array.data, &values[0], bytes);
            CHECK_EQ_MEM((char *)array.data + bytes, &values[1], bytes);
            sp__array_deinit(&array);
        }
    }
}

TEST(doubles_read_from_double_data)
{
    const double want[2] = {0.1, -1e300};
    writer w = head(11, 2);
    write_bytes(&w, 10, want, sizeof(want));
    sp_array array;
    REQUIRE_OK(load(&w, &array));
    CHECK_EQ_MEM(array.data, want, sizeof(want));
    sp__array_deinit(&array);
}

TEST(bools_become_0_or_1)
{
    writer w = head(9, 4);
    write_bytes(&w, 9, "\x00\x01\x02\xff", 4);
    sp_array array;
    REQUIRE_OK(load(&w, &array));
    CHECK_EQ_MEM(array.data, "\x00\x01\x01\x01", 4);
    sp__array_deinit(&array);
}

TEST(scalars_and_zero_sizes)
{
    const float one = 1;
    sp_array array;
    writer scalar = make_tensor("s", 1, NULL, 0, &one, sizeof(one));
    REQUIRE_OK(load(&scalar, &array));
    CHECK_EQ_INT(array.shape.rank, 0);
    CHECK_EQ_U64(array.bytes, 4);
    sp__array_deinit(&array);
    writer empty = head(1, 0);
    REQUIRE_OK(load(&empty, &array));
    CHECK_EQ_U64(array.bytes, 0);
    sp__array_deinit(&array);
    const int64_t dims[2] = {0, 5};
    writer raw = make_tensor("e", 7, dims, 2, NULL, 0);
    REQUIRE_OK(load(&raw, &array));
    CHECK_EQ_INT(array.shape.rank, 2);
    CHECK_EQ_U64(array.bytes, 0);
    sp__array_deinit(&array);
}

TEST(lies_about_the_values_are_corrupt)
{
    sp_array array;
    writer few = make_tensor("few", 1, (const int64_t[]){3}, 1, "12345678", 8);
    CHECK_STATUS(load(&few, &array), SP_CORRUPT);
    CHECK_MESSAGE("'few' of shape [3] and type f32 holds 2 values, wanted 3");
    writer many = make_tensor("many", 1, (const int64_t[]){1}, 1, "12345678", 8);
    CHECK_STATUS(load(&many, &array), SP_CORRUPT);
    writer part = make_tensor("part", 1, (const int64_t[]){1}, 1, "12345", 5);
    CHECK_STATUS(load(&part, &array), SP_CORRUPT);
    writer none = head(1, 3);
    CHECK_STATUS(load(&none, &array), SP_CORRUPT);
    writer negative = make_tensor("negative", 1, (const int64_t[]){-1}, 1, "", 0);
    CHECK_STATUS(load(&negative, &array), SP_CORRUPT);
    CHECK_MESSAGE("negative");
    writer untyped = make_tensor("untyped", 0, NULL, 0, "1234", 4);
    CHECK_STATUS(load(&untyped, &array), SP_CORRUPT);
    writer cut = head(1, 2);
    write_bytes(&cut, 4, "123456", 6);
    CHECK_STATUS(load(&cut, &array), SP_CORRUPT);
    writer wrong_wire = head(1, 1);
    write_int(&wrong_wire, 4, 1);
    CHECK_STATUS(load(&wrong_wire, &array), SP_CORRUPT);
}

TEST(absurd_shapes_are_refused_before_any_allocation)
{
    sp_array array;
    const int64_t big[4] = {1 << 20, 1 << 20, 1 << 20, 1 << 20};
    writer huge = make_tensor("huge", 1, big, 4, "", 0);
    CHECK_STATUS(load(&huge, &array), SP_EXHAUSTED);
    const int64_t wrap[2] = {INT64_MAX, INT64_MAX};
    writer wraps = make_tensor("wraps", 1, wrap, 2, "", 0);
    CHECK_STATUS(load(&wraps, &array), SP_EXHAUSTED);
    const int64_t zero[3] = {INT64_MAX, 0, INT64_MAX};
    writer beside_zero = make_tensor("zero", 1, zero, 3, "", 0);
    CHECK_STATUS(load(&beside_zero, &array), SP_EXHAUSTED);
    writer rank = {0};
    for (int i = 0; i < 100; i++) write_int(&rank, 1, 1);
    write_int(&rank, 2, 1);
    CHECK_STATUS(load(&rank, &array), SP_UNSUPPORTED);
    CHECK_MESSAGE("rank 100");
}

TEST(what_is_not_supported_says_so)
{
    sp_array array;
    writer string = make_tensor("s", 8, NULL, 0, "", 0);
    CHECK_STATUS(load(&string, &array), SP_UNSUPPORTED);
    CHECK_MESSAGE("string");
    writer unknown = make_tensor("u", 77, NULL, 0, "", 0);
    CHECK_STATUS(load(&unknown, &array), SP_UNSUPPORTED);
    writer external = head(1, 1);
    write_int(&external, 14, 1);
    CHECK_STATUS(load(&external, &array), SP_UNSUPPORTED);
    CHECK_MESSAGE("external data");
    writer location = head(1, 1), entry = {0};
    write_text(&entry, 1, "location");
    write_message(&location, 13, &entry);
    CHECK_STATUS(load(&location, &array), SP_UNSUPPORTED);
    CHECK_MESSAGE("'t' has external data");
}

TEST(every_type_and_rank_is_written_and_read_back)
{
    uint8_t values[16 * 8];
    for (int i = 0; i < 16 * 8; i++) values[i] = (uint8_t)(i * 91 % 2);
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        for (uint32_t rank = 0; rank <= SP_MAX_RANK; rank++) {
            sp_array_view view = {(sp_dtype)dtype, {.rank = rank}, values};
            for (uint32_t i = 0; i < rank; i++) view.shape.dims[i] = i < 4 ? 2 : 1;
            if (rank == 6) view.shape.dims[5] = 0;
            void *bytes;
            size_t len;
            sp_array array;
            REQUIRE_OK(sp__onnx_tensor_save(&view, "t", &bytes, &len));
            CHECK_OK(sp__onnx_tensor_load(bytes, len, &array));
            CHECK_EQ_INT(array.dtype, dtype);
            CHECK(sp__shape_equal(&array.shape, &view.shape));
            CHECK_EQ_MEM(array.data, values, array.bytes);
            sp__array_deinit(&array);
            sp_free(bytes);
        }
    }
}

TEST(a_written_tensor_has_the_bytes_of_the_format)
{
    const int16_t values[300] = {1, 2};
    const sp_array_view view = {SP_I16, {.rank = 2, .dims = {300, 1}}, values};
    unsigned char *bytes;
    size_t len;
    REQUIRE_OK(sp__onnx_tensor_save(&view, "abc", (void **)&bytes, &len));
    const unsigned char want[] = {0x0a, 3,    0xac, 2,   1,   /* dims, packed: 300, 1 */
                                  0x10, 5,                    /* INT16 */
                                  0x42, 3,    'a',  'b', 'c', /* name */
                                  0x4a, 0xd8, 4,    1,   0,   2, 0};
    CHECK_EQ_MEM(bytes, want, sizeof want);
    CHECK_EQ_U64(len, sizeof want - 4 + 600);
    sp_free(bytes);
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__onnx_tensor_save(&view, "abc", (void **)&bytes, &len), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    const sp_array_view vast = {SP_I16, {.rank = 1, .dims = {INT64_MAX}}, NULL};
    CHECK_STATUS(sp__onnx_tensor_save(&vast, "abc", (void **)&bytes, &len), SP_EXHAUSTED);
}

TEST_MAIN
