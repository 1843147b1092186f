/* SPDX-License-Identifier: Apache-2.0 */
#include "tensor/onnx_dtype.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"

static const sp_dtype dtypes[] = {
    [1] = SP_F32,  [2] = SP_U8,   [3] = SP_I8,    [4] = SP_U16,  [5] = SP_I16,
    [6] = SP_I32,  [7] = SP_I64,  [9] = SP_BOOL,  [10] = SP_F16, [11] = SP_F64,
    [12] = SP_U32, [13] = SP_U64, [16] = SP_BF16,
};

sp_status sp__onnx_dtype(int64_t data_type, sp_dtype *out)
{
    if (data_type <= 0) {
        return sp__fail(SP_CORRUPT, "malformed file: a tensor has no element type (%" PRId64 ")",
                        data_type);
    }
    if (data_type >= (int64_t)SP_COUNT_OF(dtypes) || dtypes[data_type] == SP_DTYPE_NONE) {
        return sp__fail(SP_UNSUPPORTED, "element type %" PRId64 " of ONNX (%s) is not supported",
                        data_type,
                        data_type == 8    ? "string"
                        : data_type <= 15 ? "complex"
                                          : "small float");
    }
    *out = dtypes[data_type];
    return SP_OK;
}

int64_t sp__onnx_data_type(sp_dtype dtype)
{
    for (uint32_t i = 1; i < SP_COUNT_OF(dtypes); i++) {
        if (dtypes[i] == dtype) return i;
    }
    return 0;
}
