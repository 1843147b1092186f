/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tensors.h"

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "io/npy.h"
#include "io/onnx_tensor.h"

static bool ends_in(const char *path, const char *ending)
{
    const size_t len = strlen(path), ending_len = strlen(ending);
    return len >= ending_len && strcmp(path + len - ending_len, ending) == 0;
}

sp_status tensor_read(const char *path, sp_array *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = ends_in(path, ".npy") ? sp__npy_load(bytes, len, out)
                                                   : sp__onnx_tensor_load(bytes, len, out);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_host_tensor tensor_of(const sp_array *array, const char *name)
{
    sp_host_tensor tensor = {.name = name,
                             .data = array->data,
                             .bytes = array->bytes,
                             .capacity = array->bytes,
                             .dtype = array->dtype,
                             .rank = array->shape.rank};
    memcpy(tensor.shape, array->shape.dims, sizeof tensor.shape);
    return tensor;
}

sp_status tensor_room(const sp_host_tensor *output, sp_array *out)
{
    sp_shape shape;
    SP_TRY(sp__shape_make(output->shape, output->rank, &shape));
    return sp__array_init(out, output->dtype, &shape);
}
