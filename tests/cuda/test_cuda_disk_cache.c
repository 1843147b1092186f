/* SPDX-License-Identifier: Apache-2.0 */
/* The cache of compiled kernels: its path, damaged files, concurrent writers. */
#include "device/cuda/cuda_disk_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"
#include "cache_folder.h"
#include "support/test.h"

static const sp_cuda_image_key key = {
    .name = "planted", .source = "a source", .architecture = "sm_90", .compiler = {13, 7}};

static bool reads(const sp_cuda_image_key *which, const char *expected)
{
    void *image = NULL;
    size_t bytes = 0;
    if (!sp__cuda_disk_cache_read(which, &image, &bytes)) return false;
    CHECK_EQ_U64(bytes, strlen(expected));
    CHECK_EQ_MEM(image, expected, strlen(expected));
    sp_free(image);
    return true;
}

TEST(what_was_written_is_read_and_nothing_else)
{
    cache_folder folder = cache_folder_open();
    CHECK(!reads(&key, ""));
    sp__cuda_disk_cache_write(&key, "an image", 8);
    CHECK(reads(&key, "an image"));
    sp__cuda_disk_cache_write(&key, "another", 7);
    CHECK(reads(&key, "another"));
    CHECK_EQ_U64(cache_folder_find(&folder, folder.path), 1);
    sp_cuda_image_key other = key;
    other.name = "planted2";
    CHECK(!reads(&other, ""));
    other = key;
    other.source = "another source";
    CHECK(!reads(&other, ""));
    other = key;
    other.architecture = "sm_100";
    CHECK(!reads(&other, ""));
    other = key;
    other.compiler.minor = 8;
    CHECK(!reads(&other, ""));
    cache_folder_close(&folder);
}

/* Every single damaged byte, and every length. */
TEST(a_damaged_file_is_not_read_and_is_written_again)
{
    cache_folder folder = cache_folder_open();
    sp__cuda_disk_cache_write(&key, "an image", 8);
    REQUIRE_EQ_U64(cache_folder_find(&folder, folder.path), 1);
    unsigned char *bytes = NULL;
    size_t len = 0;
    REQUIRE_OK(sp_file_read(folder.file, (void **)&bytes, &len));
    for (size_t i = 0; i < len; i++) {
        bytes[i] ^= 0x40;
        CHECK_OK(sp_file_write(folder.file, bytes, len));
        CHECK(!reads(&key, "an image"));
        bytes[i] ^= 0x40;
        CHECK_OK(sp_file_write(folder.file, bytes, i));
        CHECK(!reads(&key, "an image"));
    }
    sp__cuda_disk_cache_write(&key, "an image", 8);
    CHECK(reads(&key, "an image"));
    sp_free(bytes);
    cache_folder_close(&folder);
}

static void keep_message(void *ctx, sp_log_level level, const char *message)
{
    CHECK_EQ_INT(level, SP_LOG_DEBUG);
    snprintf(ctx, SP_LOG_MESSAGE_BYTES, "%s", message);
}

TEST(a_folder_that_cannot_be_made_is_told_to_the_log_and_nobody_else)
{
    char message[SP_LOG_MESSAGE_BYTES] = "";
    setenv("STREAMPOOL_CACHE_DIR", "/proc/no/folder", 1);
    setenv("STREAMPOOL_LOG", "debug", 1);
    sp__option_reset();
    sp__log_reset();
    sp_log_set_callback(keep_message, message);
    CHECK_STATUS(sp__fail(SP_IO, "an error before"), SP_IO);
    sp__cuda_disk_cache_write(&key, "an image", 8);
    CHECK(strstr(message, "not cached: cannot create the folder /proc/no") != NULL);
    CHECK(!reads(&key, ""));
    CHECK(strstr(message, "/proc/no/folder/planted-sm_90-nvrtc13.7-") != NULL);
    CHECK_MESSAGE("an error before");
    unsetenv("STREAMPOOL_LOG");
    sp__log_reset();
    unsetenv("STREAMPOOL_CACHE_DIR");
    sp__option_reset();
}

TEST(without_memory_nothing_is_written_or_read)
{
    cache_folder folder = cache_folder_open();
    sp_heap_fail_after(0);
    sp__cuda_disk_cache_write(&key, "an image", 8);
    sp_heap_fail_after(UINT64_MAX);
    CHECK(!reads(&key, ""));
    sp__cuda_disk_cache_write(&key, "an image", 8);
    sp_heap_fail_after(0);
    CHECK(!reads(&key, ""));
    sp_heap_fail_after(UINT64_MAX);
    CHECK(reads(&key, "an image"));
    cache_folder_close(&folder);
}

TEST(the_user_s_cache_folder_serves_if_none_is_named)
{
    cache_folder folder = cache_folder_open();
    char inner[128];
    setenv("HOME", folder.path, 1);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("STREAMPOOL_CACHE_DIR");
    sp__option_reset();
    sp__cuda_disk_cache_write(&key, "at home", 7);
    snprintf(inner, sizeof inner, "%s/.cache/streampool", folder.path);
    CHECK_EQ_U64(cache_folder_find(&folder, inner), 1);
    setenv("XDG_CACHE_HOME", "relative", 1); /* ignored */
    CHECK(reads(&key, "at home"));
    CHECK_EQ_INT(remove(folder.file), 0);
    CHECK_EQ_INT(rmdir(inner), 0);
    snprintf(inner, sizeof inner, "%s/.cache", folder.path);
    CHECK_EQ_INT(rmdir(inner), 0);

    setenv("XDG_CACHE_HOME", folder.path, 1);
    CHECK(!reads(&key, ""));
    sp__cuda_disk_cache_write(&key, "cached", 6);
    snprintf(inner, sizeof inner, "%s/streampool", folder.path);
    CHECK_EQ_U64(cache_folder_find(&folder, inner), 1);
    CHECK_EQ_INT(remove(folder.file), 0);
    CHECK_EQ_INT(rmdir(inner), 0);

    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    sp__cuda_disk_cache_write(&key, "nowhere", 7);
    CHECK(!reads(&key, ""));
    cache_folder_close(&folder);
}

/* Images of different lengths: a mixture of two would be invalid. */
static void write_and_read(uint32_t index, uint32_t turns)
{
    char image[4000];
    memset(image, 'a' + (int)index, sizeof image);
    for (uint32_t i = 0; i < turns; i++) {
        sp__cuda_disk_cache_write(&key, image, 1 + (size_t)index * 700);
        char *read = NULL;
        size_t bytes = 0;
        REQUIRE(sp__cuda_disk_cache_read(&key, (void **)&read, &bytes));
        CHECK_EQ_U64(bytes, 1 + (size_t)(read[0] - 'a') * 700);
        CHECK(read[bytes - 1] == read[0]);
        sp_free(read);
    }
}

static void write_on_thread(void *arg, uint32_t index)
{
    (void)arg;
    write_and_read(index, 30);
}

TEST(threads_that_write_one_image_at_once_leave_a_whole_one)
{
    cache_folder folder = cache_folder_open();
    test_threads(4, write_on_thread, NULL);
    CHECK_EQ_U64(cache_folder_find(&folder, folder.path), 1);
    cache_folder_close(&folder);
}

TEST(processes_that_write_one_image_at_once_leave_a_whole_one)
{
    enum { PROCESSES = 3 };
    cache_folder folder = cache_folder_open();
    (void)sp_option_text(SP_OPTION_CACHE_DIR); /* read before the fork */
    pid_t children[PROCESSES];
    for (uint32_t i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (children[i] != 0) continue;
        char image[4000];
        memset(image, 'a' + (int)i, sizeof image);
        for (int k = 0; k < 50; k++) {
            sp__cuda_disk_cache_write(&key, image, 1 + (size_t)i * 700);
            void *read = NULL;
            size_t bytes = 0;
            if (!sp__cuda_disk_cache_read(&key, &read, &bytes)) _exit(1);
            sp_free(read);
        }
        _exit(0);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        int status = -1;
        CHECK_EQ_INT(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ_INT(status, 0);
    }
    CHECK_EQ_U64(cache_folder_find(&folder, folder.path), 1);
    write_and_read(0, 1);
    cache_folder_close(&folder);
}

TEST_MAIN
