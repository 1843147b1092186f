/* SPDX-License-Identifier: Apache-2.0 */
/* Files of ONNX's test data: a set is a folder with one TensorProto per file, input_J.pb and
 * output_J.pb, numbered from 0 in the order of the model's inputs and outputs. */
#ifndef SP_CLI_TEST_DATA_H
#define SP_CLI_TEST_DATA_H

#include <stdbool.h>

#include <streampool/model.h>

#define PATH_BYTES 4096
void path_join(char out[PATH_BYTES], const char *folder, const char *name);
bool path_exists(const char *path);
bool path_is_folder(const char *path);

/* Patterns of numbered names have one %u. */
#define NUMBERED_BYTES 64
void name_numbered(char out[NUMBERED_BYTES], const char *pattern, unsigned number);

/* The least number of a name in the folder that is not below `from`; UINT32_MAX: there is none. */
sp_status number_find(const char *folder, const char *pattern, unsigned from, unsigned *least);

/* Names are numbered from 0 on, and number `count` does not exist: SP_IO if a higher number does,
 * which would not be read. */
sp_status number_check_last(const char *folder, const char *pattern, unsigned count);

typedef struct tensor_list {
    sp_host_tensor *list;
    uint32_t count;
} tensor_list;

/* The tensors of the files that match the pattern, none if there is no number 0. The list is valid
 * after a failure too; end with tensors_free. */
sp_status tensors_read(const char *folder, const char *pattern, tensor_list *out);
void tensors_free(tensor_list *tensors);

#endif
