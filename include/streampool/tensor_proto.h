/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in files of one ONNX TensorProto each (.pb), as in ONNX's test data. All dtypes.
 * Errors of all: SP_IO, with the file's name; SP_CORRUPT, SP_UNSUPPORTED, with the place in the
 * file. */
#ifndef STREAMPOOL_TENSOR_PROTO_H
#define STREAMPOOL_TENSOR_PROTO_H

#include <stddef.h>

#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

/* The array of a file as a new, contiguous tensor of `device`. Values in other files (external
 * data) are SP_UNSUPPORTED. Further errors: those of sp_tensor_from_host. */
SP_API sp_status sp_tensor_proto_read(sp_device device, const char *path, sp_tensor *out);

/* The same from the bytes of a file, which are borrowed for the call. */
SP_API sp_status sp_tensor_proto_read_from_memory(sp_device device, const void *bytes, size_t len,
                                                  sp_tensor *out);

/* Writes a tensor as a TensorProto called `name`, which may be NULL. Waits for the tensor. An
 * existing file is replaced atomically, as by sp_npy_write. */
SP_API sp_status sp_tensor_proto_write(const char *path, const char *name, sp_tensor tensor);

SP_EXTERN_C_END

#endif
