/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, normalisations, pools and the products and convolutions that GPUs do not have: the
 * list of the kernels, and the constants that their lowerings write and they read. */
#ifndef SP_OPS_REDUCE_CONSTANTS_H
#define SP_OPS_REDUCE_CONSTANTS_H

#include "ops/kernel_constants.h"

/* The comments list the bindings in order; y and those after it are written. */
#define SP_REDUCE_KERNEL_LIST(X)                                                                   \
    X(reduce_f32) /* x, shift if has_shift, y, all of one type, down to reduce_u8 */               \
    X(reduce_f64)                                                                                  \
    X(reduce_f16)                                                                                  \
    X(reduce_i32)                                                                                  \
    X(reduce_i64)                                                                                  \
    X(reduce_i8)                                                                                   \
    X(reduce_u8)   /* bool, too */                                                                 \
    X(softmax_f32) /* x, y */                                                                      \
    X(softmax_f64)                                                                                 \
    X(softmax_f16)                                                                                 \
    X(batch_norm_f32) /* x, scale, bias, mean, variance, y */                                      \
    X(blend_f32)      /* a, b, y */                                                                \
    X(norm_f32)       /* x, scale, bias if has_bias, y, mean and inverse if there */               \
    X(conv_3d_f32)    /* as conv_f32 */                                                            \
    X(conv_any_f64)   /* likewise, down to conv_any_bf16 */                                        \
    X(conv_any_f16)                                                                                \
    X(conv_any_bf16)                                                                               \
    X(gemm_any_f64) /* a, b, c if has_c, y, down to gemm_any_u64 */                                \
    X(gemm_any_f16)                                                                                \
    X(gemm_any_bf16)                                                                               \
    X(gemm_any_i32)                                                                                \
    X(gemm_any_i64)                                                                                \
    X(gemm_any_u32)                                                                                \
    X(gemm_any_u64)                                                                                \
    X(conv_transpose_f32) /* as conv_f32 */                                                        \
    X(average_pool_f32)   /* x, y */                                                               \
    X(max_pool_any_f32)   /* x, y, indices if has_indices, down to max_pool_any_i8 */              \
    X(max_pool_any_f64)                                                                            \
    X(max_pool_any_u8)                                                                             \
    X(max_pool_any_i8)                                                                             \
    X(arg_f32) /* x, y, down to lrn_f32 */                                                         \
    X(arg_f64)                                                                                     \
    X(arg_i32)                                                                                     \
    X(arg_i64)                                                                                     \
    X(arg_i8)                                                                                      \
    X(arg_u8)                                                                                      \
    X(hardmax_f32)                                                                                 \
    X(cumsum_f32)                                                                                  \
    X(cumsum_f64)                                                                                  \
    X(cumsum_i32)                                                                                  \
    X(cumsum_i64)                                                                                  \
    X(lp_norm_f32)                                                                                 \
    X(lrn_f32)                                                                                     \
    X(standardize_f32) /* x, mean, variance, y */

typedef enum sp_reduction {
    SP_REDUCE_SUM,
    SP_REDUCE_MEAN,
    SP_REDUCE_MAX,
    SP_REDUCE_MIN,
    SP_REDUCE_PROD,
    SP_REDUCE_SUM_SQUARE,
    SP_REDUCE_L1,
    SP_REDUCE_L2, /* from here on: floats only */
    SP_REDUCE_LOG_SUM,
    SP_REDUCE_LOG_SUM_EXP, /* log(sum(exp(x - shift))) + shift */
    SP_REDUCE_VARIANCE,    /* mean((x - shift)^2) */
    SP_REDUCE_FINITE_MAX   /* MAX; 0 if the maximum is not finite */
} sp_reduction;

/* Dimensions of x in order, kept and reduced ones separately, each with its stride in x. */
typedef struct sp_reduce_constants {
    uint32_t reduction; /* sp_reduction */
    uint32_t kept_rank, reduced_rank;
    bool is_columns; /* the last kept dimension has stride 1; otherwise the last reduced one */
    bool has_shift;  /* one for each output */
    int64_t extent;  /* elements reduced to one output */
    int64_t count;
    int64_t kept_dims[SP_KERNEL_RANK], kept_strides[SP_KERNEL_RANK];
    int64_t dims[SP_KERNEL_RANK], strides[SP_KERNEL_RANK]; /* reduced */
} sp_reduce_constants;

/* `rows` rows of `extent` elements with stride `inner`; `inner` rows start at consecutive
 * elements. */
typedef struct sp_axis_constants {
    int64_t rows, extent, inner;
    bool is_log;                   /* softmax: LogSoftmax */
    bool takes_least, takes_last;  /* arg: ArgMin; of equals the last */
    bool is_exclusive, is_reverse; /* cumsum */
    bool is_square;                /* lp_norm: the norm of p = 2 */
} sp_axis_constants;

typedef struct sp_lrn_constants {
    int64_t planes, channels, plane;
    int64_t size; /* channels of a sum */
    float alpha, beta, bias;
} sp_lrn_constants;

typedef struct sp_batch_norm_constants {
    int64_t channels, plane; /* elements of one channel of one image */
    int64_t planes;
    float epsilon;
    uint8_t activation; /* sp_activation */
} sp_batch_norm_constants;

typedef struct sp_blend_constants {
    int64_t count;
    float momentum;
} sp_blend_constants;

/* Row r reads its scales from index (r % scale_rows) * scale_row on, one for each `span`
 * elements. */
typedef struct sp_norm_constants {
    int64_t rows, extent;
    int64_t scale_rows, scale_row, span;
    float epsilon;
    bool has_bias, has_mean, has_inverse;
} sp_norm_constants;

/* Windows over three dimensions, outermost first; absent ones have size 1. */
typedef struct sp_window_constants {
    int64_t planes;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad[3], end[3]; /* before and after */
    bool counts_padding;    /* average: elements of the padding count */
    bool has_indices;       /* max */
    bool is_column_major;   /* the indices */
} sp_window_constants;

typedef struct sp_conv_transpose_constants {
    sp_window_constants window;        /* its input is the op's input; planes are the output's */
    int64_t groups, channels, filters; /* channels and filters of one group */
    int64_t segment;                   /* as in sp_conv_constants */
    bool has_bias;
    uint8_t activation; /* sp_activation */
} sp_conv_transpose_constants;

/* Convolution of volumes: images of `plane`, and a third dimension outside them. */
typedef struct sp_conv_3d_constants {
    sp_conv_constants plane;
    int64_t in_d, out_d, kernel_d, stride_d, dilation_d, pad_front;
} sp_conv_3d_constants;

/* Products of types other than f32; b is not packed. */
typedef struct sp_gemm_any_constants {
    sp_gemm_constants gemm; /* b_format and activation: unused */
    int64_t b_column;       /* of b: to the next column */
} sp_gemm_any_constants;

/* Bytes of each, the same for every compiler. */
#define SP_REDUCE_CONSTANTS_LIST(X)                                                                \
    X(sp_reduce_constants, 288)                                                                    \
    X(sp_axis_constants, 32)                                                                       \
    X(sp_lrn_constants, 48)                                                                        \
    X(sp_batch_norm_constants, 32)                                                                 \
    X(sp_blend_constants, 16)                                                                      \
    X(sp_norm_constants, 48)                                                                       \
    X(sp_window_constants, 184)                                                                    \
    X(sp_conv_transpose_constants, 224)                                                            \
    X(sp_conv_3d_constants, 192)                                                                   \
    X(sp_gemm_any_constants, 320)

#endif
