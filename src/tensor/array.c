/* SPDX-License-Identifier: Apache-2.0 */
/* Host arrays. */
#include "tensor/array.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "base/size.h"

sp_status sp__array_init(sp_array *out, sp_dtype dtype, const sp_shape *shape)
{
    *out = (sp_array){.dtype = dtype, .shape = *shape};
    SP_TRY(sp__shape_bytes(shape, dtype, &out->bytes));
    uint64_t rounded;
    if (!sp_size_align(out->bytes == 0 ? 1 : out->bytes, SP_ARRAY_ALIGNMENT, &rounded) ||
        rounded > SIZE_MAX) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for %" PRIu64 " bytes", out->bytes);
    }
    out->data = sp_aligned_malloc(SP_ARRAY_ALIGNMENT, (size_t)rounded);
    if (!out->data) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for an array of %" PRIu64 " bytes",
                        out->bytes);
    }
    memset(out->data, 0, (size_t)rounded);
    return SP_OK;
}

void sp__array_deinit(sp_array *array)
{
    sp_free(array->data);
    *array = (sp_array){0};
}

int64_t sp__array_view_int(const sp_array_view *view, uint64_t index)
{
    if (view->dtype == SP_I32) return ((const int32_t *)view->data)[index];
    return ((const int64_t *)view->data)[index];
}
