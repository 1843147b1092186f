/* SPDX-License-Identifier: Apache-2.0 */
/* Files of one TensorProto: written files are read again, and malformed ones are reported with
 * their name. */
#include <streampool/tensor_proto.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "base/macros.h"
#include "support/test.h"

static const sp_device cpu; /* the zero handle */

/* A folder for one test's files. */
typedef struct folder {
    char path[64];
    char file[96];
} folder;

static folder folder_make(void)
{
    folder f = {.path = "/tmp/sp_tensor_proto_XXXXXX"};
    CHECK(mkdtemp(f.path) != NULL);
    snprintf(f.file, sizeof f.file, "%s/a.pb", f.path);
    return f;
}

static void folder_remove(const folder *f)
{
    unlink(f->file);
    CHECK_EQ_INT(rmdir(f->path), 0);
}

static sp_tensor tensor_make(sp_dtype dtype, const int64_t shape[2], const void *data)
{
    const uint64_t bytes = (uint64_t)(shape[0] * shape[1]) * sp_dtype_bytes(dtype);
    sp_tensor tensor = {0};
    CHECK_OK(sp_tensor_from_host(cpu, dtype, 2, shape, data, bytes, &tensor));
    return tensor;
}

static const int64_t shape23[2] = {2, 3};

TEST(every_dtype_is_written_and_read_again)
{
    static const sp_dtype dtypes[] = {
#define DTYPE(code, value, name, bytes) code,
        SP_DTYPE_LIST(DTYPE)
#undef DTYPE
    };
    const unsigned char data[48] = {1, 0, 1, 1, 0, 1, 7, 8, 9, 10, 11, 12};
    const folder f = folder_make();
    for (size_t i = 0; i < SP_COUNT_OF(dtypes); i++) {
        unsigned char back[48] = {0};
        const size_t bytes = 6 * sp_dtype_bytes(dtypes[i]);
        const sp_tensor tensor = tensor_make(dtypes[i], shape23, data);
        sp_tensor read;
        sp_tensor_info info;
        CHECK_OK(sp_tensor_proto_write(f.file, "t", tensor));
        REQUIRE_OK(sp_tensor_proto_read(cpu, f.file, &read));
        CHECK_OK(sp_tensor_get_info(read, &info));
        CHECK_EQ_INT(info.dtype, dtypes[i]);
        CHECK_EQ_U64(info.rank, 2);
        CHECK_EQ_INT(info.shape[0], 2);
        CHECK_EQ_INT(info.shape[1], 3);
        CHECK_OK(sp_tensor_read(read, back, bytes));
        CHECK_EQ_MEM(back, data, bytes);
        CHECK_OK(sp_tensor_release(read));
        CHECK_OK(sp_tensor_release(tensor));
    }
    folder_remove(&f);
}

TEST(a_file_in_memory_is_read_as_one_with_a_name)
{
    const folder f = folder_make();
    const unsigned char data[6] = {1, 2, 3, 4, 5, 6};
    unsigned char back[6] = {0};
    const sp_tensor tensor = tensor_make(SP_U8, shape23, data);
    sp_tensor read;
    void *bytes = NULL;
    size_t len = 0;
    CHECK_OK(sp_tensor_proto_write(f.file, "t", tensor));
    REQUIRE_OK(sp_file_read(f.file, &bytes, &len));
    REQUIRE_OK(sp_tensor_proto_read_from_memory(cpu, bytes, len, &read));
    CHECK_OK(sp_tensor_read(read, back, sizeof back));
    CHECK_EQ_MEM(back, data, sizeof back);
    CHECK_OK(sp_tensor_release(read));
    CHECK_STATUS(sp_tensor_proto_read_from_memory(cpu, bytes, len - 1, &read), SP_CORRUPT);
    CHECK_EQ_U64(read.bits, 0);
    CHECK_STATUS(sp_tensor_proto_read_from_memory(cpu, NULL, 3, &read), SP_INVALID);
    CHECK_STATUS(sp_tensor_proto_read_from_memory(cpu, bytes, SIZE_MAX, &read), SP_INVALID);
    CHECK_STATUS(sp_tensor_proto_read_from_memory(cpu, bytes, len, NULL), SP_INVALID);
    sp_free(bytes);
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&f);
}

TEST(a_view_is_written_in_the_order_of_its_elements)
{
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const float turned[6] = {1, 4, 2, 5, 3, 6};
    float back[6];
    const folder f = folder_make();
    const sp_tensor tensor = tensor_make(SP_F32, shape23, data);
    sp_tensor view, read;
    REQUIRE_OK(sp_tensor_transpose(tensor, 0, 1, &view));
    CHECK_OK(sp_tensor_proto_write(f.file, NULL, view)); /* without a name */
    REQUIRE_OK(sp_tensor_proto_read(cpu, f.file, &read));
    CHECK_OK(sp_tensor_read(read, back, sizeof back));
    CHECK_EQ_MEM(back, turned, sizeof back);
    CHECK_OK(sp_tensor_release(read));
    CHECK_OK(sp_tensor_release(view));
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&f);
}

TEST(broken_and_missing_files_are_named)
{
    const folder f = folder_make();
    sp_tensor tensor = {1};
    CHECK_STATUS(sp_tensor_proto_read(cpu, f.file, &tensor), SP_IO);
    CHECK_MESSAGE(f.file);
    CHECK_EQ_U64(tensor.bits, 0);
    FILE *file = fopen(f.file, "wb");
    REQUIRE(file != NULL);
    CHECK(fputs("nonsense", file) >= 0);
    CHECK_EQ_INT(fclose(file), 0);
    tensor.bits = 1;
    CHECK_STATUS(sp_tensor_proto_read(cpu, f.file, &tensor), SP_CORRUPT);
    CHECK_MESSAGE(f.file);
    CHECK_EQ_U64(tensor.bits, 0);
    folder_remove(&f);
}

TEST(a_file_that_cannot_be_written_is_named)
{
    const float data[6] = {0};
    const sp_tensor tensor = tensor_make(SP_F32, shape23, data);
    CHECK_STATUS(sp_tensor_proto_write("/nowhere/a.pb", "t", tensor), SP_IO);
    CHECK_MESSAGE("/nowhere/a.pb");
    CHECK_OK(sp_tensor_release(tensor));
}

TEST(wrong_arguments_are_refused)
{
    const float data[6] = {0};
    const folder f = folder_make();
    const sp_tensor stale = tensor_make(SP_F32, shape23, data);
    sp_tensor tensor = {1};
    CHECK_OK(sp_tensor_release(stale));
    CHECK_STATUS(sp_tensor_proto_read(cpu, NULL, &tensor), SP_INVALID);
    CHECK_EQ_U64(tensor.bits, 0);
    CHECK_STATUS(sp_tensor_proto_read(cpu, f.file, NULL), SP_INVALID);
    CHECK_STATUS(sp_tensor_proto_write(f.file, "t", stale), SP_INVALID);
    CHECK_STATUS(sp_tensor_proto_write(f.file, "t", (sp_tensor){0}), SP_INVALID);
    CHECK_STATUS(sp_tensor_proto_write(NULL, "t", stale), SP_INVALID);
    CHECK(access(f.file, F_OK) != 0); /* nothing was written */
    folder_remove(&f);
}

TEST(without_memory_no_file_is_written_and_none_read)
{
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const folder f = folder_make();
    const sp_tensor tensor = tensor_make(SP_F32, shape23, data);
    CHECK_OK(sp_tensor_proto_write(f.file, "t", tensor));
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_heap_fail_after(skip);
        const sp_status status = sp_tensor_proto_write(f.file, "t", tensor);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK_STATUS(status, has_failed ? SP_OUT_OF_MEMORY : SP_OK);
    }
    has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_tensor read;
        sp_heap_fail_after(skip);
        const sp_status status = sp_tensor_proto_read(cpu, f.file, &read);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == (has_failed ? SP_OUT_OF_MEMORY : SP_OK) || status == SP_OK);
        CHECK_OK(sp_tensor_release(read));
    }
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&f);
}

TEST_MAIN
