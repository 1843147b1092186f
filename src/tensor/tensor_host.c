/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between tensors and the host's memory. */
#include "tensor/tensor.h"

#include <inttypes.h>

#include "base/error.h"
#include "runtime/checker.h"
#include "runtime/host_access.h"
#include "tensor/strided_copy.h"

static sp_status check_host_memory(const sp_rt_tensor *tensor, const void *data, uint64_t bytes)
{
    const uint64_t wanted = sp__layout_bytes(&tensor->layout);
    if (bytes != wanted) {
        return sp__fail(SP_MISMATCH,
                        "%" PRIu64 " bytes of host memory for a %s tensor of shape %s, which has "
                        "%" PRIu64,
                        bytes, sp_dtype_name(tensor->layout.dtype),
                        sp__shape_print(&tensor->layout.shape).text, wanted);
    }
    if (data == NULL && bytes > 0)
        return sp__fail(SP_INVALID, "data is NULL: pass host memory for the elements");
    return SP_OK;
}

static sp_status tensor_read_held(const sp_rt_tensor *tensor, void *data, uint64_t bytes,
                                  const void *call_site)
{
    SP_TRY(check_host_memory(tensor, data, bytes));
    if (bytes == 0) return SP_OK;
    sp_layout host;
    sp_strided_copy copy;
    sp_own_access access;
    SP_TRY(sp__layout_init_contiguous(&host, tensor->layout.dtype, &tensor->layout.shape));
    sp__strided_copy_plan(&host, &tensor->layout, &copy);
    SP_TRY(sp__host_begin_own(sp__tensor_range(tensor), SP_READ, call_site, &access));
    sp__strided_copy_on_host(&copy, data, access.data);
    return sp__host_end_own(&access);
}

static sp_status tensor_write_held(const sp_rt_tensor *tensor, const void *data, uint64_t bytes,
                                   const void *call_site)
{
    SP_TRY(check_host_memory(tensor, data, bytes));
    SP_TRY(sp__tensor_check_writable(tensor));
    if (bytes == 0) return SP_OK;
    sp_layout host;
    sp_strided_copy copy;
    sp_own_access access;
    SP_TRY(sp__layout_init_contiguous(&host, tensor->layout.dtype, &tensor->layout.shape));
    sp__strided_copy_plan(&tensor->layout, &host, &copy);
    /* No two elements share a byte, so that many bytes are all of the range. */
    const sp_access kind = bytes == sp__tensor_range(tensor).bytes ? SP_WRITE : SP_READ_WRITE;
    SP_TRY(sp__host_begin_own(sp__tensor_range(tensor), kind, call_site, &access));
    sp__strided_copy_on_host(&copy, access.data, data);
    return sp__host_end_own(&access);
}

sp_status sp_tensor_read(sp_tensor handle, void *data, uint64_t bytes)
{
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    const sp_status status = tensor_read_held(tensor, data, bytes, SP_CALL_SITE);
    sp__tensor_drop(tensor);
    return status;
}

sp_status sp_tensor_write(sp_tensor handle, const void *data, uint64_t bytes)
{
    sp_rt_tensor *tensor;
    SP_TRY(sp__tensor_find(handle, &tensor));
    const sp_status status = tensor_write_held(tensor, data, bytes, SP_CALL_SITE);
    sp__tensor_drop(tensor);
    return status;
}
