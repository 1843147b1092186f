/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of products, convolutions, arithmetic and copies, and the constants that lowerings
 * write and kernels read. C and CUDA C++ compile this text to the same layout. It includes no
 * header of the system: bool and the integer types of stdint.h must be defined before. */
#ifndef SP_OPS_KERNEL_CONSTANTS_H
#define SP_OPS_KERNEL_CONSTANTS_H

#include "ops/element_ops.h"
#include "ops/pack_format.h"

/* SP_MAX_RANK and SP_MAX_BINDINGS by names of their own. */
#define SP_KERNEL_RANK 8
#define SP_KERNEL_BINDINGS 16

/* All kernels: ops/kernel_list.h. The comments list the bindings in order; the last one is
 * written. */
#define SP_BASIC_KERNEL_LIST(X)                                                                    \
    X(gemm_f32)         /* a, b, c if has_c, y */                                                  \
    X(gemm_pack_f32)    /* b, panels */                                                            \
    X(gemm_narrow_tf32) /* as gemm_f32, down to gemm_narrow_bf16; b is packed */                   \
    X(gemm_narrow_f16)                                                                             \
    X(gemm_narrow_bf16)                                                                            \
    X(gemm_packed_tf32) /* the same with a packed too, down to gemm_packed_bf16 */                 \
    X(gemm_packed_f16)                                                                             \
    X(gemm_packed_bf16)                                                                            \
    X(narrow_pack_tf32) /* b, its copy, down to narrow_pack_bf16 */                                \
    X(narrow_pack_f16)                                                                             \
    X(narrow_pack_bf16)                                                                            \
    X(conv_narrow_tf32) /* as conv_f32, down to conv_narrow_bf16; w is packed */                   \
    X(conv_narrow_f16)                                                                             \
    X(conv_narrow_bf16)                                                                            \
    X(conv_f32)           /* x, w, bias if has_bias, y */                                          \
    X(conv_depthwise_f32) /* as conv_f32 */                                                        \
    X(max_pool_f32)       /* x, y */                                                               \
    X(add_f32)            /* a, b, y, down to div_i64 */                                           \
    X(sub_f32)                                                                                     \
    X(mul_f32)                                                                                     \
    X(div_f32)                                                                                     \
    X(add_i32)                                                                                     \
    X(sub_i32)                                                                                     \
    X(mul_i32)                                                                                     \
    X(div_i32)                                                                                     \
    X(add_i64)                                                                                     \
    X(sub_i64)                                                                                     \
    X(mul_i64)                                                                                     \
    X(div_i64)                                                                                     \
    X(relu_f32) /* x, y, down to exp_f32 */                                                        \
    X(sigmoid_f32)                                                                                 \
    X(tanh_f32)                                                                                    \
    X(exp_f32)                                                                                     \
    X(copy_bytes)   /* x, y, of equal bytes */                                                     \
    X(copy_strided) /* x, y */                                                                     \
    X(concat)       /* parts ..., y */                                                             \
    X(split)        /* x, parts ...: all parts are written */                                      \
    X(move_rows)    /* places, base, whole: one of the last two is written */                      \
    X(signal_done)  /* counter, word: in lists of GPUs */                                          \
    X(pad)          /* x, value if has_value, y */                                                 \
    X(fill)         /* y */

/* Narrow products (docs/decisions/0072): both operands are rounded to a smaller type, sums are f32.
 * The depth of a convolution is (kernel row, kernel column, channel). A packed operand is rounded,
 * in the format of that type; of a left one the rows are the columns. So many chunks of the depth,
 * which are the groups of the format, are a chain. */
#define SP_NARROW_CHUNKS 4

/* Steps of a chain of a matrix product: longer sums are sums of chains (docs/decisions/0002). */
#define SP_GEMM_SEGMENT 256

/* y[m][n] = activation(alpha * sum(m, n) + beta * c[m][n]), where the sum runs over k in order, in
 * segments. */
/* To what a product of two computed values rounds its operands (docs/decisions/0089). */
typedef enum sp_rounding { SP_ROUNDING_NONE, SP_ROUNDING_F16, SP_ROUNDING_BF16 } sp_rounding;

typedef enum sp_scale_kind { SP_SCALE_NONE, SP_SCALE_MULTIPLIES, SP_SCALE_DIVIDES } sp_scale_kind;

typedef struct sp_attention_scale {
    uint32_t kind; /* sp_scale_kind */
    float number;
} sp_attention_scale;

typedef struct sp_gemm_constants {
    int64_t rows, columns, depth;
    int64_t a_row, a_depth;  /* strides of a, in elements */
    int64_t b_depth;         /* of b, whose columns are neighbours, unless it is packed */
    int64_t c_row, c_column; /* of c; 0 where it is broadcast */
    float alpha, beta;
    bool has_c;
    uint8_t b_format;   /* sp_pack_format */
    uint8_t activation; /* sp_activation */
    bool is_b_constant; /* b is a weight of a model, which no kernel writes */
    bool is_half;       /* of a narrow product: c and y have the type of its operands, too */
    uint8_t rounding;   /* sp_rounding of a and b, which are f32; b is not packed */
    /* sp_pack_format of y, which is a's: y is packed as the left operand of another product, of
     * f32. Rows are whole lines and columns whole groups of that format, and the activation is none
     * or Relu. Only of products of two packed operands. */
    uint8_t y_format;
    /* Of a product of two packed operands of two bytes: y is rows of their type, c is a row of f32.
     * Columns before scaled[0] are scaled by the first scale, those from there on before scaled[1]
     * by the second one, and all are rounded then. Columns are a multiple of 8, without an
     * activation. */
    bool is_y_half;
    uint32_t batch_rank;
    int64_t batch_dims[SP_KERNEL_RANK]; /* of the output; strides of a and b along them */
    int64_t a_batch[SP_KERNEL_RANK], b_batch[SP_KERNEL_RANK];
    int64_t scaled[2];
    sp_attention_scale scales[2];
} sp_gemm_constants;

/* Input that the depthwise kernel has on its stack at a time, in elements. */
#define SP_DEPTHWISE_INPUT 4096
/* The longest segment of a convolution. */
#define SP_CONV_MAX_SEGMENT 512

/* Sizes of one group of one image; height is 1 for one spatial dimension. */
typedef struct sp_conv_constants {
    int64_t groups, channels, filters; /* channels and filters of one group */
    int64_t in_h, in_w, out_h, out_w, kernel_h, kernel_w;
    int64_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
    int64_t segment; /* steps of a chain; at least 1 */
    int64_t planes;  /* of the output: images * groups * filters */
    bool has_bias;
    uint8_t activation; /* sp_activation */
    bool is_half;       /* of conv_narrow: bias and y have the type of its operands, and x is f32 */
} sp_conv_constants;

typedef struct sp_pool_constants {
    int64_t planes;
    int64_t in_h, in_w, out_h, out_w, kernel_h, kernel_w;
    int64_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
} sp_pool_constants;

/* y is contiguous with these dims; each operand has a stride along each. */
typedef struct sp_binary_constants {
    uint32_t rank;
    uint8_t activation; /* sp_activation, of kernels of floats */
    int64_t count;
    int64_t dims[SP_KERNEL_RANK], a[SP_KERNEL_RANK], b[SP_KERNEL_RANK];
} sp_binary_constants;

typedef struct sp_flat_constants {
    int64_t count; /* elements; bytes for copy_bytes */
} sp_flat_constants;

/* Copies element (i, j, ...) of x, at x_first + i * x[0] + j * x[1] + ..., to its location in y.
 * Strides are in elements; no two elements of y share a location. */
typedef struct sp_copy_constants {
    uint32_t rank, element_bytes;
    int64_t count;
    int64_t x_first, y_first;
    int64_t dims[SP_KERNEL_RANK], x[SP_KERNEL_RANK], y[SP_KERNEL_RANK];
} sp_copy_constants;

#define SP_CONCAT_MAX_PARTS (SP_KERNEL_BINDINGS - 1)

/* The whole is `outer` rows of `row_bytes`; part i is `part_bytes[i]` of each row, from
 * `part_offset[i]` on. */
typedef struct sp_concat_constants {
    uint32_t parts;
    int64_t outer, row_bytes;
    int64_t part_bytes[SP_CONCAT_MAX_PARTS], part_offset[SP_CONCAT_MAX_PARTS];
} sp_concat_constants;

/* Rows that lie anywhere, as parts of a whole. A row is `outer` pieces of `chunk` bytes, one after
 * the other from places[row] on, in bytes behind the base: which may be negative, and in other
 * memory than the base. In the whole the pieces of all rows alternate. is_out: from the whole to
 * the rows, else from them. */
typedef struct sp_rows_constants {
    int64_t rows, outer, chunk;
    int64_t is_out;
} sp_rows_constants;

typedef enum sp_pad_mode { SP_PAD_CONSTANT, SP_PAD_EDGE, SP_PAD_REFLECT, SP_PAD_WRAP } sp_pad_mode;

typedef struct sp_pad_constants {
    uint32_t rank, element_bytes;
    uint32_t mode;  /* sp_pad_mode */
    bool has_value; /* otherwise `value` */
    uint64_t value; /* the element's bytes, little-endian */
    int64_t rows;
    int64_t in[SP_KERNEL_RANK], out[SP_KERNEL_RANK],
        lead[SP_KERNEL_RANK]; /* a negative lead crops */
} sp_pad_constants;

typedef struct sp_fill_constants {
    uint64_t value;
    int64_t count;
    uint32_t element_bytes;
} sp_fill_constants;

/* Bytes of each, the same for every compiler. */
#define SP_CONSTANTS_LIST(X)                                                                       \
    X(sp_gemm_constants, 312)                                                                      \
    X(sp_pack_constants, 56)                                                                       \
    X(sp_conv_constants, 144)                                                                      \
    X(sp_pool_constants, 104)                                                                      \
    X(sp_binary_constants, 208)                                                                    \
    X(sp_flat_constants, 8)                                                                        \
    X(sp_copy_constants, 224)                                                                      \
    X(sp_concat_constants, 264)                                                                    \
    X(sp_rows_constants, 32)                                                                       \
    X(sp_pad_constants, 224)                                                                       \
    X(sp_fill_constants, 24)

#endif
