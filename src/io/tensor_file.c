/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tensor_file.h"

#include "base/error.h"
#include "base/file.h"
#include "base/heap.h"
#include "runtime/runtime_state.h"
#include "tensor/tensor.h"

static sp_status output_begin(sp_tensor *out)
{
    if (out == NULL)
        return sp__fail(SP_INVALID, "out is NULL: pass a pointer for the handle of the new tensor");
    *out = (sp_tensor){0};
    return sp__runtime_enter();
}

sp_status sp__tensor_file_begin(const char *path, sp_tensor *out)
{
    SP_TRY(output_begin(out));
    return path != NULL ? SP_OK : sp__fail(SP_INVALID, "path is NULL: pass the path of a file");
}

sp_status sp__tensor_load(sp_device device, const void *bytes, size_t len, sp_array_loader load,
                          sp_tensor *out)
{
    sp_array array;
    SP_TRY(load(bytes, len, &array));
    const sp_status status = sp_tensor_from_host(device, array.dtype, array.shape.rank,
                                                 array.shape.dims, array.data, array.bytes, out);
    sp__array_deinit(&array);
    return status;
}

sp_status sp__tensor_load_bytes(sp_device device, const void *bytes, size_t len,
                                sp_array_loader load, sp_tensor *out)
{
    SP_TRY(output_begin(out));
    if (bytes == NULL) return sp__fail(SP_INVALID, "bytes is NULL: pass the bytes of a file");
    if (len > PTRDIFF_MAX) return sp__fail(SP_INVALID, "len is %zu, more than PTRDIFF_MAX", len);
    return sp__tensor_load(device, bytes, len, load, out);
}

sp_status sp__tensor_load_file(sp_device device, const char *path, sp_array_loader load,
                               sp_tensor *out)
{
    void *bytes;
    size_t len;
    SP_TRY(sp__tensor_file_begin(path, out));
    SP_TRY(sp_file_read(path, &bytes, &len));
    const sp_status status = sp__tensor_load(device, bytes, len, load, out);
    sp_free(bytes);
    return status == SP_OK ? SP_OK : sp__fail_prefix(status, "%s: ", path);
}

sp_status sp__tensor_to_array(sp_tensor handle, sp_array *out)
{
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    sp_status status = sp__array_init(out, tensor->layout.dtype, &tensor->layout.shape);
    if (status == SP_OK) {
        status = sp_tensor_read(handle, out->data, out->bytes);
        if (status != SP_OK) sp__array_deinit(out);
    }
    sp__tensor_drop(tensor);
    return status;
}
