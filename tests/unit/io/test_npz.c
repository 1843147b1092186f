/* SPDX-License-Identifier: Apache-2.0 */
/* Files of arrays through the public calls, and the zip archives below them. */
#include <streampool/npy.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/heap.h"
#include "io/zip.h"
#include "runtime_fixture.h"

/* Written by Python's zipfile: first.npy, deflated, 0 ... 59 as i16; arr_0.npy, stored as by
 * numpy.savez (with an extra field), true, false, true; followed by a comment. */
/* clang-format off */
static const uint8_t archive[] = {
    0x50, 0x4b, 0x03, 0x04, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xfa, 0xc9,
    0x8a, 0x6a, 0xaa, 0x00, 0x00, 0x00, 0xf8, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x66, 0x69,
    0x72, 0x73, 0x74, 0x2e, 0x6e, 0x70, 0x79, 0x9d, 0xc8, 0x4f, 0x53, 0x01, 0x61, 0x00, 0x80, 0xf1,
    0x67, 0x93, 0xb0, 0xe4, 0x5f, 0x49, 0x94, 0xbc, 0xfe, 0xbe, 0x8b, 0xc5, 0x12, 0x2a, 0x9c, 0xbb,
    0x65, 0x5c, 0x3a, 0x38, 0x99, 0x1d, 0xfb, 0x9a, 0xcc, 0x34, 0xd6, 0xec, 0x36, 0x5d, 0x1a, 0x9f,
    0xc2, 0x17, 0x8e, 0xaf, 0xe0, 0xb9, 0x3d, 0xbf, 0xc3, 0xec, 0xf3, 0x63, 0xbe, 0xd0, 0xf8, 0xe5,
    0x4f, 0x3a, 0xca, 0x5f, 0x79, 0x72, 0x2c, 0xe4, 0x74, 0xd3, 0x97, 0xa6, 0x90, 0x6b, 0xd7, 0xfb,
    0xf1, 0xec, 0xed, 0xd2, 0xf5, 0x1c, 0x75, 0xf2, 0x77, 0xfb, 0xdb, 0x57, 0x47, 0xf7, 0xbf, 0xec,
    0x9d, 0x3a, 0xbe, 0x31, 0xb2, 0xcc, 0x86, 0x29, 0xf6, 0xe2, 0xfc, 0x74, 0xd0, 0xb8, 0x20, 0xc0,
    0x25, 0x41, 0xae, 0x08, 0x11, 0x26, 0x82, 0x4e, 0x94, 0x18, 0xd7, 0xc4, 0x49, 0x90, 0x24, 0x45,
    0x9a, 0x1b, 0x6e, 0xc9, 0x70, 0x47, 0x96, 0x7b, 0x72, 0xe4, 0x79, 0xe0, 0x91, 0x02, 0x4f, 0x14,
    0x11, 0x94, 0x28, 0x53, 0xa1, 0x4a, 0x8d, 0x3a, 0x12, 0x83, 0x06, 0x4d, 0x5a, 0x98, 0xb4, 0xe9,
    0xd0, 0xc5, 0xa2, 0x47, 0x9f, 0x67, 0x06, 0x0c, 0x19, 0xf1, 0xc2, 0x2b, 0x6f, 0x8c, 0x99, 0xf0,
    0x0f, 0x50, 0x4b, 0x03, 0x04, 0x2d, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x21, 0x00, 0x16,
    0x93, 0x8c, 0xbb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x09, 0x00, 0x14, 0x00, 0x61,
    0x72, 0x72, 0x5f, 0x30, 0x2e, 0x6e, 0x70, 0x79, 0x01, 0x00, 0x10, 0x00, 0x83, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x83, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x93, 0x4e, 0x55, 0x4d,
    0x50, 0x59, 0x01, 0x00, 0x76, 0x00, 0x7b, 0x27, 0x64, 0x65, 0x73, 0x63, 0x72, 0x27, 0x3a, 0x20,
    0x27, 0x7c, 0x62, 0x31, 0x27, 0x2c, 0x20, 0x27, 0x66, 0x6f, 0x72, 0x74, 0x72, 0x61, 0x6e, 0x5f,
    0x6f, 0x72, 0x64, 0x65, 0x72, 0x27, 0x3a, 0x20, 0x46, 0x61, 0x6c, 0x73, 0x65, 0x2c, 0x20, 0x27,
    0x73, 0x68, 0x61, 0x70, 0x65, 0x27, 0x3a, 0x20, 0x28, 0x33, 0x2c, 0x29, 0x2c, 0x20, 0x7d, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20,
    0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x20, 0x0a, 0x01, 0x00, 0x01, 0x50,
    0x4b, 0x01, 0x02, 0x14, 0x03, 0x14, 0x00, 0x00, 0x00, 0x08, 0x00, 0x00, 0x00, 0x21, 0x00, 0xfa,
    0xc9, 0x8a, 0x6a, 0xaa, 0x00, 0x00, 0x00, 0xf8, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0x00, 0x66, 0x69, 0x72,
    0x73, 0x74, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x01, 0x02, 0x2d, 0x03, 0x2d, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x21, 0x00, 0x16, 0x93, 0x8c, 0xbb, 0x83, 0x00, 0x00, 0x00, 0x83, 0x00,
    0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x01,
    0xd1, 0x00, 0x00, 0x00, 0x61, 0x72, 0x72, 0x5f, 0x30, 0x2e, 0x6e, 0x70, 0x79, 0x50, 0x4b, 0x05,
    0x06, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x02, 0x00, 0x6e, 0x00, 0x00, 0x00, 0x8f, 0x01, 0x00,
    0x00, 0x09, 0x00, 0x61, 0x20, 0x63, 0x6f, 0x6d, 0x6d, 0x65, 0x6e, 0x74,
};
/* clang-format on */

/* A folder for one test's files. */
typedef struct folder {
    char path[64];
    char file[96];
} folder;

static folder folder_make(void)
{
    folder self = {.path = "/tmp/streampool_npz_XXXXXX"};
    CHECK(mkdtemp(self.path) != NULL);
    snprintf(self.file, sizeof self.file, "%s/file", self.path);
    return self;
}

static void folder_remove(const folder *self)
{
    unlink(self->file);
    CHECK_EQ_INT(rmdir(self->path), 0); /* it contains nothing else */
}

static sp_tensor count_up(void)
{
    const float values[6] = {0, 1, 2, 3, 4, 5};
    sp_tensor tensor;
    CHECK_OK(sp_tensor_from_host(CPU, SP_F32, 2, (const int64_t[]){2, 3}, values, sizeof values,
                                 &tensor));
    return tensor;
}

/* Reads and releases. */
static void expect_floats(sp_tensor tensor, const float *want, uint64_t count)
{
    float got[6] = {0};
    CHECK_OK(sp_tensor_read(tensor, got, count * sizeof got[0]));
    CHECK_EQ_MEM(got, want, count * sizeof got[0]);
    CHECK_OK(sp_tensor_release(tensor));
}

/* ---- files ---- */

TEST(a_tensor_of_any_strides_is_written_and_read_back)
{
    runtime_begin();
    const folder self = folder_make();
    const sp_tensor tensor = count_up();
    sp_tensor turned, back;
    CHECK_OK(sp_tensor_transpose(tensor, 0, 1, &turned));
    CHECK_OK(sp_npy_write(self.file, turned));
    CHECK_OK(sp_npy_read(CPU, self.file, &back));
    sp_tensor_info info;
    CHECK_OK(sp_tensor_get_info(back, &info));
    CHECK(info.rank == 2 && info.shape[0] == 3 && info.shape[1] == 2 && info.is_contiguous);
    expect_floats(back, (const float[]){0, 3, 1, 4, 2, 5}, 6);
    CHECK_OK(sp_tensor_release(turned));
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&self);
    runtime_end();
}

typedef struct names {
    char text[64];
} names;

static void note_name(void *ctx, const char *name)
{
    names *self = ctx;
    strncat(self->text, name, sizeof self->text - strlen(self->text) - 1);
    strncat(self->text, ";", sizeof self->text - strlen(self->text) - 1);
}

TEST(a_file_in_memory_is_read_as_one_with_a_name)
{
    const folder self = folder_make();
    const int16_t values[3] = {7, -8, 9};
    int16_t back[3] = {0};
    sp_tensor tensor, read;
    void *bytes = NULL;
    size_t len = 0;
    REQUIRE_OK(sp_tensor_from_host((sp_device){0}, SP_I16, 1, (int64_t[]){3}, values, sizeof values,
                                   &tensor));
    REQUIRE_OK(sp_npy_write(self.file, tensor));
    REQUIRE_OK(sp_file_read(self.file, &bytes, &len));
    REQUIRE_OK(sp_npy_read_from_memory((sp_device){0}, bytes, len, &read));
    CHECK_OK(sp_tensor_read(read, back, sizeof back));
    CHECK_EQ_MEM(back, values, sizeof back);
    CHECK_OK(sp_tensor_release(read));
    CHECK_STATUS(sp_npy_read_from_memory((sp_device){0}, bytes, len - 1, &read), SP_CORRUPT);
    CHECK_EQ_U64(read.bits, 0);
    CHECK_STATUS(sp_npy_read_from_memory((sp_device){0}, NULL, 3, &read), SP_INVALID);
    CHECK_STATUS(sp_npy_read_from_memory((sp_device){0}, bytes, SIZE_MAX, &read), SP_INVALID);
    CHECK_STATUS(sp_npy_read_from_memory((sp_device){0}, bytes, len, NULL), SP_INVALID);
    sp_free(bytes);
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&self);
}

TEST(an_archive_of_another_program_is_read_by_name)
{
    runtime_begin();
    const folder self = folder_make();
    CHECK_OK(sp_file_write(self.file, archive, sizeof archive));
    names found = {.text = ""};
    CHECK_OK(sp_npz_list(self.file, note_name, &found));
    CHECK_EQ_STR(found.text, "first;arr_0;");
    sp_tensor tensor;
    int16_t got[60];
    CHECK_OK(sp_npz_read(CPU, self.file, "first", &tensor));
    CHECK_OK(sp_tensor_read(tensor, got, sizeof got));
    for (int i = 0; i < 60; i++) CHECK_EQ_INT(got[i], i);
    CHECK_OK(sp_tensor_release(tensor));
    uint8_t bools[3];
    CHECK_OK(sp_npz_read(CPU, self.file, "arr_0.npy", &tensor)); /* the member's own name too */
    CHECK_OK(sp_tensor_read(tensor, bools, sizeof bools));
    CHECK_EQ_MEM(bools, "\1\0\1", 3);
    CHECK_OK(sp_tensor_release(tensor));
    CHECK_STATUS(sp_npz_read(CPU, self.file, "second", &tensor), SP_NOT_FOUND);
    CHECK_MESSAGE("no array 'second'");
    CHECK_EQ_U64(tensor.bits, 0);
    folder_remove(&self);
    runtime_end();
}

TEST(an_archive_is_written_and_read_back)
{
    runtime_begin();
    const folder self = folder_make();
    const sp_tensor a = count_up();
    sp_tensor b, back;
    CHECK_OK(sp_tensor_select(a, 1, 2, &b));
    CHECK_OK(sp_npz_write(self.file, (const char *[]){"whole", "column"}, (sp_tensor[]){a, b}, 2));
    names found = {.text = ""};
    CHECK_OK(sp_npz_list(self.file, note_name, &found));
    CHECK_EQ_STR(found.text, "whole;column;");
    CHECK_OK(sp_npz_read(CPU, self.file, "whole", &back));
    expect_floats(back, (const float[]){0, 1, 2, 3, 4, 5}, 6);
    CHECK_OK(sp_npz_read(CPU, self.file, "column", &back));
    expect_floats(back, (const float[]){2, 5}, 2);
    CHECK_OK(sp_npz_write(self.file, NULL, NULL, 0)); /* replaces it */
    found.text[0] = '\0';
    CHECK_OK(sp_npz_list(self.file, note_name, &found));
    CHECK_EQ_STR(found.text, "");
    CHECK_OK(sp_tensor_release(a));
    CHECK_OK(sp_tensor_release(b));
    folder_remove(&self);
    runtime_end();
}

/* Python's zipfile is the reference for zip archives. */
TEST(python_finds_nothing_wrong_with_our_archives)
{
    if (system("python3 -c 'import zipfile' >/dev/null 2>&1") != 0) SKIP("there is no python3");
    runtime_begin();
    const folder self = folder_make();
    const sp_tensor tensor = count_up();
    char command[256];
    CHECK_OK(sp_npz_write(self.file, (const char *[]){"x"}, &tensor, 1));
    snprintf(command, sizeof command,
             "python3 -c \"import zipfile; z = zipfile.ZipFile('%s'); "
             "assert z.testzip() is None and z.namelist() == ['x.npy'] "
             "and len(z.read('x.npy')) == 152\"",
             self.file);
    CHECK_EQ_INT(system(command), 0);
    if (system("python3 -c 'import numpy' >/dev/null 2>&1") == 0) {
        snprintf(command, sizeof command,
                 "python3 -c \"import numpy as n; "
                 "assert (n.load('%s')['x'] == n.arange(6.).reshape(2, 3)).all()\"",
                 self.file);
        CHECK_EQ_INT(system(command), 0);
    } else {
        test_note("there is no numpy to ask");
    }
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&self);
    runtime_end();
}

TEST(files_that_cannot_be_read_or_written_are_named)
{
    runtime_begin();
    const folder self = folder_make();
    sp_tensor out = {1};
    const sp_tensor tensor = count_up();
    CHECK_STATUS(sp_npy_read(CPU, self.file, &out), SP_IO);
    CHECK_MESSAGE(self.file);
    CHECK_EQ_U64(out.bits, 0);
    CHECK_STATUS(sp_npz_read(CPU, self.file, "x", &out), SP_IO);
    CHECK_STATUS(sp_npz_list(self.file, note_name, NULL), SP_IO);
    CHECK_OK(sp_file_write(self.file, "nonsense", 8));
    CHECK_STATUS(sp_npy_read(CPU, self.file, &out), SP_CORRUPT);
    CHECK_MESSAGE(self.file);
    CHECK_STATUS(sp_npz_read(CPU, self.file, "x", &out), SP_CORRUPT);
    CHECK_STATUS(sp_npz_list(self.file, note_name, NULL), SP_CORRUPT);
    CHECK_MESSAGE(self.file);
    CHECK_STATUS(sp_npy_write("/nowhere/at/all", tensor), SP_IO);
    CHECK_STATUS(sp_npz_write("/nowhere/at/all", (const char *[]){"x"}, &tensor, 1), SP_IO);
    CHECK_STATUS(sp_npy_write(NULL, tensor), SP_INVALID);
    CHECK_STATUS(sp_npy_write(self.file, (sp_tensor){0}), SP_INVALID);
    CHECK_STATUS(sp_npy_read(CPU, NULL, &out), SP_INVALID);
    CHECK_STATUS(sp_npy_read(CPU, self.file, NULL), SP_INVALID);
    CHECK_STATUS(sp_npz_read(CPU, self.file, NULL, &out), SP_INVALID);
    CHECK_STATUS(sp_npz_list(self.file, NULL, NULL), SP_INVALID);
    const char *twice[] = {"x", "x"}, *empty[] = {""}, *none[] = {NULL};
    const sp_tensor both[] = {tensor, tensor};
    CHECK_STATUS(sp_npz_write(self.file, twice, both, 2), SP_INVALID);
    CHECK_MESSAGE("two arrays");
    CHECK_STATUS(sp_npz_write(self.file, empty, both, 1), SP_INVALID);
    CHECK_STATUS(sp_npz_write(self.file, none, both, 1), SP_INVALID);
    CHECK_STATUS(sp_npz_write(self.file, NULL, both, 1), SP_INVALID);
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&self);
    runtime_end();
}

TEST(after_a_shutdown_files_are_not_touched)
{
    runtime_begin();
    sp_tensor tensor;
    CHECK_OK(sp_shutdown());
    CHECK_STATUS(sp_npy_read(CPU, "/nowhere", &tensor), SP_CLOSED);
    CHECK_STATUS(sp_npz_read(CPU, "/nowhere", "x", &tensor), SP_CLOSED);
    CHECK_STATUS(sp_npz_list("/nowhere", note_name, NULL), SP_CLOSED);
    CHECK_STATUS(sp_npy_write("/nowhere", (sp_tensor){0}), SP_CLOSED);
    CHECK_STATUS(sp_npz_write("/nowhere", NULL, NULL, 0), SP_CLOSED);
    runtime_end();
}

static sp_status write_and_read(const char *path, sp_tensor tensor)
{
    sp_tensor back;
    const sp_tensor both[] = {tensor, tensor};
    SP_TRY(sp_npz_write(path, (const char *[]){"a", "b"}, both, 2));
    SP_TRY(sp_npz_read(CPU, path, "b", &back));
    CHECK_OK(sp_tensor_release(back));
    SP_TRY(sp_npy_write(path, tensor));
    SP_TRY(sp_npy_read(CPU, path, &back));
    return sp_tensor_release(back);
}

TEST(each_allocation_fails_once)
{
    runtime_begin();
    const folder self = folder_make();
    const sp_tensor tensor = count_up();
    CHECK_OK(write_and_read(self.file, tensor));
    uint64_t skip = 0;
    for (bool has_failed = true; has_failed && skip < 200; skip++) {
        sp_heap_fail_after(skip);
        const sp_status status = write_and_read(self.file, tensor);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        if (status != SP_OK) CHECK_STATUS(status, SP_OUT_OF_MEMORY);
        CHECK_OK(write_and_read(self.file, tensor));
    }
    CHECK(skip > 15 && skip < 200);
    CHECK_OK(sp_tensor_release(tensor));
    folder_remove(&self);
    runtime_end();
}

/* ---- archives ---- */

/* Reads everything in an archive; returns the first error. */
static sp_status read_all(const uint8_t *bytes, size_t len)
{
    sp_zip zip;
    sp_zip_entry entry;
    bool has_one;
    SP_TRY(sp__zip_open(bytes, len, &zip));
    for (;;) {
        void *member;
        size_t member_len;
        SP_TRY(sp__zip_next(&zip, &entry, &has_one));
        if (!has_one) return SP_OK;
        SP_TRY(sp__zip_read(&entry, &member, &member_len));
        sp_free(member);
    }
}

/* Reads a copy of `archive` with a few bytes replaced; of exactly its size, for the sanitizers. */
static sp_status read_with(size_t at, const char *replaced, size_t count)
{
    uint8_t *changed = malloc(sizeof archive);
    memcpy(changed, archive, sizeof archive);
    memcpy(changed + at, replaced, count);
    const sp_status status = read_all(changed, sizeof archive);
    free(changed);
    return status;
}

TEST(lies_in_an_archive_are_refused)
{
    CHECK_OK(read_all(archive, sizeof archive));
    const size_t end = sizeof archive - 22 - strlen("a comment");
    const size_t directory = archive[end + 16] | (size_t)archive[end + 17] << 8;
    CHECK_STATUS(read_with(end + 10, "\xff\xff", 2), SP_UNSUPPORTED);
    CHECK_MESSAGE("4 GiB");
    CHECK_STATUS(read_with(end + 16, "\xff\xff\xff\xff", 4), SP_UNSUPPORTED);
    CHECK_STATUS(read_with(end + 4, "\1", 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("several parts");
    CHECK_STATUS(read_with(end + 17, "\xff", 1), SP_CORRUPT);
    CHECK_MESSAGE("directory is outside");
    CHECK_STATUS(read_with(end + 8, "\3\0\3\0", 4), SP_CORRUPT); /* one entry more */
    CHECK_STATUS(read_with(directory, "PX", 2), SP_CORRUPT);
    CHECK_STATUS(read_with(directory + 8, "\1", 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("encrypted");
    CHECK_STATUS(read_with(directory + 10, "\14", 1), SP_UNSUPPORTED);
    CHECK_MESSAGE("method 12");
    CHECK_STATUS(read_with(directory + 16, "\0\0\0\0", 4), SP_CORRUPT);
    CHECK_MESSAGE("checksum");
    CHECK_STATUS(read_with(directory + 20, "\xff\xff\xff", 3), SP_CORRUPT);
    CHECK_MESSAGE("outside the file");
    CHECK_STATUS(read_with(directory + 20, "\xff\xff\xff\xff", 4), SP_UNSUPPORTED);
    CHECK_STATUS(read_with(directory + 24, "\xff\xff\xff\x7f", 4), SP_CORRUPT);
    CHECK_MESSAGE("cannot expand to 2147483647");
    CHECK_STATUS(read_with(directory + 28, "\xff\xff", 2), SP_CORRUPT);
    CHECK_STATUS(read_with(directory + 42, "\1", 1), SP_CORRUPT);
    CHECK_MESSAGE("has no header");
    CHECK_STATUS(read_with(directory + 42, "\xff\xff\xff\x7f", 4), SP_CORRUPT);
    for (size_t len = 0; len < sizeof archive; len++) {
        uint8_t *cut = malloc(len + 1);
        memcpy(cut, archive, len);
        CHECK_STATUS(read_all(cut, len), SP_CORRUPT);
        free(cut);
    }
}

TEST(the_checksum_is_that_of_zip)
{
    CHECK_EQ_U64(sp__crc32("123456789", 9), 0xcbf43926);
    CHECK_EQ_U64(sp__crc32(NULL, 0), 0);
}

TEST_MAIN
