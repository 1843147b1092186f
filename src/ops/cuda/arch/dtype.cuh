/* SPDX-License-Identifier: Apache-2.0 */
/* The values of sp_dtype (streampool/dtype.h) that constants have. */

enum sp_dtype_code {
    SP_CODE_F32 = 1,
    SP_CODE_F64,
    SP_CODE_F16,
    SP_CODE_BF16,
    SP_CODE_I8,
    SP_CODE_I16,
    SP_CODE_I32,
    SP_CODE_I64,
    SP_CODE_U8,
    SP_CODE_U16,
    SP_CODE_U32,
    SP_CODE_U64,
    SP_CODE_BOOL
};

SP_CUDA_FUNCTION uint32_t sp_dtype_bytes(uint32_t code)
{
    switch (code) {
    case SP_CODE_F64:
    case SP_CODE_I64:
    case SP_CODE_U64:
        return 8;
    case SP_CODE_F32:
    case SP_CODE_I32:
    case SP_CODE_U32:
        return 4;
    case SP_CODE_F16:
    case SP_CODE_BF16:
    case SP_CODE_I16:
    case SP_CODE_U16:
        return 2;
    default:
        return 1;
    }
}
