/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in ONNX's files of one TensorProto each (.pb), as ONNX's test data has them. All dtypes.
 * Errors of all: SP_IO naming the file; SP_CORRUPT, SP_UNSUPPORTED saying what and where in it. */
#ifndef STREAMPOOL_TENSOR_PROTO_H
#define STREAMPOOL_TENSOR_PROTO_H

#include <stddef.h>

#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

/* The array of a file as a new, contiguous tensor of `device`. Values in other files (external
 * data) are SP_UNSUPPORTED. Further errors: those of sp_tensor_from_host. */
SP_API sp_status sp_tensor_proto_read(sp_device device, const char *path, sp_tensor *out);

/* The same from the bytes of a file, which are not needed afterwards. */
SP_API sp_status sp_tensor_proto_read_from_memory(sp_device device, const void *bytes, size_t len,
                                                  sp_tensor *out);

/* Writes a tensor as a TensorProto called `name`, which may be NULL. Waits for the tensor. An old
 * file of that name is replaced by the whole new one, or stays, as with sp_npy_write. */
SP_API sp_status sp_tensor_proto_write(const char *path, const char *name, sp_tensor tensor);

SP_EXTERN_C_END

#endif
