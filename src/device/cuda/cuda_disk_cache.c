/* SPDX-License-Identifier: Apache-2.0 */
/* One file per image: a header with a checksum, and the image. */
#include "device/cuda/cuda_disk_cache.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/option.h"

#define PATH_BYTES 1024

typedef struct image_header {
    char magic[8];
    uint64_t bytes; /* of the image */
    uint64_t hash;
} image_header;

static const char magic_bytes[8] = "SPIMAGE1";

/* FNV-1a. */
static uint64_t image_hash(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool text_fits(int length, size_t room)
{
    return length > 0 && (size_t)length < room;
}

/* False if there is no folder for this user, or its name is too long. */
static bool cache_folder(char *out, size_t room)
{
    const char *named = sp_option_text(SP_OPTION_CACHE_DIR);
    if (named[0] != '\0') return text_fits(snprintf(out, room, "%s", named), room);
    const char *cache = getenv("XDG_CACHE_HOME"); /* NOLINT(concurrency-mt-unsafe): see option.c */
    /* The XDG specification requires that relative paths are ignored. */
    if (cache != NULL && cache[0] == '/') {
        return text_fits(snprintf(out, room, "%s/streampool", cache), room);
    }
    const char *home = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe): see option.c */
    if (home == NULL || home[0] != '/') return false;
    return text_fits(snprintf(out, room, "%s/.cache/streampool", home), room);
}

static bool cache_path(const sp_cuda_image_key *key, char *folder, char *path)
{
    if (!cache_folder(folder, PATH_BYTES)) {
        SP_LOG(SP_LOG_DEBUG, "compiled kernels are not cached: no cache folder");
        return false;
    }
    const uint64_t hash = image_hash(key->source, strlen(key->source));
    return text_fits(snprintf(path, PATH_BYTES, "%s/%s-%s-nvrtc%d.%d-%016" PRIx64 ".cubin", folder,
                              key->name, key->architecture, key->compiler.major,
                              key->compiler.minor, hash),
                     PATH_BYTES);
}

/* The image of a file with a valid header, moved to the start of the buffer; otherwise NULL, and
 * the buffer is freed. */
static void *image_unwrap(unsigned char *file, size_t file_bytes, size_t *image_bytes)
{
    image_header header;
    if (file_bytes > sizeof header) {
        memcpy(&header, file, sizeof header);
        const size_t bytes = file_bytes - sizeof header;
        if (memcmp(header.magic, magic_bytes, sizeof magic_bytes) == 0 && header.bytes == bytes &&
            header.hash == image_hash(file + sizeof header, bytes)) {
            memmove(file, file + sizeof header, bytes);
            *image_bytes = bytes;
            return file;
        }
    }
    sp_free(file);
    return NULL;
}

bool sp__cuda_disk_cache_read(const sp_cuda_image_key *key, void **image, size_t *image_bytes)
{
    char folder[PATH_BYTES];
    char path[PATH_BYTES];
    if (!cache_path(key, folder, path)) return false;
    void *file = NULL;
    size_t file_bytes = 0;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = sp_file_read(path, &file, &file_bytes);
    if (status != SP_OK) SP_LOG(SP_LOG_DEBUG, "compiling '%s': %s", key->name, sp_last_error());
    sp__error_put_back(&scope);
    if (status != SP_OK) return false;
    *image = image_unwrap(file, file_bytes, image_bytes);
    if (*image == NULL) SP_LOG(SP_LOG_DEBUG, "%s is damaged; compiling again", path);
    return *image != NULL;
}

static sp_status image_write(const sp_cuda_image_key *key, const char *folder, const char *path,
                             const void *image, size_t image_bytes)
{
    image_header header = {.bytes = image_bytes, .hash = image_hash(image, image_bytes)};
    memcpy(header.magic, magic_bytes, sizeof magic_bytes);
    unsigned char *file = sp_malloc(sizeof header + image_bytes);
    if (file == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to write '%s'", key->name);
    memcpy(file, &header, sizeof header);
    memcpy(file + sizeof header, image, image_bytes);
    sp_status status = sp_folder_create(folder);
    if (status == SP_OK) status = sp_file_replace(path, file, sizeof header + image_bytes);
    sp_free(file);
    return status;
}

void sp__cuda_disk_cache_write(const sp_cuda_image_key *key, const void *image, size_t image_bytes)
{
    char folder[PATH_BYTES];
    char path[PATH_BYTES];
    if (!cache_path(key, folder, path)) return;
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    if (image_write(key, folder, path, image, image_bytes) != SP_OK) {
        SP_LOG(SP_LOG_DEBUG, "compiled kernels are not cached: %s", sp_last_error());
    }
    sp__error_put_back(&scope);
}
