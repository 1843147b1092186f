/* SPDX-License-Identifier: Apache-2.0 */
/* Reading files of one TensorProto into tensors, and writing them. */
#include <streampool/tensor_proto.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "io/onnx_tensor.h"
#include "io/tensor_file.h"
#include "runtime/runtime_state.h"

sp_status sp_tensor_proto_read_from_memory(sp_device device, const void *bytes, size_t len,
                                           sp_tensor *out)
{
    return sp__tensor_load_bytes(device, bytes, len, sp__onnx_tensor_load, out);
}

sp_status sp_tensor_proto_read(sp_device device, const char *path, sp_tensor *out)
{
    return sp__tensor_load_file(device, path, sp__onnx_tensor_load, out);
}

/* A whole file in memory. */
static sp_status bytes_of_tensor(sp_tensor tensor, const char *name, void **bytes, size_t *len)
{
    sp_array array;
    SP_TRY(sp__tensor_to_array(tensor, &array));
    const sp_array_view view = {.dtype = array.dtype, .shape = array.shape, .data = array.data};
    const sp_status status = sp__onnx_tensor_save(&view, name != NULL ? name : "", bytes, len);
    sp__array_deinit(&array);
    return status;
}

sp_status sp_tensor_proto_write(const char *path, const char *name, sp_tensor tensor)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__runtime_enter());
    if (path == NULL) return sp__fail(SP_INVALID, "sp_tensor_proto_write: path is NULL");
    SP_TRY(bytes_of_tensor(tensor, name, &bytes, &len));
    const sp_status status = sp_file_replace(path, bytes, len);
    sp_free(bytes);
    return status;
}
