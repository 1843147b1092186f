/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of the program: read from files, made up, compared. */
#ifndef SP_CLI_TENSORS_H
#define SP_CLI_TENSORS_H

#include <streampool/model.h>

#include "tensor/array.h"

/* Reads a file: .npy is an array of NumPy, any other name one ONNX TensorProto. The array is freed
 * with sp__array_deinit. */
sp_status tensor_read(const char *path, sp_array *out);

/* Can a file of that name be written, by its ending: .npy or .pb? Else SP_INVALID. */
sp_status tensor_check_name(const char *path);

/* Writes a file as its name says. `name` is the tensor's. */
sp_status tensor_write(const char *path, const char *name, const sp_array *array);

/* The array as an input or output; borrows its data. */
sp_host_tensor tensor_of(const sp_array *array, const char *name);

/* Room for an output that sp_model_infer has described. */
sp_status tensor_room(const sp_host_tensor *output, sp_array *out);

/* What tensor_make gives, without data. */
sp_status tensor_describe(const sp_port *port, sp_host_tensor *out);

/* An array of the port's type with some values: free dimensions are 1. The same each time. */
sp_status tensor_make(const sp_port *port, sp_array *out);

/* How far apart two arrays may be: |got - want| <= absolute + relative * |want|. Integers must be
 * equal, NaN equals NaN. */
typedef struct sp_tolerance {
    double absolute;
    double relative;
} sp_tolerance;

typedef struct sp_difference {
    double largest;     /* |got - want| */
    uint64_t bad_count; /* elements outside of the tolerance */
    uint64_t first_bad;
    double got, want; /* of the first bad one */
} sp_difference;

/* False, with the reason as last error, if dtype or shape differ. */
bool tensor_compare(const sp_array *got, const sp_array *want, sp_tolerance tolerance,
                    sp_difference *out);

#endif
