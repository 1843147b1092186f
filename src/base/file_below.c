/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file_below.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"

static sp_status name_refuse(const char *name, const char *why)
{
    return sp__fail(SP_CORRUPT, "file '%s' is refused: %s", name, why);
}

/* `folder` NULL: the name is its own. */
static sp_status name_fail_open(const char *folder, const char *name)
{
    if (errno == ELOOP) return name_refuse(name, "symbolic links are not followed");
    char text[128];
    const int code = errno;
    sp__fail(SP_IO, "cannot open file '%s': %s", name, strerror_r(code, text, sizeof text));
    return sp__fail_add_file(SP_IO, folder, name, code);
}

/* Opens one part below `at`, which is closed. */
static sp_status part_open(const char *folder, const char *name, int at, const char *part,
                           int flags, int *out)
{
    if (part[0] == '\0' || strcmp(part, ".") == 0 || strcmp(part, "..") == 0) {
        close(at);
        return name_refuse(name, "its path leaves the folder, or has empty parts");
    }
    /* Non-blocking: the open of a pipe without a writer must not wait. */
    *out = openat(at, part, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
    const sp_status status = *out < 0 ? name_fail_open(folder, name) : SP_OK;
    close(at);
    return status;
}

static sp_status name_open(const char *folder, const char *name, int *out)
{
    char parts[SP_FILE_BELOW_BYTES];
    const size_t len = strlen(name);
    if (len >= sizeof parts) return name_refuse("...", "its path is too long");
    memcpy(parts, name, len + 1);
    int at = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (at < 0) return name_fail_open(NULL, folder);
    char *part = parts;
    for (char *end; (end = strchr(part, '/')) != NULL; part = end + 1) {
        *end = '\0';
        SP_TRY(part_open(folder, name, at, part, O_DIRECTORY, &at));
    }
    return part_open(folder, name, at, part, 0, out);
}

static sp_status file_size(int file, const char *name, uint64_t *bytes)
{
    struct stat info;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        return name_refuse(name, "it is not a regular file");
    }
    *bytes = (uint64_t)info.st_size;
    return SP_OK;
}

sp_status sp_file_size_below(const char *folder, const char *name, uint64_t *bytes)
{
    int file;
    const int state = sp_cancel_defer();
    sp_status status = name_open(folder, name, &file);
    if (status == SP_OK) {
        status = file_size(file, name, bytes);
        close(file);
    }
    sp_cancel_restore(state);
    return status;
}

static sp_status file_read_range(int file, const char *name, uint64_t offset, char *out, size_t len)
{
    uint64_t bytes;
    SP_TRY(file_size(file, name, &bytes));
    if (!sp_size_in_range(offset, len, bytes)) {
        return sp__fail(SP_CORRUPT, "file '%s' has %llu bytes, bytes %llu + %llu are wanted", name,
                        (unsigned long long)bytes, (unsigned long long)offset,
                        (unsigned long long)len);
    }
    for (size_t done = 0; done < len;) {
        const ssize_t got = pread(file, out + done, len - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return sp__fail(SP_IO, "cannot read file '%s', or it changed", name);
        done += (size_t)got;
    }
    return SP_OK;
}

sp_status sp_file_read_below(const char *folder, const char *name, uint64_t offset, void *out,
                             size_t len)
{
    int file;
    const int state = sp_cancel_defer();
    sp_status status = name_open(folder, name, &file);
    if (status == SP_OK) {
        status = file_read_range(file, name, offset, out, len);
        close(file);
    }
    sp_cancel_restore(state);
    return status;
}
