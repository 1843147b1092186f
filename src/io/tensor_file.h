/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors and the arrays of files: what the readers of .npy, .npz and TensorProto files share. */
#ifndef SP_IO_TENSOR_FILE_H
#define SP_IO_TENSOR_FILE_H

#include <streampool/tensor.h>

#include "tensor/array.h"

/* Argument checks before a file is read; *out is zeroed. Errors: SP_INVALID, those of
 * sp__runtime_enter. */
sp_status sp__tensor_file_begin(const char *path, sp_tensor *out);

/* Reads the array of a file's bytes. */
typedef sp_status (*sp_array_loader)(const void *bytes, size_t len, sp_array *out);

/* A tensor of `device` with the elements of the array that `load` reads. Errors: those of `load`
 * and of sp_tensor_from_host. */
sp_status sp__tensor_load(sp_device device, const void *bytes, size_t len, sp_array_loader load,
                          sp_tensor *out);
/* The same with the checks of arguments: SP_INVALID also for NULL bytes, or a length above
 * PTRDIFF_MAX. */
sp_status sp__tensor_load_bytes(sp_device device, const void *bytes, size_t len,
                                sp_array_loader load, sp_tensor *out);
/* The same for a file, which errors name. Errors: those of sp_file_read too. */
sp_status sp__tensor_load_file(sp_device device, const char *path, sp_array_loader load,
                               sp_tensor *out);

/* The elements of a tensor; waits for it. Freed with sp__array_deinit. Errors: those of
 * sp_tensor_read, SP_OUT_OF_MEMORY. */
sp_status sp__tensor_to_array(sp_tensor handle, sp_array *out);

#endif
