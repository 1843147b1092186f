/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files through stdio and POSIX. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/error.h"
#include "base/heap.h"

static sp_status file_read_open(FILE *file, const char *path, void **bytes, size_t *len)
{
    struct stat info = {0};
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) {
        sp__fail(SP_IO, "not a regular file: %s", path);
        return S_ISDIR(info.st_mode) ? sp__fail_add_file(SP_IO, NULL, path, EISDIR) : SP_IO;
    }
    const size_t size = (size_t)info.st_size;
    char *buffer = sp_malloc(size);
    if (buffer == NULL)
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the %zu bytes of %s", size, path);
    /* Reading one byte past the end detects that the file has grown. */
    char more;
    if (fread(buffer, 1, size, file) != size || fread(&more, 1, 1, file) != 0) {
        sp_free(buffer);
        return sp__fail(SP_IO, "%s changed while it was read", path);
    }
    *bytes = buffer;
    *len = size;
    return SP_OK;
}

/* SP_IO with the system's reason for the call that has just failed. */
static sp_status fail_with_errno(const char *what, const char *path)
{
    char text[128];
    const int code = errno;
    sp__fail(SP_IO, "cannot %s %s: %s", what, path, strerror_r(code, text, sizeof text));
    return sp__fail_add_file(SP_IO, NULL, path, code);
}

/* Non-blocking: the open of a pipe without a writer must not wait. That of a file that another
 * program has leased must (fcntl, F_SETLEASE). */
static int file_open(const char *path)
{
    struct stat info;
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor >= 0 || errno != EWOULDBLOCK) return descriptor;
    const bool is_file = stat(path, &info) == 0 && S_ISREG(info.st_mode);
    return is_file ? open(path, O_RDONLY | O_CLOEXEC) : -1;
}

sp_status sp_file_read(const char *path, void **bytes, size_t *len)
{
    const int state = sp_cancel_defer();
    const int descriptor = file_open(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    const sp_status status =
        file != NULL ? file_read_open(file, path, bytes, len) : fail_with_errno("open", path);
    if (file != NULL) fclose(file);
    else if (descriptor >= 0) close(descriptor);
    sp_cancel_restore(state);
    return status;
}

static sp_status file_write_open(FILE *file, const char *path, const void *bytes, size_t len)
{
    const size_t written = fwrite(bytes, 1, len, file);
    if (fclose(file) != 0 || written != len) return fail_with_errno("write", path);
    return SP_OK;
}

sp_status sp_file_write(const char *path, const void *bytes, size_t len)
{
    const int state = sp_cancel_defer();
    FILE *file = fopen(path, "wb");
    const sp_status status =
        file != NULL ? file_write_open(file, path, bytes, len) : fail_with_errno("create", path);
    sp_cancel_restore(state);
    return status;
}

/* ---- replacing ---- */

enum { MOST_LINKS = 40, MOST_ATTEMPTS = 1000, MODE_BITS = 07777, NEW_MODE = 0666 };

/* The target `text` of the symbolic link `path`, relative to the link's folder. NULL without
 * memory. */
static char *link_target(const char *path, const char *text)
{
    const char *slash = strrchr(path, '/');
    if (text[0] == '/' || slash == NULL) return sp_strdup(text);
    const size_t folder_len = (size_t)(slash - path) + 1;
    const size_t text_bytes = strlen(text) + 1;
    char *target = sp_malloc(folder_len + text_bytes);
    if (target == NULL) return NULL;
    memcpy(target, path, folder_len);
    memcpy(target + folder_len, text, text_bytes);
    return target;
}

/* The path with symbolic links followed, whether a file exists there or not. The caller frees it.
 */
static sp_status resolve_links(const char *path, char **out)
{
    char text[PATH_MAX];
    char *at = sp_strdup(path);
    for (int i = 0; at != NULL && i < MOST_LINKS; i++) {
        const ssize_t len = readlink(at, text, sizeof text - 1);
        if (len < 0) { /* no link, or no file */
            *out = at;
            return SP_OK;
        }
        text[len] = '\0';
        char *target = link_target(at, text);
        sp_free(at);
        at = target;
    }
    if (at == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    sp_free(at);
    return sp__fail(SP_IO, "cannot replace %s: more than %d symbolic links", path, MOST_LINKS);
}

/* Creates a file beside `path` and writes its name to `beside`. Its mode follows the umask (mkstemp
 * would make it private). Concurrent replacements of one file use different names. */
static int file_create_beside(const char *path, char *beside, size_t room)
{
    for (unsigned attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
        snprintf(beside, room, "%s.%x-%x", path, (unsigned)getpid(), attempt);
        const int descriptor = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, NEW_MODE);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

/* `old` is the stat of the file that is replaced, whose mode is kept; NULL if there is none. */
static sp_status replace_through(char *beside, size_t room, const char *path,
                                 const struct stat *old, const void *bytes, size_t len)
{
    const int descriptor = file_create_beside(path, beside, room);
    if (descriptor < 0) return fail_with_errno("create a file beside", path);
    FILE *file = NULL;
    if (old == NULL || fchmod(descriptor, old->st_mode & MODE_BITS) == 0) {
        file = fdopen(descriptor, "wb");
    }
    if (file == NULL) {
        const sp_status status = fail_with_errno("create", beside);
        close(descriptor);
        unlink(beside);
        return status;
    }
    sp_status status = file_write_open(file, beside, bytes, len);
    if (status == SP_OK && rename(beside, path) != 0) status = fail_with_errno("replace", path);
    if (status != SP_OK) unlink(beside);
    return status;
}

/* `path` must not be a symbolic link. */
static sp_status replace_target(const char *path, const void *bytes, size_t len)
{
    struct stat old;
    const bool is_there = stat(path, &old) == 0;
    if (is_there && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode)) {
        return sp_file_write(path, bytes, len); /* a device or pipe is written, not replaced */
    }
    const size_t room = strlen(path) + sizeof ".12345678-12345678";
    char *beside = sp_malloc(room);
    if (beside == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    const sp_status status = replace_through(
        beside, room, path, is_there && S_ISREG(old.st_mode) ? &old : NULL, bytes, len);
    sp_free(beside);
    return status;
}

sp_status sp_file_replace(const char *path, const void *bytes, size_t len)
{
    char *target = NULL;
    const int state = sp_cancel_defer();
    sp_status status = resolve_links(path, &target);
    if (status == SP_OK) {
        status = replace_target(target, bytes, len);
        sp_free(target);
    }
    sp_cancel_restore(state);
    return status;
}

static sp_status folder_create_one(const char *path)
{
    if (mkdir(path, 0700) == 0) return SP_OK;
    const int error = errno;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return SP_OK;
    errno = error;
    return fail_with_errno("create the folder", path);
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
        status = folder_create_one(part);
        *at = '/';
    }
    if (status == SP_OK) status = folder_create_one(part);
    sp_free(part);
    return status;
}
