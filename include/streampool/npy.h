/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors in NumPy's files: .npy, one array, and .npz, a zip archive of them. All dtypes but bf16,
 * which NumPy does not have (SP_UNSUPPORTED: view it as u16). Errors of all: SP_IO, with the file's
 * name; SP_CORRUPT, SP_UNSUPPORTED, with the place in the file. */
#ifndef STREAMPOOL_NPY_H
#define STREAMPOOL_NPY_H

#include <stddef.h>

#include <streampool/tensor.h>

SP_EXTERN_C_BEGIN

/* The array of a .npy file, in any element and byte order, as a new, contiguous tensor of `device`.
 * Objects, structs, text and complex numbers are SP_UNSUPPORTED. Further errors: those of
 * sp_tensor_from_host. */
SP_API sp_status sp_npy_read(sp_device device, const char *path, sp_tensor *out);

/* The same from the bytes of a .npy file, which are borrowed for the call. */
SP_API sp_status sp_npy_read_from_memory(sp_device device, const void *bytes, size_t len,
                                         sp_tensor *out);

/* Writes a tensor as a .npy file. Waits for the tensor. An existing file is replaced atomically; on
 * failure it is unchanged. Symbolic links are followed; a new file's mode follows the umask, a
 * replaced file keeps its mode. */
SP_API sp_status sp_npy_write(const char *path, sp_tensor tensor);

/* Receives the name of an array of a .npz file; it is valid during the call. */
typedef void (*sp_npz_visitor)(void *ctx, const char *name);

/* Calls `visit` for each array of a .npz file, in the file's order. */
SP_API sp_status sp_npz_list(const char *path, sp_npz_visitor visit, void *ctx);

/* The array of that name, as sp_npy_read; stored or compressed. SP_NOT_FOUND if there is none. */
SP_API sp_status sp_npz_read(sp_device device, const char *path, const char *name, sp_tensor *out);

/* Writes `count` tensors with their names, not compressed, less than 4 GiB in total. As
 * sp_npy_write; SP_INVALID for a name that is NULL, empty, or duplicate. */
SP_API sp_status sp_npz_write(const char *path, const char *const *names, const sp_tensor *tensors,
                              uint32_t count);

SP_EXTERN_C_END

#endif
