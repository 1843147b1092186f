/* SPDX-License-Identifier: Apache-2.0 */
/* A model's file, or standard input for the path "-". Standard input is read once and kept in
 * memory. */
#ifndef SP_CLI_SOURCE_H
#define SP_CLI_SOURCE_H

#include <streampool/model.h>
#include <streampool/model_file.h>

typedef struct model_source {
    const char *path;
    const char *name; /* for messages: the path, or "standard input" */
    void *bytes;      /* of standard input */
    size_t len;
} model_source;

/* End with source_close, also after a failure. */
sp_status source_open(const char *path, model_source *out);
void source_close(model_source *source);

/* As sp_model_load and sp_model_file_open; messages are prefixed with the name. */
sp_status source_load(const model_source *source, const sp_model_options *options, sp_model *out);
sp_status source_open_file(const model_source *source, sp_model_file *out);

#define STANDARD_INPUT "standard input"
bool is_standard_input(const char *path);

/* All of standard input, in memory that the caller frees. SP_IO, SP_OUT_OF_MEMORY. */
sp_status standard_input_read(void **bytes, size_t *len);

#endif
