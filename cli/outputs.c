/* SPDX-License-Identifier: Apache-2.0 */
#include "outputs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "failure.h"
#include "inputs.h"
#include "tensors.h"
#include "text.h"

/* ---- which files ---- */

static sp_status check_file(const output_files *files, uint32_t index, const char *path)
{
    if (!tensor_is_writable(path)) {
        return fail(SP_INVALID, "%s: the name of an output's file must end in " WRITABLE_FILES,
                    path);
    }
    for (uint32_t i = 0; i < files->count; i++) {
        const output_file *file = &files->list[i];
        if (strcmp(file->path, path) != 0) continue;
        if (text_ends_in(path, ".npz") && file->index != index) continue;
        return fail(SP_INVALID, "%s would be written twice", path);
    }
    return SP_OK;
}

static sp_status add_file(output_files *files, uint32_t index, const char *path, bool is_in_folder)
{
    TRY(check_file(files, index, path));
    output_file *grown = realloc(files->list, (files->count + (size_t)1) * sizeof *grown);
    if (grown == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    files->list = grown;
    char *copy = strdup(path);
    if (copy == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for the path %s", path);
    grown[files->count++] = (output_file){index, is_in_folder, copy};
    return SP_OK;
}

static sp_status output_count(sp_model model, uint32_t *out)
{
    sp_model_info info;
    CALL(sp_model_get_info(model, &info));
    *out = info.output_count;
    return SP_OK;
}

static sp_status add_argument(sp_model model, const char *text, output_files *out)
{
    uint32_t index = 0, count;
    const char *path = "";
    const sp_status status =
        port_split(model, sp_model_find_output, "--output", text, &index, &path);
    if (status == SP_OK) return add_file(out, index, path, false);
    /* The path of an archive may contain '='; it must then be written ./NAME=FILE.npz, since
     * NAME=FILE.npz names an output. */
    const bool is_archive = status == SP_NOT_FOUND && text_ends_in(text, ".npz");
    const char *equals = strchr(text, '=');
    const char *slash = strchr(text, '/');
    if (!is_archive || (equals != NULL && (slash == NULL || slash > equals))) return status;
    TRY(output_count(model, &count));
    for (index = 0; index < count; index++) TRY(add_file(out, index, text, false));
    return SP_OK;
}

/* FOLDER/NAME.npy. Characters that a file name cannot contain become '_'. */
static sp_status add_in_folder(sp_model model, const char *folder, uint32_t index,
                               output_files *out)
{
    sp_port port;
    CALL(sp_model_get_output(model, index, &port));
    const size_t bytes = strlen(folder) + strlen(port.name) + sizeof "/.npy";
    char *path = malloc(bytes);
    if (path == NULL) return fail(SP_OUT_OF_MEMORY, "no memory for a path in %s", folder);
    snprintf(path, bytes, "%s/%s.npy", folder, port.name);
    for (char *c = path + strlen(folder) + 1; *c != '\0'; c++) {
        if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f) *c = '_';
    }
    const sp_status status = add_file(out, index, path, true);
    free(path);
    return status == SP_OK ? SP_OK : fail_prefix(status, "--output-dir: ");
}

static sp_status add_folder(sp_model model, const char *folder, output_files *out)
{
    struct stat info;
    uint32_t count;
    const int error = mkdir(folder, 0777) == 0 ? 0 : errno;
    if (error != 0 && (stat(folder, &info) != 0 || !S_ISDIR(info.st_mode))) {
        return fail(SP_IO, "--output-dir: cannot create %s: %s", folder, show_error(error).text);
    }
    TRY(output_count(model, &count));
    for (uint32_t i = 0; i < count; i++) TRY(add_in_folder(model, folder, i, out));
    return SP_OK;
}

sp_status output_files_open(sp_model model, const text_list *texts, const char *folder,
                            output_files *out)
{
    *out = (output_files){0};
    for (uint32_t i = 0; i < texts->count; i++) TRY(add_argument(model, texts->texts[i], out));
    return folder != NULL ? add_folder(model, folder, out) : SP_OK;
}

void output_files_close(output_files *files)
{
    for (uint32_t i = 0; i < files->count; i++) free(files->list[i].path);
    free(files->list);
    *files = (output_files){0};
}

/* ---- writing ---- */

/* Writes the archive of file `first` with all its outputs, unless an earlier file has the same
 * archive. */
static sp_status write_archive(sp_model model, const output_files *files, uint32_t first,
                               const sp_host_tensor *tensors, const char **names,
                               sp_host_tensor *members)
{
    const char *path = files->list[first].path;
    uint32_t count = 0;
    for (uint32_t i = 0; i < files->count; i++) {
        const output_file *file = &files->list[i];
        sp_port port;
        if (strcmp(file->path, path) != 0) continue;
        if (i < first) return SP_OK; /* already written */
        CALL(sp_model_get_output(model, file->index, &port));
        names[count] = port.name;
        members[count++] = tensors[file->index];
    }
    return tensors_write(path, names, members, count);
}

/* In a folder, bf16, which NumPy does not have, is written as a TensorProto. */
static sp_status write_file(sp_model model, const output_file *file, const sp_host_tensor *tensors)
{
    const sp_host_tensor *tensor = &tensors[file->index];
    sp_port port;
    CALL(sp_model_get_output(model, file->index, &port));
    if (file->is_in_folder && tensor->dtype == SP_BF16) {
        memcpy(file->path + strlen(file->path) - strlen(".npy"), ".pb", sizeof ".pb");
    }
    return tensor_write(file->path, port.name, tensor);
}

sp_status output_files_write(sp_model model, const output_files *files,
                             const sp_host_tensor *tensors)
{
    const char **names = calloc((size_t)files->count + 1, sizeof *names);
    sp_host_tensor *members = calloc((size_t)files->count + 1, sizeof *members);
    sp_status status = SP_OK;
    if (names == NULL || members == NULL) {
        free(names);
        free(members);
        return fail(SP_OUT_OF_MEMORY, "no memory for %u files", files->count);
    }
    for (uint32_t i = 0; i < files->count && status == SP_OK; i++) {
        const output_file *file = &files->list[i];
        status = text_ends_in(file->path, ".npz")
                     ? write_archive(model, files, i, tensors, names, members)
                     : write_file(model, file, tensors);
    }
    free(names);
    free(members);
    return status;
}
