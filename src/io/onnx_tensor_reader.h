/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of messages with a TensorProto use: each function takes a protobuf reader at the
 * start of its message and fills a zeroed table. */
#ifndef SP_IO_ONNX_TENSOR_READER_H
#define SP_IO_ONNX_TENSOR_READER_H

#include "io/onnx_tensor.h"
#include "io/protobuf.h"

sp_status sp__onnx_read_tensor(sp_proto proto, sp_onnx_tensor *out);
/* The same; the values may be external. */
sp_status sp__onnx_read_initializer(sp_proto proto, sp_onnx_tensor *out);
/* Where the values of an external tensor are. The message is one that has such fields. */
sp_status sp__onnx_read_external(sp_proto proto, sp_onnx_tensor *out);

/* Replaces each byte of a bool tensor that is neither 0 nor 1 by 1: other code relies on these
 * two. */
void sp__onnx_clean_bools(const sp_onnx_tensor *tensor, void *data);

/* Fields of a TensorProto that are read and written. */
enum {
    SP_ONNX_TENSOR_DIMS = 1,
    SP_ONNX_TENSOR_DATA_TYPE = 2,
    SP_ONNX_TENSOR_NAME = 8,
    SP_ONNX_TENSOR_RAW_DATA = 9
};

#endif
