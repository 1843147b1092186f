/* SPDX-License-Identifier: Apache-2.0 */
/* Models with external initializer data, and invalid external files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/file_below.h"
#include "base/heap.h"
#include "run_fixture.h"
#include "support/onnx_writer.h"

#define PATH_ROOM 256
#define WEIGHTS 12

/* A scratch folder that contains a folder "data". */
typedef struct scratch {
    char folder[64];
} scratch;

static scratch scratch_open(void)
{
    scratch s = {.folder = "/tmp/streampool-test-XXXXXX"};
    char data[PATH_ROOM];
    if (mkdtemp(s.folder) == NULL) abort();
    snprintf(data, sizeof data, "%s/data", s.folder);
    if (mkdir(data, 0700) != 0) abort();
    return s;
}

static void path_in(const scratch *s, const char *name, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%s", s->folder, name);
}

/* Removes it with all files that the tests may have created. */
static void scratch_close(const scratch *s)
{
    static const char *const names[] = {"model.onnx", "weights", "link", "pipe", "data/weights"};
    char path[PATH_ROOM];
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        path_in(s, names[i], path);
        unlink(path);
    }
    path_in(s, "data", path);
    CHECK_EQ_INT(rmdir(path), 0);
    CHECK_EQ_INT(rmdir(s->folder), 0);
}

static void put(const scratch *s, const char *name, const void *bytes, size_t len)
{
    char path[PATH_ROOM];
    path_in(s, name, path);
    CHECK_OK(sp_file_write(path, bytes, len));
}

/* ---- a model: y [n, 3] = x [n, 4] * w ---- */

static void add_entry(writer *tensor, const char *key, const char *value)
{
    writer entry = {0};
    if (value == NULL) return;
    write_text(&entry, 1, key);
    write_text(&entry, 2, value);
    write_message(tensor, 13, &entry);
}

static writer make_file(const char *location, const char *offset, const char *length)
{
    static const int64_t x_dims[2] = {-1, 4};
    static const int64_t y_dims[2] = {-1, 3};
    writer graph = {0};
    writer node = make_node("MatMul", "x w", "y");
    write_message(&graph, GRAPH_NODE_FIELD, &node);
    writer weight = {0};
    write_int(&weight, 1, 4);
    write_int(&weight, 1, 3);
    write_int(&weight, 2, 1);
    write_text(&weight, 8, "w");
    write_int(&weight, 14, 1);
    add_entry(&weight, "location", location);
    add_entry(&weight, "offset", offset);
    add_entry(&weight, "length", length);
    add_entry(&weight, "checksum", "not looked at");
    write_message(&graph, GRAPH_INITIALIZER_FIELD, &weight);
    writer part = make_value("x", 1, x_dims, 2);
    write_message(&graph, GRAPH_INPUT_FIELD, &part);
    part = make_value("y", 1, y_dims, 2);
    write_message(&graph, GRAPH_OUTPUT_FIELD, &part);
    return make_model(&graph, 13);
}

static sp_status load(const scratch *s, const char *location, const char *offset,
                      const char *length, sp_model *out)
{
    char path[PATH_ROOM];
    writer file = make_file(location, offset, length);
    put(s, "model.onnx", file.bytes, file.len);
    writer_free(&file);
    path_in(s, "model.onnx", path);
    return sp_model_load(path, NULL, out);
}

static void put_weights(const scratch *s, const char *name, size_t ahead)
{
    unsigned char bytes[256] = {0};
    for (int i = 0; i < WEIGHTS; i++) {
        const float weight = (float)(i + 1);
        memcpy(bytes + ahead + (size_t)i * sizeof weight, &weight, sizeof weight);
    }
    put(s, name, bytes, ahead + WEIGHTS * sizeof(float));
}

/* x is the second unit vector, so y is the second row of w. */
static void check_runs(sp_model model)
{
    static const float x[4] = {0, 1, 0, 0};
    float y[3];
    const sp_host_tensor in = {.data = (void *)(uintptr_t)x,
                               .bytes = sizeof x,
                               .dtype = SP_F32,
                               .rank = 2,
                               .shape = {1, 4}};
    sp_host_tensor out = {.data = y, .capacity = sizeof y};
    CHECK_OK(sp_model_run(model, &in, 1, &out, 1));
    for (int i = 0; i < 3; i++) CHECK(y[i] == (float)(4 + i));
    CHECK_OK(sp_model_release(model));
}

TEST(data_beside_the_model_is_read)
{
    const scratch s = scratch_open();
    sp_model model;
    put_weights(&s, "weights", 0);
    REQUIRE_OK(load(&s, "weights", NULL, NULL, &model));
    check_runs(model);
    put_weights(&s, "data/weights", 64);
    REQUIRE_OK(load(&s, "data/weights", "64", "48", &model));
    check_runs(model);
    scratch_close(&s);
}

/* The load fails with this message. */
static void check_refused(const scratch *s, const char *location, const char *offset,
                          const char *length, sp_status want, const char *part)
{
    sp_model model;
    CHECK_STATUS(load(s, location, offset, length, &model), want);
    CHECK_MESSAGE(part);
    CHECK_MESSAGE("tensor 'w'");
}

TEST(data_outside_of_the_folder_is_not_read)
{
    const scratch s = scratch_open();
    char path[PATH_ROOM];
    char target[PATH_ROOM];
    put_weights(&s, "weights", 0);
    path_in(&s, "weights", path);
    check_refused(&s, path, NULL, NULL, SP_CORRUPT, "leaves the folder");
    check_refused(&s, "../weights", NULL, NULL, SP_CORRUPT, "leaves the folder");
    check_refused(&s, "data/../weights", NULL, NULL, SP_CORRUPT, "leaves the folder");
    check_refused(&s, "./weights", NULL, NULL, SP_CORRUPT, "leaves the folder");
    check_refused(&s, "data//weights", NULL, NULL, SP_CORRUPT, "leaves the folder");
    check_refused(&s, "weights/", NULL, NULL, SP_IO, "cannot open");
    path_in(&s, "link", path);
    snprintf(target, sizeof target, "weights");
    CHECK_EQ_INT(symlink(target, path), 0);
    check_refused(&s, "link", NULL, NULL, SP_CORRUPT, "symbolic links are not followed");
    scratch_close(&s);
}

TEST(what_is_no_regular_file_is_not_read)
{
    const scratch s = scratch_open();
    char path[PATH_ROOM];
    path_in(&s, "pipe", path);
    CHECK_EQ_INT(mkfifo(path, 0600), 0);
    check_refused(&s, "pipe", NULL, NULL, SP_CORRUPT, "not a regular file"); /* without blocking */
    check_refused(&s, "data", NULL, NULL, SP_CORRUPT, "not a regular file");
    check_refused(&s, "nowhere", NULL, NULL, SP_IO, "nowhere");
    scratch_close(&s);
}

TEST(data_that_does_not_fit_is_refused)
{
    const scratch s = scratch_open();
    put_weights(&s, "weights", 0);
    check_refused(&s, "weights", "1", NULL, SP_CORRUPT, "has 48 bytes, bytes 1 + 48 are wanted");
    check_refused(&s, "weights", "999999999999999999", NULL, SP_CORRUPT, "has 48 bytes");
    check_refused(&s, "weights", "0", "44", SP_CORRUPT, "44 bytes of external data, wanted 48");
    check_refused(&s, "weights", "-1", NULL, SP_CORRUPT, "the offset of its external data");
    check_refused(&s, "weights", "1e3", NULL, SP_CORRUPT, "not a number");
    check_refused(&s, "weights", "9999999999999999999", NULL, SP_CORRUPT, "not a number");
    check_refused(&s, "weights", "", NULL, SP_CORRUPT, "not a number");
    check_refused(&s, NULL, NULL, NULL, SP_CORRUPT, "no file name");
    char name[SP_FILE_BELOW_BYTES + 1];
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    check_refused(&s, name, NULL, NULL, SP_CORRUPT, "no file name, or one of 1024 bytes");
    scratch_close(&s);
}

TEST(a_model_in_memory_has_no_files_beside_it)
{
    writer file = make_file("weights", NULL, NULL);
    sp_model model;
    CHECK_STATUS(sp_model_load_from_memory(file.bytes, file.len, NULL, &model), SP_INVALID);
    CHECK_MESSAGE("load the model by its path");
    writer_free(&file);
}

TEST(every_allocation_of_a_load_can_fail)
{
    const scratch s = scratch_open();
    sp_model model;
    put_weights(&s, "weights", 0);
    uint64_t failures = 0;
    for (;; failures++) {
        sp_heap_fail_after(failures);
        const sp_status status = load(&s, "weights", NULL, NULL, &model);
        sp_heap_fail_after(UINT64_MAX);
        if (status == SP_OK) break;
        CHECK_STATUS(status, SP_OUT_OF_MEMORY);
    }
    CHECK(failures > 5);
    check_runs(model);
    scratch_close(&s);
}

TEST_MAIN
