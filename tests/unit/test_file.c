/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#include "base/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "support/test.h"

/* A scratch folder with room for one file name behind it. */
typedef struct scratch {
    char folder[64];
    char file[96];
} scratch;

static scratch scratch_open(void)
{
    scratch s = {.folder = "/tmp/streampool-test-XXXXXX"};
    if (mkdtemp(s.folder) == NULL) abort();
    snprintf(s.file, sizeof s.file, "%s/file", s.folder);
    return s;
}

static void scratch_close(const scratch *s)
{
    unlink(s->file);
    CHECK_EQ_INT(rmdir(s->folder), 0);
}

TEST(what_was_written_is_read)
{
    const scratch s = scratch_open();
    unsigned char bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7);
    for (size_t len = 0; len <= sizeof bytes; len += 1500) {
        CHECK_OK(sp_file_write(s.file, bytes, len));
        void *read = NULL;
        size_t read_len = 99;
        REQUIRE_OK(sp_file_read(s.file, &read, &read_len));
        CHECK_EQ_U64(read_len, len);
        CHECK_EQ_MEM(read, bytes, len);
        sp_free(read);
    }
    scratch_close(&s);
}

TEST(a_missing_file_and_a_folder_are_errors_that_name_the_path)
{
    const scratch s = scratch_open();
    void *bytes = NULL;
    size_t len = 99;
    CHECK_STATUS(sp_file_read(s.file, &bytes, &len), SP_IO);
    CHECK_MESSAGE(s.file);
    CHECK_MESSAGE("No such file");
    CHECK_STATUS(sp_file_read(s.folder, &bytes, &len), SP_IO);
    CHECK_MESSAGE("no regular file");
    CHECK_STATUS(sp_file_write(s.folder, "x", 1), SP_IO);
    CHECK_MESSAGE("cannot create");
    CHECK(bytes == NULL);
    scratch_close(&s);
}

TEST(a_full_disk_is_an_error)
{
    if (access("/dev/full", W_OK) != 0) SKIP("there is no /dev/full");
    CHECK_STATUS(sp_file_write("/dev/full", "some text", 9), SP_IO);
    CHECK_MESSAGE("cannot write /dev/full: No space left");
}

TEST(a_file_without_memory_for_it_is_an_error)
{
    const scratch s = scratch_open();
    CHECK_OK(sp_file_write(s.file, "text", 4));
    void *bytes = NULL;
    size_t len = 99;
    sp_heap_fail_after(0);
    CHECK_STATUS(sp_file_read(s.file, &bytes, &len), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    CHECK(bytes == NULL);
    scratch_close(&s);
}

TEST(a_file_that_says_less_than_it_holds_is_an_error)
{
    /* Files of /proc are regular and say that they are empty. */
    void *bytes = NULL;
    size_t len = 99;
    CHECK_STATUS(sp_file_read("/proc/self/stat", &bytes, &len), SP_IO);
    CHECK_MESSAGE("changed while it was read");
    CHECK(bytes == NULL);
}

TEST_MAIN
