/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of the program: read from files, made up, compared. Those that are returned own their
 * `data`, which is aligned for every type and not NULL, and end with tensor_free. */
#ifndef SP_CLI_TENSORS_H
#define SP_CLI_TENSORS_H

#include <streampool/model.h>

/* Frees the data; a zeroed tensor is fine. */
void tensor_free(sp_host_tensor *tensor);

/* Reads a file: .npy is an array of NumPy, any other name one ONNX TensorProto. */
sp_status tensor_read(const char *path, sp_host_tensor *out);

/* Can a file of that name be written, by its ending: .npy or .pb? Else SP_INVALID. */
sp_status tensor_check_name(const char *path);

/* Writes a file as its name says. `name` is the tensor's. */
sp_status tensor_write(const char *path, const char *name, const sp_host_tensor *tensor);

/* Room for an output that sp_model_infer has described: type, shape and size, no name. */
sp_status tensor_room(const sp_host_tensor *output, sp_host_tensor *out);

/* Bytes of the elements: SP_EXHAUSTED above 2^40, as in the library. */
sp_status tensor_bytes(sp_dtype dtype, uint32_t rank, const int64_t *shape, uint64_t *out);

/* What tensor_make gives, without data. */
sp_status tensor_describe(const sp_port *port, sp_host_tensor *out);

/* A tensor of the port's type with some values: free dimensions are 1. The same each time. */
sp_status tensor_make(const sp_port *port, sp_host_tensor *out);

/* How far apart two tensors may be: |got - want| <= absolute + relative * |want|. Integers must be
 * equal, NaN equals NaN. */
typedef struct tensor_tolerance {
    double absolute;
    double relative;
} tensor_tolerance;

typedef struct tensor_difference {
    double largest;     /* |got - want| */
    uint64_t bad_count; /* elements outside of the tolerance */
    uint64_t first_bad;
    double got, want; /* of the first bad one */
} tensor_difference;

/* SP_MISMATCH if dtype or shape differ. */
sp_status tensor_compare(const sp_host_tensor *got, const sp_host_tensor *want,
                         tensor_tolerance tolerance, tensor_difference *out);

#endif
