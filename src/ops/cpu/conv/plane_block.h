/* SPDX-License-Identifier: Apache-2.0 */
/* A block of outputs of one plane, computed as if it were one row. Its padded input is copied, with
 * elements that are a stride apart next to each other: then a tap has a constant distance from its
 * output, and vectors span rows. What they compute between two rows is not used. */
#ifndef SP_OPS_CPU_CONV_PLANE_BLOCK_H
#define SP_OPS_CPU_CONV_PLANE_BLOCK_H

#include "base/size.h"
#include "ops/cpu/conv/conv_gather.h"

/* Outputs that are computed together, and elements of the copied input. */
#if !SP_HAS_HARDWARE_FMA
enum { SP_PLANE_STEP = 16 }; /* a multiply-add is 30 instructions an element */
#else
enum { SP_PLANE_STEP = SP_VECTOR == 4 ? 32 : 64 };
#endif
enum { SP_PLANE_INPUT = SP_DEPTHWISE_INPUT };

/* The sizes of a window over planes. */
typedef struct sp_plane_window {
    int64_t in_h, in_w, out_w, kernel_h, kernel_w;
    int64_t stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
} sp_plane_window;

/* An sp_plane_window of constants that have these members. */
#define SP_PLANE_WINDOW(k)                                                                         \
    {.in_h = (k)->in_h,                                                                            \
     .in_w = (k)->in_w,                                                                            \
     .out_w = (k)->out_w,                                                                          \
     .kernel_h = (k)->kernel_h,                                                                    \
     .kernel_w = (k)->kernel_w,                                                                    \
     .stride_h = (k)->stride_h,                                                                    \
     .stride_w = (k)->stride_w,                                                                    \
     .dilation_h = (k)->dilation_h,                                                                \
     .dilation_w = (k)->dilation_w,                                                                \
     .pad_top = (k)->pad_top,                                                                      \
     .pad_left = (k)->pad_left}

/* The copied input is in parts, one for each pair of remainders that a padded coordinate leaves
 * when it is divided by the strides. */
typedef struct sp_plane_block {
    sp_plane_window window;
    int64_t row, column;                           /* the first output */
    int64_t rows, columns;                         /* outputs */
    int64_t part_rows, part_row;                   /* of a part: rows, elements of one */
    float input[SP_PLANE_INPUT + SP_PLANE_STEP];   /* [stride_h][stride_w][part_rows][part_row] */
    float outputs[SP_PLANE_INPUT + SP_PLANE_STEP]; /* [rows][part_row] */
} sp_plane_block;

/* Rows of a part beyond those of the outputs, and elements of a row beyond theirs. */
static inline int64_t sp_plane_more_rows(const sp_plane_window *w)
{
    return (w->kernel_h - 1) * w->dilation_h / w->stride_h;
}

static inline int64_t sp_plane_more_columns(const sp_plane_window *w)
{
    return (w->kernel_w - 1) * w->dilation_w / w->stride_w;
}

/* The most outputs whose input fits, out of out_h rows: whole rows if possible. The caller has seen
 * to it that some fit. */
static inline void sp_plane_choose(const sp_plane_window *w, int64_t out_h, int64_t *rows,
                                   int64_t *columns)
{
    const int64_t parts = w->stride_h * w->stride_w;
    const int64_t more = sp_plane_more_columns(w);
    /* Elements of a part's row, at most. */
    const int64_t row = SP_PLANE_INPUT / parts / (1 + sp_plane_more_rows(w));
    *columns = sp_size_least(w->out_w, row - more);
    *rows =
        sp_size_least(out_h, SP_PLANE_INPUT / parts / (*columns + more) - sp_plane_more_rows(w));
}

/* Rows of one part, for strides of 1 and 2: `to` is filled in ascending order, so a vector may end
 * in the next row. */
static SP_ALWAYS_INLINE void sp_plane_copy_vectors(const sp_plane_block *b, const float *x,
                                                   int64_t row, int64_t column,
                                                   const int64_t stride, const float padding,
                                                   float *to)
{
    enum { PARTS = SP_PLANE_INPUT / SP_VECTOR };
    const sp_plane_window *w = &b->window;
    sp_row_part parts[PARTS];
    for (int64_t c = 0; c < b->part_row; c += SP_VECTOR) {
        parts[c / SP_VECTOR] = sp_row_part_of(column + c * stride, stride,
                                              sp_size_least(b->part_row - c, SP_VECTOR), w->in_w);
    }
    for (int64_t i = 0; i < b->part_rows; i++, row += w->stride_h, to += b->part_row) {
        const bool is_inside = row >= 0 && row < w->in_h;
        const float *from = x + row * w->in_w + column;
        for (int64_t c = 0; c < b->part_row; c += SP_VECTOR) {
            const sp_vector v = is_inside ? sp_row_part_load(from + c * stride, stride,
                                                             parts[c / SP_VECTOR], padding)
                                          : sp_vector_splat(padding);
            sp_vector_store(to + c, v);
        }
    }
}

/* The same for any stride. */
static inline void sp_plane_copy_elements(const sp_plane_block *b, const float *x, int64_t row,
                                          int64_t column, float padding, float *to)
{
    const sp_plane_window *w = &b->window;
    const sp_tap_range inside = sp_clip_taps(column, w->stride_w, b->part_row, w->in_w);
    for (int64_t i = 0; i < b->part_rows; i++, row += w->stride_h, to += b->part_row) {
        const bool is_inside = row >= 0 && row < w->in_h;
        const float *from = x + row * w->in_w + column;
        const int64_t first = is_inside ? inside.first : 0, last = is_inside ? inside.last : 0;
        for (int64_t c = 0; c < first; c++) to[c] = padding;
        for (int64_t c = first; c < last; c++) to[c] = from[c * w->stride_w];
        for (int64_t c = last; c < b->part_row; c++) to[c] = padding;
    }
}

/* Copies the input of the block from plane x. */
static SP_ALWAYS_INLINE void sp_plane_copy(sp_plane_block *b, const float *x, const float padding)
{
    const sp_plane_window *w = &b->window;
    float *to = b->input;
    b->part_rows = b->rows + sp_plane_more_rows(w);
    b->part_row = b->columns + sp_plane_more_columns(w);
    for (int64_t p = 0; p < w->stride_h; p++) {
        for (int64_t q = 0; q < w->stride_w; q++, to += b->part_rows * b->part_row) {
            const int64_t row = b->row * w->stride_h + p - w->pad_top;
            const int64_t column = b->column * w->stride_w + q - w->pad_left;
            if (w->stride_w == 1) sp_plane_copy_vectors(b, x, row, column, 1, padding, to);
            else if (w->stride_w == 2) sp_plane_copy_vectors(b, x, row, column, 2, padding, to);
            else sp_plane_copy_elements(b, x, row, column, padding, to);
        }
    }
    /* Vectors of the last outputs reach beyond the input. */
    memset(to, 0, SP_PLANE_STEP * sizeof(*to));
}

#endif
