/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto, ONNX's form of one array: inside of models, and as a file of its own. */
#ifndef SP_IO_ONNX_TENSOR_H
#define SP_IO_ONNX_TENSOR_H

#include <stdint.h>

#include <streampool/status.h>

#include "base/text.h"
#include "tensor/array.h"

/* How a TensorProto holds its values. */
typedef enum sp_onnx_storage {
    SP_ONNX_RAW,     /* raw_data: little-endian elements */
    SP_ONNX_TYPED,   /* one of float_data, int32_data, int64_data, double_data, uint64_data */
    SP_ONNX_NONE,    /* no values at all: a tensor with a 0 in its shape */
    SP_ONNX_EXTERNAL /* bytes of another file, beside this one: initializers only */
} sp_onnx_storage;

typedef struct sp_onnx_tensor {
    sp_text name;
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes; /* of all values in memory; checked against what the file holds */
    sp_onnx_storage storage;
    sp_text content; /* raw: the values; typed: the whole TensorProto; external: the file's name */
    uint64_t offset; /* external: where in it */
    uint32_t field;  /* typed: number of the field with the values */
} sp_onnx_tensor;

/* Writes the tensor's values, `tensor->bytes` of them, to `out`. Not for external ones. */
sp_status sp__onnx_tensor_decode(const sp_onnx_tensor *tensor, void *out);

/* Reads a file that is one TensorProto, as test data is. The caller owns *out. */
sp_status sp__onnx_tensor_load(const void *bytes, size_t len, sp_array *out);

/* Writes such a file into memory that the caller frees with sp_free. */
sp_status sp__onnx_tensor_save(const sp_array_view *array, const char *name, void **bytes,
                               size_t *len);

#endif
