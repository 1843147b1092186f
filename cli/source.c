/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "failure.h"
#include "text.h"

bool is_standard_input(const char *path)
{
    return strcmp(path, "-") == 0;
}

sp_status standard_input_read(void **bytes, size_t *len)
{
    size_t capacity = (size_t)1 << 16, used = 0;
    char *buffer = malloc(capacity);
    while (buffer != NULL) {
        const ssize_t count = read(STDIN_FILENO, buffer + used, capacity - used);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            const int error = errno;
            free(buffer);
            return fail(SP_IO, "cannot read " STANDARD_INPUT ": %s", show_error(error).text);
        }
        if (count == 0) {
            *bytes = buffer;
            *len = used;
            return SP_OK;
        }
        used += (size_t)count;
        if (used < capacity) continue;
        char *grown = realloc(buffer, 2 * capacity);
        if (grown == NULL) free(buffer);
        buffer = grown;
        capacity *= 2;
    }
    return fail(SP_OUT_OF_MEMORY, "no memory for %zu bytes of " STANDARD_INPUT, capacity);
}

sp_status source_open(const char *path, model_source *out)
{
    *out = (model_source){.path = path, .name = path};
    if (!is_standard_input(path)) return SP_OK;
    out->name = STANDARD_INPUT;
    return standard_input_read(&out->bytes, &out->len);
}

void source_close(model_source *source)
{
    free(source->bytes);
    *source = (model_source){0};
}

/* The library's messages already name a path. */
static sp_status prefix_with_name(const model_source *source, sp_status status)
{
    if (status == SP_OK || source->bytes == NULL) return status;
    return fail_prefix(status, "%s: ", source->name);
}

sp_status source_load(const model_source *source, const sp_model_options *options, sp_model *out)
{
    return prefix_with_name(source, from_library(source->bytes != NULL
                                                     ? sp_model_load_from_memory(
                                                           source->bytes, source->len, options, out)
                                                     : sp_model_load(source->path, options, out)));
}

sp_status source_open_file(const model_source *source, sp_model_file *out)
{
    return prefix_with_name(
        source, from_library(source->bytes != NULL
                                 ? sp_model_file_open_memory(source->bytes, source->len, out)
                                 : sp_model_file_open(source->path, out)));
}
