/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the outputs of a run are written to. */
#ifndef SP_CLI_OUTPUTS_H
#define SP_CLI_OUTPUTS_H

#include <streampool/model.h>

#include "arguments.h"

typedef struct output_file {
    uint32_t index;    /* of the output */
    bool is_in_folder; /* its ending follows from the type */
    char *path; /* several outputs may be in one .npz archive, no other path is there twice */
} output_file;

typedef struct output_files {
    output_file *list;
    uint32_t count;
} output_files;

/* Finds the files by --output (NAME=FILE, or FILE.npz for all) and --output-dir, which is made if
 * it is not there. Writes nothing else, so that wrong names are known before the run. Ends with
 * output_files_close, also after a failure. */
sp_status output_files_open(sp_model model, const text_list *texts, const char *folder,
                            output_files *out);

/* `tensors` are all outputs of the model. */
sp_status output_files_write(sp_model model, const output_files *files,
                             const sp_host_tensor *tensors);

void output_files_close(output_files *files);

#endif
