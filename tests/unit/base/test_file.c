/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files and folders. */
#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/heap.h"
#include "base/macros.h"
#include "support/test.h"

/* A scratch folder and the path of one file in it. */
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

TEST(the_folder_of_a_file_is_what_stands_before_its_name)
{
    const char *const cases[][2] = {
        {"a/b/c.onnx", "a/b"}, {"/c.onnx", "/"}, {"c.onnx", "."}, {"a/", "a"}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        char *folder = sp_file_folder(cases[i][0]);
        REQUIRE(folder != NULL);
        CHECK_EQ_STR(folder, cases[i][1]);
        sp_free(folder);
    }
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
    CHECK_MESSAGE("not a regular file");
    CHECK_STATUS(sp_file_write(s.folder, "x", 1), SP_IO);
    CHECK_MESSAGE("cannot create");
    CHECK(bytes == NULL);
    scratch_close(&s);
}

/* The number of files in the folder, without "." and "..". */
static uint32_t count_files(const char *folder)
{
    uint32_t count = 0;
    DIR *dir = opendir(folder);
    if (dir == NULL) return 0;
    while (readdir(dir) != NULL) count++; /* NOLINT(concurrency-mt-unsafe): a stream of our own */
    closedir(dir);
    return count - 2;
}

TEST(a_replaced_file_is_whole_and_nothing_is_left_beside_it)
{
    const scratch s = scratch_open();
    CHECK_OK(sp_file_replace(s.file, "long text", 9));
    CHECK_OK(sp_file_replace(s.file, "text", 4));
    void *bytes = NULL;
    size_t len = 0;
    REQUIRE_OK(sp_file_read(s.file, &bytes, &len));
    CHECK_EQ_U64(len, 4);
    CHECK_EQ_MEM(bytes, "text", 4);
    sp_free(bytes);
    CHECK_EQ_U64(count_files(s.folder), 1);
    scratch_close(&s);
}

TEST(a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it)
{
    const scratch s = scratch_open();
    char inside[128];
    snprintf(inside, sizeof inside, "%s/no_such_folder/file", s.folder);
    CHECK_STATUS(sp_file_replace(inside, "x", 1), SP_IO);
    CHECK_MESSAGE("cannot create");
    /* A folder cannot be replaced by a file. */
    REQUIRE_OK(sp_folder_create(s.file));
    CHECK_STATUS(sp_file_replace(s.file, "x", 1), SP_IO);
    CHECK_MESSAGE("cannot replace");
    CHECK_EQ_U64(count_files(s.folder), 1);
    CHECK_EQ_INT(rmdir(s.file), 0);
    CHECK_OK(sp_file_replace(s.file, "old", 3));
    sp_heap_fail_after(0);
    CHECK_STATUS(sp_file_replace(s.file, "new", 3), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
    void *bytes = NULL;
    size_t len = 0;
    REQUIRE_OK(sp_file_read(s.file, &bytes, &len));
    CHECK_EQ_MEM(bytes, "old", 3);
    sp_free(bytes);
    scratch_close(&s);
}

static unsigned mode_of(const char *path)
{
    struct stat info = {0};
    CHECK_EQ_INT(stat(path, &info), 0);
    return info.st_mode & 07777;
}

TEST(a_new_file_has_the_mode_of_the_umask_and_a_replaced_one_keeps_its_own)
{
    const scratch s = scratch_open();
    const mode_t before = umask(027);
    CHECK_OK(sp_file_replace(s.file, "new", 3));
    umask(before);
    CHECK_EQ_INT(mode_of(s.file), 0640);
    REQUIRE_EQ_INT(chmod(s.file, 0604), 0);
    CHECK_OK(sp_file_replace(s.file, "newer", 5));
    CHECK_EQ_INT(mode_of(s.file), 0604);
    scratch_close(&s);
}

TEST(a_symbolic_link_stays_and_its_target_is_replaced)
{
    const scratch s = scratch_open();
    char link[128], folder[128], target[192];
    struct stat info;
    snprintf(link, sizeof link, "%s/link", s.folder);
    snprintf(folder, sizeof folder, "%s/inner", s.folder);
    snprintf(target, sizeof target, "%s/target", folder);
    REQUIRE_OK(sp_folder_create(folder));
    REQUIRE_EQ_INT(symlink("inner/target", s.file), 0); /* relative, to a missing target */
    REQUIRE_EQ_INT(symlink(s.file, link), 0);
    for (size_t len = 1; len < 3; len++) {
        CHECK_OK(sp_file_replace(link, "xyz", len));
        REQUIRE_EQ_INT(stat(target, &info), 0);
        CHECK_EQ_INT(info.st_size, (int64_t)len);
    }
    REQUIRE_EQ_INT(lstat(link, &info), 0);
    CHECK(S_ISLNK(info.st_mode));
    CHECK_EQ_U64(count_files(folder), 1);
    CHECK_EQ_INT(unlink(link), 0);
    CHECK_EQ_INT(unlink(target), 0);
    CHECK_EQ_INT(rmdir(folder), 0);
    scratch_close(&s);
}

TEST(a_cycle_of_links_is_an_error_and_a_device_is_written_to)
{
    const scratch s = scratch_open();
    REQUIRE_EQ_INT(symlink(s.file, s.file), 0);
    CHECK_STATUS(sp_file_replace(s.file, "x", 1), SP_IO);
    CHECK_MESSAGE("symbolic links");
    REQUIRE_EQ_INT(unlink(s.file), 0);
    REQUIRE_EQ_INT(symlink("/dev/null", s.file), 0);
    CHECK_OK(sp_file_replace(s.file, "x", 1));
    struct stat info;
    REQUIRE_EQ_INT(stat("/dev/null", &info), 0);
    CHECK(S_ISCHR(info.st_mode));
    scratch_close(&s);
}

static void replace_or_read(void *arg, uint32_t index)
{
    const scratch *s = arg;
    char text[3000];
    memset(text, 'a' + (int)index, sizeof text);
    for (int i = 0; i < 50; i++) {
        CHECK_OK(sp_file_replace(s->file, text, 1 + (size_t)index * 700));
        char *bytes = NULL;
        size_t len = 0;
        REQUIRE_OK(sp_file_read(s->file, (void **)&bytes, &len));
        CHECK_EQ_U64(len, 1 + (size_t)(bytes[0] - 'a') * 700);
        for (size_t k = 1; k < len; k++) REQUIRE(bytes[k] == bytes[0]);
        sp_free(bytes);
    }
}

TEST(readers_of_a_replaced_file_see_one_of_its_contents)
{
    scratch s = scratch_open();
    test_threads(4, replace_or_read, &s);
    CHECK_EQ_U64(count_files(s.folder), 1);
    scratch_close(&s);
}

TEST(folders_are_made_with_those_above_them)
{
    const scratch s = scratch_open();
    char inner[128];
    snprintf(inner, sizeof inner, "%s/inner", s.file);
    CHECK_OK(sp_folder_create(inner));
    CHECK_OK(sp_folder_create(inner)); /* it exists already */
    struct stat info;
    REQUIRE_EQ_INT(stat(inner, &info), 0);
    CHECK_EQ_INT(info.st_mode & 0777, 0700);
    CHECK_EQ_INT(rmdir(inner), 0);
    CHECK_EQ_INT(rmdir(s.file), 0);
    CHECK_OK(sp_file_write(s.file, "x", 1));
    CHECK_STATUS(sp_folder_create(s.file), SP_IO);
    CHECK_MESSAGE("File exists");
    CHECK_STATUS(sp_folder_create(inner), SP_IO);
    CHECK_MESSAGE(s.file);
    sp_heap_fail_after(0);
    CHECK_STATUS(sp_folder_create(s.folder), SP_OUT_OF_MEMORY);
    sp_heap_fail_after(UINT64_MAX);
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
    /* Files of /proc are regular and report a size of 0. */
    void *bytes = NULL;
    size_t len = 99;
    CHECK_STATUS(sp_file_read("/proc/self/stat", &bytes, &len), SP_IO);
    CHECK_MESSAGE("changed while it was read");
    CHECK(bytes == NULL);
}

TEST_MAIN
