/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the outputs of a run to files. */
#ifndef SP_CLI_OUTPUTS_H
#define SP_CLI_OUTPUTS_H

#include <streampool/model.h>

#include "arguments.h"

typedef struct output_file {
    uint32_t index;    /* of the model's output */
    bool is_in_folder; /* the file ending depends on the tensor's type */
    char *path;        /* outputs may share one .npz archive; any other path is unique */
} output_file;

typedef struct output_files {
    output_file *list;
    uint32_t count;
} output_files;

/* Resolves --output (NAME=FILE, or FILE.npz for all) and --output-dir, and creates the folder if it
 * does not exist. Writes no files, so that wrong names are reported before the run. End with
 * output_files_close, also after a failure. */
sp_status output_files_open(sp_model model, const text_list *texts, const char *folder,
                            output_files *out);

/* `tensors`: all outputs of the model, in its order. */
sp_status output_files_write(sp_model model, const output_files *files,
                             const sp_host_tensor *tensors);

void output_files_close(output_files *files);

#endif
