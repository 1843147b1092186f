/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and constants, as in kernel_constants.h, of several steps in one
 * (docs/decisions/0055-fused-steps.md). No lowering emits them: plans do. Each has the bits of the
 * steps in whose place it is. */
#ifndef SP_OPS_FUSED_CONSTANTS_H
#define SP_OPS_FUSED_CONSTANTS_H

#include "ops/kernel_constants.h"

/* The comments list the bindings in order; the last one is written. look_up_pack_f32 has
 * sp_pack_constants. */
#define SP_FUSED_KERNEL_LIST(X)                                                                    \
    X(row_norm_f32)   /* x, epsilon, scale if has_scale, bias if has_bias, addend if has_addend, y \
                         unless is_only_packed, its packed form if y_format: both are written */   \
    X(row_affine_f32) /* x, mean, factor, scale, bias, y */                                        \
    X(erf_gate_f32)   /* x, y: y = x * (erf(x / divisor) + addend) * factor */                     \
    X(clip_gate_f32)  /* x, y: y = x * clip(x + addend, low, high) / divisor */                    \
    X(hard_sigmoid_gate_f32) /* x, y: y = x * clip(scale * x + addend, 0, 1) */                    \
    X(softplus_gate_f32)     /* x, y: y = x * tanh(softplus(x)) */                                 \
    X(tanh_gate_f32)    /* x, y: y = x * (factor * (addend + tanh(scale * (x + cube x x x)))) */   \
    X(look_up_f32)      /* index, table, c if has_c, y */                                          \
    X(look_up_pack_f32) /* b, table */                                                             \
    X(attention_f32)    /* query, key, value, mask if has_mask, condition if has_condition, y */

/* Of each row of x, or of x + addend: d = x - mean(x) if is_centred, else x; y = activation(d /
 * sqrt(mean(d * d) + epsilon) * scale + bias), each operation rounded. Epsilon is one number, scale
 * and bias have one for each element of a row. Row r of the addend begins at r / block * outer + r
 * % block * inner.
 *
 * y_format: the result, too, or only, as the left operand of a narrow product, in which row r is
 * line r / block * outer + r % block * inner. Rows are whole groups of that format and at most
 * SP_NORM_PACKED_EXTENT long, lines are whole, and there is no activation. */
#define SP_NORM_PACKED_EXTENT 4096
typedef struct sp_row_norm_constants {
    int64_t rows, extent;
    int64_t addend_block, addend_outer, addend_inner;
    int64_t line_block, line_outer, line_inner;
    bool is_centred;
    bool by_reciprocal; /* d * (1 / sqrt(...)) */
    bool has_scale, has_bias, has_addend;
    uint8_t activation; /* sp_activation */
    uint8_t y_format;   /* sp_pack_format of the packed result, or SP_PACK_NONE */
    bool is_only_packed;
} sp_row_norm_constants;

/* Of each row of x: y = (x - mean) * (factor * scale) + bias, each operation rounded. Mean and
 * factor have one number for each row, scale and bias one for each element of a row. */
typedef struct sp_row_affine_constants {
    int64_t rows, extent;
} sp_row_affine_constants;

/* Of GELU, by erf and by tanh, HardSwish, by Clip and by HardSigmoid, and Mish as they are written
 * in steps; each operation is rounded. */
typedef struct sp_gate_constants {
    int64_t count; /* as sp_flat_constants */
    float divisor, addend;
    float factor;    /* erf_gate_f32, tanh_gate_f32 */
    float low, high; /* clip_gate_f32 */
    float cube;      /* tanh_gate_f32 */
    float scale;     /* tanh_gate_f32, hard_sigmoid_gate_f32 */
} sp_gate_constants;

/* Of the product of rows that are 1 at an index and 0 elsewhere with b, of depth x columns: row i
 * of y = activation(table[index[i]] + c). The table has what such a row gives for each index, and
 * for all that are not in [0, depth) in a row more; look_up_pack_f32 makes it. */
typedef struct sp_look_up_constants {
    int64_t rows, columns, depth;
    int64_t c_row; /* stride of c; 0: one row for all */
    bool is_wide;  /* indices are of i64, else of i32 */
    bool has_c;
    uint8_t activation; /* sp_activation */
} sp_look_up_constants;

/* Floats that attention has on its stack: of queries, whose depth is thereby limited, and of
 * scores, which limit the number of keys. */
#define SP_ATTENTION_QUERIES 4096
#define SP_ATTENTION_SCORES 14336
#define SP_ATTENTION_DEPTH (SP_ATTENTION_QUERIES / SP_GEMM_PANEL)
#define SP_ATTENTION_KEYS (SP_ATTENTION_SCORES / SP_GEMM_PANEL)
#define SP_ATTENTION_RANK 4
/* Kernels of GPUs count columns in 32 bits. */
#define SP_ATTENTION_COLUMNS (1 << 24)
/* Fewer queries leave too much of a panel empty. */
#define SP_ATTENTION_LEAST_ROWS 8

/* Strides, in elements, of rows, columns and batch entries. */
typedef struct sp_attention_operand {
    int64_t first, row, column, batch[SP_ATTENTION_RANK];
} sp_attention_operand;

/* y = softmax(of_scores(of_query(query) of_key(key)^T) + mask) value, each operation rounded, for
 * each batch entry: of `rows` queries and `keys` keys of `depth` elements, and values of `columns`.
 * A score is `fill` where the condition, a bool, is not 0, or where it is 0: before the mask is
 * added, or after. Columns of query, value, mask, condition and y are neighbours.
 *
 * is_half: query, key and value have the type of `rounding`, and have been scaled before. Their
 * columns are neighbours, and all sizes, strides and first elements of theirs are multiples of 8.
 *
 * y_format: y is a matrix of y_lines rows of y_width elements that is packed as the left operand of
 * a narrow product, of the type of `rounding`; its strides are those in the matrix. The columns of
 * a head are part of a row, from a multiple of 8 on, and at most `depth`. */
typedef struct sp_attention_constants {
    int64_t rows, keys, depth, columns;
    sp_attention_scale of_query, of_key, of_scores;
    float fill;
    bool has_mask, has_condition;
    bool fills_false;       /* where the condition is 0 */
    bool is_condition_last; /* after the mask */
    uint8_t rounding;       /* sp_rounding of the operands of both products, scaled */
    uint8_t y_format;       /* sp_pack_format of y, or SP_PACK_NONE */
    bool is_half;
    uint32_t batch_rank;
    int64_t batch_dims[SP_ATTENTION_RANK];
    int64_t y_width, y_lines;
    sp_attention_operand query, key, value, mask, condition, y;
} sp_attention_constants;

#define SP_FUSED_CONSTANTS_LIST(X)                                                                 \
    X(sp_row_norm_constants, 72)                                                                   \
    X(sp_row_affine_constants, 16)                                                                 \
    X(sp_gate_constants, 40)                                                                       \
    X(sp_look_up_constants, 40)                                                                    \
    X(sp_attention_constants, 456)

#endif
