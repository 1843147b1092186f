/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a TensorProto file: an error, or an array of the size of its shape. */
#include <stdlib.h>

#include "fuzz.h"
#include "io/onnx_tensor.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sp_array array;
    uint64_t bytes;
    if (sp__onnx_tensor_load(data, size, &array) != SP_OK) return 0;
    if (sp__shape_bytes(&array.shape, array.dtype, &bytes) != SP_OK) abort();
    if (bytes != array.bytes || bytes > 8 * (uint64_t)size) abort();
    sp__array_deinit(&array);
    return 0;
}
