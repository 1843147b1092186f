/* SPDX-License-Identifier: Apache-2.0 */
#include "test_data.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "failure.h"
#include "tensors.h"

bool path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

bool path_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

void path_join(char out[PATH_BYTES], const char *folder, const char *name)
{
    snprintf(out, PATH_BYTES, "%s/%s", folder, name);
}

void name_numbered(char out[NUMBERED_BYTES], const char *pattern, unsigned number)
{
    const size_t prefix = strcspn(pattern, "%");
    snprintf(out, NUMBERED_BYTES, "%.*s%u%s", (int)prefix, pattern, number, pattern + prefix + 2);
}

/* Whether `name` matches `pattern`, which has one %u, with a number. */
static bool has_number(const char *name, const char *pattern, unsigned *number)
{
    char again[NUMBERED_BYTES];
    const size_t prefix = strcspn(pattern, "%");
    if (strncmp(name, pattern, prefix) != 0) return false;
    *number = (unsigned)strtoul(name + prefix, NULL, 10);
    name_numbered(again, pattern, *number);
    return strcmp(name, again) == 0;
}

sp_status number_find(const char *folder, const char *pattern, unsigned from, unsigned *least)
{
    *least = UINT32_MAX;
    DIR *entries = opendir(folder);
    if (entries == NULL) return fail(SP_IO, "cannot read the folder");
    unsigned number;
    const struct dirent *entry;
    /* The directory stream is local to this thread. */
    while ((entry = readdir(entries)) != NULL) { /* NOLINT(concurrency-mt-unsafe) */
        const bool is_found = has_number(entry->d_name, pattern, &number) && number >= from;
        if (is_found && number < *least) *least = number;
    }
    closedir(entries);
    return SP_OK;
}

sp_status number_check_last(const char *folder, const char *pattern, unsigned count)
{
    unsigned least;
    TRY(number_find(folder, pattern, count + 1, &least));
    if (least == UINT32_MAX) return SP_OK;
    char name[NUMBERED_BYTES];
    char missing[NUMBERED_BYTES];
    name_numbered(name, pattern, least);
    name_numbered(missing, pattern, count);
    return fail(SP_IO, "%s exists but %s does not", name, missing);
}

static sp_status tensors_add(const char *path, tensor_list *out)
{
    sp_host_tensor *grown = realloc(out->list, (out->count + (size_t)1) * sizeof *grown);
    if (grown == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a test set");
    out->list = grown;
    TRY(tensor_read(path, &grown[out->count]));
    out->count++;
    return SP_OK;
}

sp_status tensors_read(const char *folder, const char *pattern, tensor_list *out)
{
    for (;;) {
        char name[NUMBERED_BYTES];
        char path[PATH_BYTES];
        name_numbered(name, pattern, out->count);
        path_join(path, folder, name);
        if (!path_exists(path)) return number_check_last(folder, pattern, out->count);
        TRY(tensors_add(path, out));
    }
}

void tensors_free(tensor_list *tensors)
{
    for (uint32_t i = 0; i < tensors->count; i++) tensor_free(&tensors->list[i]);
    free(tensors->list);
    *tensors = (tensor_list){0};
}
