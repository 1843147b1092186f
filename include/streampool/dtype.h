/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of tensors. Values are stable: new types are appended. Elements are in the
 * machine's byte order, without padding; f16 is IEEE binary16, bf16 the upper half of an f32, a
 * bool one byte that is 0 or 1. */
#ifndef STREAMPOOL_DTYPE_H
#define STREAMPOOL_DTYPE_H

#include <stddef.h>

#include <streampool/export.h>

SP_EXTERN_C_BEGIN

/* Maximum rank of a tensor. Eight: ONNX's operators reach six, attention over images seven, and
 * strides and sizes of three operands of rank eight fit into a dispatch's constants. */
#define SP_MAX_RANK 8

/* code, value, name, bytes of one element */
#define SP_DTYPE_LIST(X)                                                                           \
    X(SP_F32, 1, "f32", 4)                                                                         \
    X(SP_F64, 2, "f64", 8)                                                                         \
    X(SP_F16, 3, "f16", 2)                                                                         \
    X(SP_BF16, 4, "bf16", 2)                                                                       \
    X(SP_I8, 5, "i8", 1)                                                                           \
    X(SP_I16, 6, "i16", 2)                                                                         \
    X(SP_I32, 7, "i32", 4)                                                                         \
    X(SP_I64, 8, "i64", 8)                                                                         \
    X(SP_U8, 9, "u8", 1)                                                                           \
    X(SP_U16, 10, "u16", 2)                                                                        \
    X(SP_U32, 11, "u32", 4)                                                                        \
    X(SP_U64, 12, "u64", 8)                                                                        \
    X(SP_BOOL, 13, "bool", 1)

typedef enum sp_dtype {
    SP_DTYPE_NONE = 0, /* not an element type: the value of zeroed memory */
#define SP_DTYPE_ENUM(code, value, name, bytes) code = value,
    SP_DTYPE_LIST(SP_DTYPE_ENUM)
#undef SP_DTYPE_ENUM
} sp_dtype;

/* The bit of an element type in a set of them. */
#define SP_DTYPE_BIT(dtype) (1u << (dtype))

/* To what f32 operands of products and convolutions are rounded (sp_model_options). */
typedef enum sp_precision {
    SP_PRECISION_DEFAULT, /* none: products are computed as the file says */
    SP_PRECISION_TF32,    /* f32 with 10 bits of fraction instead of 23 */
    SP_PRECISION_F16,     /* 10 bits; above 65,504 infinity, below 6.1e-5 fewer bits */
    SP_PRECISION_BF16     /* 7 bits, and the range of f32 */
} sp_precision;

/* Bytes of one element; 0 for an invalid value. */
SP_API size_t sp_dtype_bytes(sp_dtype dtype);

/* The short name, such as "f32"; "none" for an invalid value. Never NULL. */
SP_API const char *sp_dtype_name(sp_dtype dtype);

SP_EXTERN_C_END

#endif
