/* SPDX-License-Identifier: Apache-2.0 */
/* What another library needs to run the same as a runner: the file, inputs, and expected outputs.
 * It can be written to a file for a process that does not load the model with this library. */
#ifndef SP_CLI_PEER_CASE_H
#define SP_CLI_PEER_CASE_H

#include "runner.h"

/* Zeroed: nothing to free. The tensors have names. */
typedef struct peer_case {
    const char *path; /* of the model; borrowed */
    sp_host_tensor *inputs, *outputs;
    uint32_t input_count, output_count;
    void *mapped; /* of a case that was read: the file's memory; else data and names are borrowed */
    size_t mapped_bytes;
} peer_case;

/* Borrows the tensors of a runner that has had its first run. */
sp_status peer_case_make(const model_runner *runner, const char *path, peer_case *out);
/* `file` is a descriptor of an empty file. Errors: SP_IO, SP_OUT_OF_MEMORY. */
sp_status peer_case_write(const peer_case *self, int file);
sp_status peer_case_read(int file, const char *path, peer_case *out);
void peer_case_free(peer_case *self);

#endif
