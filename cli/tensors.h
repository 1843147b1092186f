/* SPDX-License-Identifier: Apache-2.0 */
/* The program's tensors: read from files, generated, compared. Returned tensors own their `data`,
 * which is aligned for every type and not NULL; free them with tensor_free. */
#ifndef SP_CLI_TENSORS_H
#define SP_CLI_TENSORS_H

#include <streampool/model.h>

/* Frees the data; accepts a zeroed tensor. */
void tensor_free(sp_host_tensor *tensor);

/* Reads a file: a NumPy array if the name ends in .npy, otherwise one ONNX TensorProto. */
sp_status tensor_read(const char *path, sp_host_tensor *out);

/* The same; from a .npz archive it reads the array called `name`. The path "-" is standard input,
 * which must be a .npy file or a TensorProto. */
sp_status tensor_read_named(const char *path, const char *name, sp_host_tensor *out);

/* Whether the ending of the path is one of WRITABLE_FILES. */
#define WRITABLE_FILES ".npy, .npz or .pb"
bool tensor_is_writable(const char *path);

/* Writes a .npy file or a TensorProto, by the path's ending. `name` is the tensor's. */
sp_status tensor_write(const char *path, const char *name, const sp_host_tensor *tensor);

/* Writes a .npz archive. */
sp_status tensors_write(const char *path, const char *const *names, const sp_host_tensor *tensors,
                        uint32_t count);

/* Bytes of the elements: SP_EXHAUSTED above 2^40, as in the library. */
sp_status tensor_bytes(sp_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *out);

/* Allocates data for a described tensor, for shape-determining inputs: 1 if floating (a scale that
 * changes nothing), else 0. */
sp_status tensor_make_neutral(sp_host_tensor *tensor);

/* The same with generated values: floating-point ones in [-1, 1), others 0. Deterministic in the
 * seed. */
sp_status tensor_make_up(sp_host_tensor *tensor, uint64_t seed);

/* The allowed difference of two tensors: |got - want| <= absolute + relative * |want|. Integers
 * must be equal; NaN equals NaN. */
typedef struct tensor_tolerance {
    double absolute;
    double relative;
} tensor_tolerance;

typedef struct tensor_difference {
    double largest;     /* |got - want| */
    uint64_t bad_count; /* elements outside of the tolerance */
    uint64_t first_bad;
    double got, want; /* of first_bad */
} tensor_difference;

/* SP_MISMATCH if dtype or shape differ. */
sp_status tensor_compare(const sp_host_tensor *got, const sp_host_tensor *want,
                         tensor_tolerance tolerance, tensor_difference *out);

#endif
