/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels and constants, as in kernel_constants.h, of ops that gather, scatter, generate and
 * interpolate elements, and of recurrent layers. */
#ifndef SP_OPS_COPY_CONSTANTS_H
#define SP_OPS_COPY_CONSTANTS_H

#include "ops/kernel_constants.h"

/* The comments list the bindings in order; the last one is written. */
#define SP_MOVE_KERNEL_LIST(X)                                                                     \
    X(gather)           /* x, indices, y */                                                        \
    X(gather_elements)  /* x, indices, y */                                                        \
    X(gather_nd)        /* x, indices, y */                                                        \
    X(scatter_elements) /* indices, updates, y, which is read too */                               \
    X(scatter_nd)       /* indices, updates, y, which is read too */                               \
    X(one_hot)          /* indices, the two values, y */                                           \
    X(range)            /* y */                                                                    \
    X(trilu)            /* x, y */                                                                 \
    X(eye)              /* y */                                                                    \
    X(non_zero)         /* x, y */                                                                 \
    X(top_k)            /* x, values, indices: both are written */                                 \
    X(resize_nearest)   /* x, y */                                                                 \
    X(resize_f32)       /* x, y */                                                                 \
    X(resize_f64)       /* x, y */                                                                 \
    X(grid_sample_f32)  /* x, grid, y */                                                           \
    X(lstm_f32)         /* x's products, bias, r's panels, lengths, h, c, p, scratch, y, yh, yc */ \
    X(gru_f32)          /* as lstm_f32, without c, p and yc */                                     \
    X(rnn_f32)          /* as gru_f32 */

/* x is [outer, axis, inner bytes]; row (o, i) of y is row indices[i] of x's block o. An index below
 * 0 counts from the end, here and below. */
typedef struct sp_gather_constants {
    int64_t outer, axis, inner_bytes, count;
    uint32_t index_bytes; /* 4 or 8, here and below */
} sp_gather_constants;

/* y has the shape of the indices, `dims`; the index is the coordinate along the axis. x: strides of
 * x, in elements; 0 along the axis. */
typedef struct sp_gather_elements_constants {
    uint32_t rank, element_bytes, index_bytes;
    int64_t axis_size, axis_stride, count;
    int64_t dims[SP_KERNEL_RANK], x[SP_KERNEL_RANK];
} sp_gather_elements_constants;

/* y[b][t] = x[b][indices[b][t]], slices of `slice_bytes`; an index is `depth` numbers. */
typedef struct sp_gather_nd_constants {
    uint32_t depth, index_bytes;
    int64_t rows, batch_rows;                              /* rows of y, in all and of one b */
    int64_t batch_bytes, slice_bytes;                      /* of x */
    int64_t dims[SP_KERNEL_RANK], strides[SP_KERNEL_RANK]; /* of x's b, in bytes */
} sp_gather_nd_constants;

typedef enum sp_scatter_reduction {
    SP_SCATTER_NONE, /* the last of several updates of one element wins */
    SP_SCATTER_ADD,
    SP_SCATTER_MUL,
    SP_SCATTER_MAX,
    SP_SCATTER_MIN
} sp_scatter_reduction;

/* Updates have the shape `dims`. A line runs along `axis`; its updates are applied in order. y:
 * strides of y, in elements. */
typedef struct sp_scatter_elements_constants {
    uint32_t rank, axis, dtype, index_bytes;
    uint32_t reduction; /* sp_scatter_reduction */
    int64_t axis_size, lines;
    int64_t dims[SP_KERNEL_RANK], y[SP_KERNEL_RANK];
} sp_scatter_elements_constants;

/* y[indices[t]] is set to updates[t] or combined with it; slices of `slice` elements, for
 * all t in order. */
typedef struct sp_scatter_nd_constants {
    uint32_t depth, dtype, index_bytes;
    uint32_t reduction; /* sp_scatter_reduction */
    int64_t count, slice;
    int64_t dims[SP_KERNEL_RANK], strides[SP_KERNEL_RANK]; /* of y, in elements */
} sp_scatter_nd_constants;

/* y[o][d][i] = values[indices[o][i] == d]. An index out of range matches nothing. */
typedef struct sp_one_hot_constants {
    uint32_t element_bytes;
    uint32_t index_type; /* sp_dtype */
    int64_t outer, depth, inner;
} sp_one_hot_constants;

/* y[i] = start + i * step: for floats the product and the sum are rounded, integers wrap. */
typedef struct sp_range_constants {
    int64_t count;
    int64_t start_int, step_int;
    double start, step;
    uint32_t dtype;
} sp_range_constants;

/* Rows of matrices. trilu keeps the elements on and above, or on and below, the diagonal that
 * begins at column `diagonal`; eye writes `one` on it. */
typedef struct sp_diagonal_constants {
    int64_t rows, matrix_rows, columns, diagonal;
    uint64_t one;
    uint32_t element_bytes;
    bool is_upper;
} sp_diagonal_constants;

/* y[d][j] is coordinate d of the j-th of the `found` elements of x that are not 0. */
typedef struct sp_non_zero_constants {
    uint32_t rank, element_bytes;
    uint64_t mask; /* bits of an element that make it nonzero: not the sign of floats */
    int64_t count, found;
    int64_t dims[SP_KERNEL_RANK];
} sp_non_zero_constants;

/* x is [outer, axis, inner]; the outputs have `count` along the axis. */
typedef struct sp_top_k_constants {
    int64_t outer, axis, inner, count;
    uint32_t dtype;
    bool is_largest;
} sp_top_k_constants;

/* Mapping of output to input coordinates: ONNX's coordinate_transformation_mode. */
typedef enum sp_resize_coordinate {
    SP_RESIZE_HALF_PIXEL,
    SP_RESIZE_HALF_PIXEL_SYMMETRIC,
    SP_RESIZE_PYTORCH_HALF_PIXEL,
    SP_RESIZE_ALIGN_CORNERS,
    SP_RESIZE_ASYMMETRIC,
    SP_RESIZE_TF_HALF_PIXEL,
    SP_RESIZE_CROP,
    /* For nearest: intermediate results are rounded to float. */
    SP_RESIZE_CROP_F32,
    SP_RESIZE_ASYMMETRIC_F32
} sp_resize_coordinate;

typedef enum sp_resize_rounding {
    SP_RESIZE_PREFER_FLOOR,
    SP_RESIZE_PREFER_CEIL,
    SP_RESIZE_FLOOR,
    SP_RESIZE_CEIL
} sp_resize_rounding;

/* One axis: x is [outer, in, inner] elements, y [outer, out, inner]. */
typedef struct sp_resize_constants {
    int64_t outer, in, out, inner;
    int64_t lanes;                 /* of inner: 1, or SP_CHANNEL_BLOCK of images in blocks */
    double scale;                  /* output / input size */
    double numerator, denominator; /* 1 / scale; input / output if the sizes are given */
    double crop_start, crop_end;   /* of SP_RESIZE_CROP, usually in [0, 1] */
    double width;                  /* output size from the scale, not rounded */
    uint64_t outside;              /* the value outside of a crop */
    float cubic;                   /* the coefficient a */
    uint32_t coordinate, rounding; /* sp_resize_coordinate, sp_resize_rounding */
    uint32_t element_bytes;
    bool is_cubic, is_antialiased, excludes_outside;
} sp_resize_constants;

typedef enum sp_grid_mode { SP_GRID_LINEAR, SP_GRID_NEAREST, SP_GRID_CUBIC } sp_grid_mode;

typedef enum sp_grid_padding { SP_GRID_ZEROS, SP_GRID_BORDER, SP_GRID_REFLECTION } sp_grid_padding;

/* x is [images, channels, in_h, in_w], the grid [images, pixels] pairs of a column and a row, y
 * [images, channels, pixels]; count is images * pixels. */
typedef struct sp_grid_sample_constants {
    int64_t channels, in_h, in_w, pixels, count;
    uint32_t mode, padding; /* sp_grid_mode, sp_grid_padding */
    bool align_corners;
} sp_grid_sample_constants;

typedef enum sp_cell_function {
    SP_CELL_SIGMOID,
    SP_CELL_TANH,
    SP_CELL_RELU,
    SP_CELL_AFFINE,
    SP_CELL_LEAKY_RELU,
    SP_CELL_THRESHOLDED_RELU,
    SP_CELL_SCALED_TANH,
    SP_CELL_HARD_SIGMOID,
    SP_CELL_SOFTSIGN
} sp_cell_function;

typedef struct sp_cell_activation {
    uint32_t function; /* sp_cell_function */
    float alpha, beta;
} sp_cell_activation;

#define SP_CELL_MAX_FUNCTIONS 3
/* A recurrent layer. Operands are addressed by strides of direction, batch row and step, in
 * elements, so both layouts use one kernel. */
typedef struct sp_recurrent_constants {
    int64_t steps, rows, hidden, gates;
    uint32_t directions;
    bool is_backwards; /* of the first direction; the second is always backwards */
    bool has_bias, has_lengths, has_h, has_c, has_peepholes;
    bool has_last_h, has_last_c; /* outputs after the first */
    bool resets_after;           /* GRU's linear_before_reset */
    bool couples_gates;          /* LSTM's input_forget */
    bool clips;
    float clip;
    int64_t x_step, x_row, x_direction; /* of x's products [..., gates * hidden] */
    int64_t y_step, y_row, y_direction; /* of y */
    int64_t state_row, state_direction; /* of h, c, yh, yc */
    int64_t scratch_row;                /* of the scratch of one row of one direction */
    sp_cell_activation functions[2][SP_CELL_MAX_FUNCTIONS]; /* of each direction */
} sp_recurrent_constants;

/* Bytes of each, the same for every compiler. */
#define SP_MOVE_CONSTANTS_LIST(X)                                                                  \
    X(sp_gather_constants, 40)                                                                     \
    X(sp_gather_elements_constants, 168)                                                           \
    X(sp_gather_nd_constants, 168)                                                                 \
    X(sp_scatter_elements_constants, 168)                                                          \
    X(sp_scatter_nd_constants, 160)                                                                \
    X(sp_one_hot_constants, 32)                                                                    \
    X(sp_range_constants, 48)                                                                      \
    X(sp_diagonal_constants, 48)                                                                   \
    X(sp_non_zero_constants, 96)                                                                   \
    X(sp_top_k_constants, 40)                                                                      \
    X(sp_resize_constants, 120)                                                                    \
    X(sp_grid_sample_constants, 56)                                                                \
    X(sp_recurrent_constants, 200)

#endif
