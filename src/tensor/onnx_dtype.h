/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX's numbers of element types (TensorProto.DataType), as in files and attributes. */
#ifndef SP_TENSOR_ONNX_DTYPE_H
#define SP_TENSOR_ONNX_DTYPE_H

#include <stdint.h>

#include <streampool/dtype.h>
#include <streampool/status.h>

/* The element type of a number. Errors: SP_UNSUPPORTED, SP_CORRUPT for no type. */
sp_status sp__onnx_dtype(int64_t data_type, sp_dtype *out);
/* The inverse. */
int64_t sp__onnx_data_type(sp_dtype dtype);

#endif
