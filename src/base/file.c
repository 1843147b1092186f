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

sp_status sp_file_read(const char *path, void **bytes, size_t *len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return sp__fail(SP_IO, "cannot open %s: %s", path, strerror(errno));
    const sp_status status = read_open(file, path, bytes, len);
    fclose(file);
    return status;
}

sp_status sp_file_write(const char *path, const void *bytes, size_t len)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return sp__fail(SP_IO, "cannot create %s: %s", path, strerror(errno));
    const size_t written = fwrite(bytes, 1, len, file);
    if (fclose(file) != 0 || written != len) {
        return sp__fail(SP_IO, "cannot write %s: %s", path, strerror(errno));
    }
    return SP_OK;
}
