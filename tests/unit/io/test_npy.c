/* SPDX-License-Identifier: Apache-2.0 */
/* .npy in memory: files as NumPy documents them, written by hand, and malformed ones. */
#include "io/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "support/test.h"

/* ---- files by hand ---- */

typedef struct npy_file {
    char bytes[1024];
    size_t len;
} npy_file;

static npy_file make(int version, const char *header, const void *data, size_t len)
{
    npy_file file;
    const size_t header_len = strlen(header);
    const size_t width = version == 1 ? 2 : 4;
    memcpy(file.bytes, "\x93NUMPY", 6);
    file.bytes[6] = (char)version;
    file.bytes[7] = 0;
    for (size_t i = 0; i < width; i++) file.bytes[8 + i] = (char)(header_len >> 8 * i);
    memcpy(file.bytes + 8 + width, header, header_len);
    if (len > 0) memcpy(file.bytes + 8 + width + header_len, data, len);
    file.len = 8 + width + header_len + len;
    return file;
}

static sp_status load(const npy_file *file, sp_array *out)
{
    /* Of exactly this size, so that AddressSanitizer reports reads past the end. */
    char *bytes = malloc(file->len > 0 ? file->len : 1);
    memcpy(bytes, file->bytes, file->len);
    const sp_status status = sp__npy_load(bytes, file->len, out);
    free(bytes);
    return status;
}

static void expect(const npy_file *file, sp_dtype dtype, uint32_t rank, const int64_t *shape,
                   const void *data, uint64_t bytes)
{
    sp_array array;
    REQUIRE_OK(load(file, &array));
    CHECK_EQ_INT(array.dtype, dtype);
    CHECK_EQ_U64(array.shape.rank, rank);
    if (rank > 0) CHECK_EQ_MEM(array.shape.dims, shape, rank * sizeof *shape);
    CHECK_EQ_U64(array.bytes, bytes);
    CHECK_EQ_MEM(array.data, data, bytes);
    sp__array_deinit(&array);
}

TEST(all_three_versions_are_read)
{
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }     \n";
    const float values[] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {2, 3};
    for (int version = 1; version <= 3; version++) {
        const npy_file file = make(version, header, values, sizeof values);
        expect(&file, SP_F32, 2, shape, values, sizeof values);
    }
    npy_file file = make(1, header, values, sizeof values);
    sp_array array;
    file.bytes[6] = 4;
    CHECK_STATUS(load(&file, &array), SP_UNSUPPORTED);
    CHECK_MESSAGE("version 4.0");
    file.bytes[6] = 1;
    file.bytes[7] = 1;
    CHECK_STATUS(load(&file, &array), SP_UNSUPPORTED);
    file.bytes[0] = 'N';
    CHECK_STATUS(load(&file, &array), SP_CORRUPT);
    CHECK_MESSAGE("not a .npy file");
}

TEST(every_type_is_read_in_either_byte_order)
{
    static const struct {
        const char *name;
        sp_dtype dtype;
    } types[] = {{"f2", SP_F16}, {"f4", SP_F32}, {"f8", SP_F64}, {"i1", SP_I8},
                 {"i2", SP_I16}, {"i4", SP_I32}, {"i8", SP_I64}, {"u1", SP_U8},
                 {"u2", SP_U16}, {"u4", SP_U32}, {"u8", SP_U64}};
    const uint8_t little[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    const int64_t shape[] = {2};
    for (size_t i = 0; i < SP_COUNT_OF(types); i++) {
        const size_t element = sp_dtype_bytes(types[i].dtype);
        uint8_t big[16];
        for (size_t k = 0; k < 2 * element; k++) {
            big[k] = little[k / element * element + element - 1 - k % element];
        }
        for (const char *order = "<=|>"; *order != '\0'; order++) {
            char header[128];
            snprintf(header, sizeof header,
                     "{'descr': '%c%s', 'fortran_order': False, 'shape': (2,), }\n", *order,
                     types[i].name);
            const npy_file file = make(1, header, *order == '>' ? big : little, 2 * element);
            expect(&file, types[i].dtype, 1, shape, little, 2 * element);
        }
    }
    const uint8_t bytes[] = {0, 1, 2, 255}, bools[] = {0, 1, 1, 1};
    const npy_file file =
        make(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (4,), }", bytes, 4);
    expect(&file, SP_BOOL, 1, (const int64_t[]){4}, bools, 4);
}

TEST(fortran_order_becomes_the_order_of_c)
{
    const int16_t columns[] = {0, 3, 1, 4, 2, 5}, rows[] = {0, 1, 2, 3, 4, 5};
    npy_file file =
        make(2, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }\n", columns, 12);
    expect(&file, SP_I16, 2, (const int64_t[]){2, 3}, rows, 12);
    /* And of three dimensions: element (i, j, k) of 2 x 1 x 2 is at i + 2 * k. */
    const uint8_t cube[] = {10, 20, 30, 40}, want[] = {10, 30, 20, 40};
    file = make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 2), }\n", cube, 4);
    expect(&file, SP_U8, 3, (const int64_t[]){2, 1, 2}, want, 4);
}

TEST(the_header_may_be_written_in_any_python)
{
    const int32_t values[] = {7, 8};
    static const char *const headers[] = {
        "{\"shape\": (2L, ), \"fortran_order\": False, \"descr\": \"<i4\"}",
        "  { 'fortran_order' :False,'descr':'<i4' , 'shape' :( 2 , ) , }  \n\n",
        "{'shape':(1,2,),'descr':'<i4','fortran_order':False}",
        "{'shape':(2,1),'descr':'<i4','fortran_order':False}"};
    const int64_t shapes[][2] = {{2}, {2}, {1, 2}, {2, 1}};
    for (size_t i = 0; i < SP_COUNT_OF(headers); i++) {
        const npy_file file = make(1, headers[i], values, sizeof values);
        expect(&file, SP_I32, i < 2 ? 1 : 2, shapes[i], values, sizeof values);
    }
    const npy_file scalar =
        make(1, "{'descr': '<i4', 'fortran_order': False, 'shape': (), }", values, 4);
    expect(&scalar, SP_I32, 0, NULL, values, 4);
    const npy_file none =
        make(1, "{'descr': '<i4', 'fortran_order': True, 'shape': (3, 0), }", NULL, 0);
    expect(&none, SP_I32, 2, (const int64_t[]){3, 0}, values, 0);
}

TEST(headers_that_are_none_are_refused)
{
    static const struct {
        const char *header;
        sp_status status;
        const char *message;
    } cases[] = {
        {"", SP_CORRUPT, "not a dictionary"},
        {"{", SP_CORRUPT, "not a dictionary"},
        {"{}", SP_CORRUPT, "missing"},
        {"{'descr': '<f4', 'fortran_order': False}", SP_CORRUPT, "missing"},
        {"{'descr': '<f4' 'fortran_order': False}", SP_CORRUPT, "not a dictionary"},
        {"{'descr': '<f4", SP_UNSUPPORTED, "structs"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", SP_UNSUPPORTED, "'|O'"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", SP_UNSUPPORTED, "'<c8'"},
        {"{'descr': '<U4', 'fortran_order': False, 'shape': (1,)}", SP_UNSUPPORTED, "'<U4'"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (1,)}", SP_UNSUPPORTED, "'<f16'"},
        {"{'descr': '', 'fortran_order': False, 'shape': (1,)}", SP_UNSUPPORTED, "''"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False}", SP_UNSUPPORTED, "structs"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", SP_CORRUPT, "neither True"},
        {"{'descr': '<f4', 'descr': '<f4'}", SP_CORRUPT, "repeated"},
        {"{'other': 1}", SP_CORRUPT, "unknown"},
        {"{'shape': 3}", SP_CORRUPT, "not a tuple"},
        {"{'shape': (3)}", SP_CORRUPT, "not a tuple"},
        {"{'shape': (3 4)}", SP_CORRUPT, "not a tuple"},
        {"{'shape': (3,", SP_CORRUPT, "not a number"},
        {"{'shape': (-3,)}", SP_CORRUPT, "not a number"},
        {"{'shape': (99999999999999999999,)}", SP_CORRUPT, "not a number"},
        {"{'shape': (1,1,1,1,1,1,1,1,1)}", SP_UNSUPPORTED, "more than 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", SP_CORRUPT, "text after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", SP_EXHAUSTED,
         "2^40"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", SP_CORRUPT, "wanted 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", SP_CORRUPT, "wanted 0"},
    };
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const npy_file file = make(1, cases[i].header, "four", 4);
        sp_array array;
        CHECK_STATUS(load(&file, &array), cases[i].status);
        CHECK_MESSAGE(cases[i].message);
        CHECK(array.data == NULL);
    }
}

TEST(a_file_that_ends_anywhere_is_corrupt)
{
    const float values[] = {1, 2};
    const npy_file whole =
        make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", values, 8);
    for (size_t len = 0; len < whole.len; len++) {
        npy_file file = whole;
        sp_array array;
        file.len = len;
        CHECK_STATUS(load(&file, &array), SP_CORRUPT);
    }
}

/* ---- writing ---- */

TEST(what_is_written_is_the_documented_format)
{
    const float values[] = {1, 2, 3};
    const sp_array_view array = {SP_F32, {.rank = 1, .dims = {3}}, values};
    char *bytes;
    size_t len;
    REQUIRE_OK(sp__npy_save(&array, (void **)&bytes, &len));
    CHECK_EQ_U64(len, 128 + 12);
    CHECK_EQ_MEM(bytes, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes of header */
    const char *header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
    CHECK_EQ_MEM(bytes + 10, header, strlen(header));
    for (size_t i = 10 + strlen(header); i < 127; i++) CHECK(bytes[i] == ' ');
    CHECK(bytes[127] == '\n');
    CHECK_EQ_MEM(bytes + 128, values, sizeof values);
    sp_free(bytes);
}

TEST(every_type_and_rank_comes_back)
{
    uint8_t values[512];
    for (int i = 0; i < 512; i++) values[i] = (uint8_t)(i % 2);
    for (int dtype = SP_F32; dtype <= SP_BOOL; dtype++) {
        for (uint32_t rank = 0; rank <= SP_MAX_RANK; rank++) {
            sp_array_view view = {(sp_dtype)dtype, {.rank = rank}, values};
            for (uint32_t i = 0; i < rank; i++) view.shape.dims[i] = i < 4 ? 2 : 1;
            void *bytes;
            size_t len;
            sp_array array;
            if (dtype == SP_BF16) {
                CHECK_STATUS(sp__npy_save(&view, &bytes, &len), SP_UNSUPPORTED);
                CHECK_MESSAGE("NumPy has no bf16");
                continue;
            }
            REQUIRE_OK(sp__npy_save(&view, &bytes, &len));
            CHECK_OK(sp__npy_load(bytes, len, &array));
            CHECK_EQ_INT(array.dtype, dtype);
            CHECK(sp__shape_equal(&array.shape, &view.shape));
            CHECK_EQ_MEM(array.data, values, array.bytes);
            sp__array_deinit(&array);
            sp_free(bytes);
        }
    }
    sp_array_view most = {SP_U8, {.rank = 8}, values};
    for (uint32_t i = 0; i < 8; i++) most.shape.dims[i] = INT64_MAX;
    void *bytes;
    size_t len;
    CHECK_STATUS(sp__npy_save(&most, &bytes, &len), SP_EXHAUSTED);
    most.shape.dims[7] = 0; /* no bytes, and the longest header */
    CHECK_STATUS(sp__npy_save(&most, &bytes, &len), SP_EXHAUSTED);
}

TEST(each_allocation_fails_once)
{
    const float values[] = {1, 2, 3};
    const sp_array_view view = {SP_F32, {.rank = 1, .dims = {3}}, values};
    void *bytes;
    size_t len;
    sp_array array;
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__npy_save(&view, &bytes, &len), SP_OUT_OF_MEMORY);
    REQUIRE_OK(sp__npy_save(&view, &bytes, &len));
    sp_heap_fail_after(0);
    CHECK_STATUS(sp__npy_load(bytes, len, &array), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    sp_free(bytes);
}

TEST_MAIN
