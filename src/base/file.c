/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files through stdio. */
#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
    FILE *file = fopen(path, "rb");
    if (file == NULL) return fail_with_reason("open", path);
    const sp_status status = read_open(file, path, bytes, len);
    fclose(file);
    return status;
}

sp_status sp_file_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return fail_with_reason("create", path);
    const size_t written = fwrite(bytes, 1, len, file);
    if (fclose(file) != 0 || written != len) {
        return fail_with_reason("write", path);
    }
    return SP_OK;
}
