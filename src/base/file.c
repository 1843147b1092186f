/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files through stdio, and a little of POSIX. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/heap.h"

static sp_status read_open(FILE *file, const char *path, void **bytes, size_t *len)
{
    struct stat info;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        return sp__fail(SP_IO, "%s is no regular file", path);
    }
    const size_t size = (size_t)info.st_size;
    char *buffer = sp_malloc(size);
    if (buffer == NULL)
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the %zu bytes of %s", size, path);
    /* One byte more than there should be tells whether the file has grown. */
    char more;
    if (fread(buffer, 1, size, file) != size || fread(&more, 1, 1, file) != 0) {
        sp_free(buffer);
        return sp__fail(SP_IO, "%s changed while it was read", path);
    }
    *bytes = buffer;
    *len = size;
    return SP_OK;
}

/* What the system said about the call that has just failed. */
static sp_status fail_with_reason(const char *what, const char *path)
{
    char text[128];
    return sp__fail(SP_IO, "cannot %s %s: %s", what, path, strerror_r(errno, text, sizeof text));
}

sp_status sp_file_read(const char *path, void **bytes, size_t *len)
{
    const int state = sp_cancel_defer();
    FILE *file = fopen(path, "rb");
    const sp_status status =
        file != NULL ? read_open(file, path, bytes, len) : fail_with_reason("open", path);
    if (file != NULL) fclose(file);
    sp_cancel_restore(state);
    return status;
}

static sp_status write_open(FILE *file, const char *path, const void *bytes, size_t len)
{
    const size_t written = fwrite(bytes, 1, len, file);
    if (fclose(file) != 0 || written != len) return fail_with_reason("write", path);
    return SP_OK;
}

sp_status sp_file_write(const char *path, const void *bytes, size_t len)
{
    const int state = sp_cancel_defer();
    FILE *file = fopen(path, "wb");
    const sp_status status =
        file != NULL ? write_open(file, path, bytes, len) : fail_with_reason("create", path);
    sp_cancel_restore(state);
    return status;
}

/* `beside` is a template for mkostemp. */
static sp_status replace_through(char *beside, const char *path, const void *bytes, size_t len)
{
    const int descriptor = mkostemp(beside, O_CLOEXEC);
    if (descriptor < 0) return fail_with_reason("create", beside);
    FILE *file = fdopen(descriptor, "wb");
    if (file == NULL) {
        const sp_status status = fail_with_reason("create", beside);
        close(descriptor);
        unlink(beside);
        return status;
    }
    sp_status status = write_open(file, beside, bytes, len);
    if (status == SP_OK && rename(beside, path) != 0) status = fail_with_reason("replace", path);
    if (status != SP_OK) unlink(beside);
    return status;
}

sp_status sp_file_replace(const char *path, const void *bytes, size_t len)
{
    static const char suffix[] = ".XXXXXX";
    const size_t path_bytes = strlen(path);
    char *beside = sp_malloc(path_bytes + sizeof suffix);
    if (beside == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    memcpy(beside, path, path_bytes);
    memcpy(beside + path_bytes, suffix, sizeof suffix);
    const int state = sp_cancel_defer();
    const sp_status status = replace_through(beside, path, bytes, len);
    sp_cancel_restore(state);
    sp_free(beside);
    return status;
}

static sp_status create_one(const char *path)
{
    if (mkdir(path, 0700) == 0) return SP_OK;
    const int error = errno;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return SP_OK;
    errno = error;
    return fail_with_reason("create the folder", path);
}

char *sp_file_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) return sp_strdup(".");
    char *folder = sp_strdup(path);
    if (folder != NULL) folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

sp_status sp_folder_create(const char *path)
{
    char *part = sp_strdup(path);
    if (part == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    sp_status status = SP_OK;
    for (char *at = part; status == SP_OK && *at != '\0'; at++) {
        if (*at != '/' || at == part) continue;
        *at = '\0';
        status = create_one(part);
        *at = '/';
    }
    if (status == SP_OK) status = create_one(part);
    sp_free(part);
    return status;
}
