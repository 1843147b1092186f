/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of test data as inputs and outputs of runs. */
#ifndef SP_TESTS_SUPPORT_TENSORS_H
#define SP_TESTS_SUPPORT_TENSORS_H

#include <streampool/model.h>

#include "tensor/array.h"

/* Reads a file: a NumPy array if the name ends in .npy, otherwise one ONNX TensorProto. The array
 * is freed with sp__array_deinit. */
sp_status tensor_read(const char *path, sp_array *out);

/* The array as an input or output; borrows its data. */
sp_host_tensor tensor_of(const sp_array *array, const char *name);

/* Allocates an array for an output that sp_model_infer has described. */
sp_status tensor_room(const sp_host_tensor *output, sp_array *out);

#endif
