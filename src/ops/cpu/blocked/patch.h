/* SPDX-License-Identifier: Apache-2.0 */
/* A patch: the input of a block of outputs, with its padding, copied so that a tap has a constant
 * distance from its output and neighbouring outputs are a constant distance apart. Columns that are
 * a stride apart are next to each other: they are in one of `parts` parts. */
#ifndef SP_OPS_CPU_BLOCKED_PATCH_H
#define SP_OPS_CPU_BLOCKED_PATCH_H

#include "base/macros.h"
#include "base/size.h"
#include "ops/cpu/arch/vector_parts.h"
#include "ops/cpu/conv/tap_range.h"

enum { SP_BLOCK = SP_CHANNEL_BLOCK, SP_BLOCK_VECTORS = SP_BLOCK / SP_VECTOR };

static inline int64_t sp_window_span(int64_t kernel, int64_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

/* Distances of the taps of a window from the first one, in order, in a block of channels whose rows
 * are `row` floats. */
static inline void sp_window_taps(const sp_conv_constants *k, int64_t row, int64_t *offsets)
{
    for (int64_t y = 0; y < k->kernel_h; y++) {
        for (int64_t x = 0; x < k->kernel_w; x++) {
            *offsets++ = y * k->dilation_h * row + x * k->dilation_w * SP_BLOCK;
        }
    }
}

/* The sizes of the patches of a window; elements are `step` floats. */
typedef struct sp_patch {
    int64_t most; /* floats that there is memory for: set by the caller */
    const sp_conv_constants *k;
    int64_t step;                      /* between two columns: SP_BLOCK, or 1 for a plain input */
    int64_t planes;                    /* blocks of channels, or channels of a plain input */
    int64_t rows, columns;             /* most outputs of a patch */
    int64_t row_stride, column_stride; /* of the input between rows and columns of the patch */
    int64_t parts;
    int64_t part_columns, plane_rows; /* columns of a part, rows of a plane */
    int64_t row, plane;               /* floats of them */
    int64_t out_row;                  /* between two rows of outputs */
    bool skips_rows;                  /* those that are padding are not written: not if the sizes
                                         have just been chosen */
} sp_patch;

static inline void sp_patch_size(sp_patch *p)
{
    const sp_conv_constants *k = p->k;
    p->part_columns = p->columns + (k->kernel_w - 1) * k->dilation_w / p->parts;
    p->plane_rows =
        (p->rows - 1) * (k->stride_h / p->row_stride) + (k->kernel_h - 1) * k->dilation_h + 1;
    p->row = p->parts * p->part_columns * p->step;
    p->plane = p->plane_rows * p->row;
    p->out_row = k->stride_h / p->row_stride * p->row;
}

/* Chooses the most outputs, up to rows x columns, whole rows if possible, whose input of `planes`
 * planes fits in `most` floats. The caller has seen to it that one output fits. A kernel of one row
 * or column needs no other rows or columns than those that it is applied to. */
static inline void sp_patch_choose(sp_patch *p, const sp_conv_constants *k, int64_t step,
                                   int64_t planes, int64_t rows, int64_t columns)
{
    p->k = k;
    p->step = step;
    p->planes = planes;
    p->skips_rows = false;
    p->row_stride = k->kernel_h == 1 ? k->stride_h : 1;
    p->column_stride = k->kernel_w == 1 ? k->stride_w : 1;
    p->parts = k->stride_w / p->column_stride;
    p->rows = 1;
    for (int64_t pieces = 1;; pieces *= 2) {
        p->columns = (columns + pieces - 1) / pieces;
        sp_patch_size(p);
        if (p->columns == 1 || p->plane * planes <= p->most) break;
    }
    const int64_t more = p->most / planes - p->plane;
    if (more > 0 && p->columns == columns) {
        p->rows = sp_size_least(rows, 1 + more / (p->out_row > 0 ? p->out_row : 1));
    }
    sp_patch_size(p);
}

/* Distances of the taps of a channel's kernel from the first one, in order. */
static inline void sp_patch_taps(const sp_patch *p, int64_t *offsets)
{
    const sp_conv_constants *k = p->k;
    int64_t y = 0, x = 0;
    do { /* there is a tap */
        const int64_t column = x * k->dilation_w;
        *offsets++ = y * k->dilation_h * p->row +
                     (column % p->parts * p->part_columns + column / p->parts) * p->step;
        if (++x < k->kernel_w) continue;
        x = 0;
        y++;
    } while (y < k->kernel_h);
}

/* ---- copying ---- */

/* `count` elements, `stride` apart, that are blocks of channels, or single ones. */
static SP_ALWAYS_INLINE void sp_patch_copy_blocks(const float *from, int64_t stride, int64_t count,
                                                  float *to)
{
    for (int64_t i = 0; i < count; i++, from += stride * SP_BLOCK, to += SP_BLOCK) {
        for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
            sp_vector_store(to + v, sp_vector_load(from + v));
        }
    }
}

static inline void sp_patch_copy_elements(const float *from, int64_t stride, int64_t count,
                                          float *to)
{
    int64_t i = 0;
    if (stride == 1) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    /* The second vector begins with the last element of the first one: none is read beyond. */
    for (; stride == 2 && i + SP_VECTOR <= count; i += SP_VECTOR) {
        const sp_vector first = sp_vector_load(from + 2 * i);
        const sp_vector second = sp_vector_load(from + 2 * i + SP_VECTOR - 1);
        sp_vector_store(to + i, sp_vector_alternate(first, second));
    }
    for (; i < count; i++) to[i] = from[i * stride];
}

/* One part of a row: `count` elements from input column `column` on. A NULL row is all padding. */
static SP_ALWAYS_INLINE void sp_patch_copy_part(const sp_patch *p, const bool is_blocked,
                                                const float *row, int64_t column,
                                                const float padding, float *to)
{
    const int64_t stride = p->parts * p->column_stride, count = p->part_columns;
    const sp_tap_range in = sp_clip_taps(column, stride, count, row != NULL ? p->k->in_w : 0);
    const int64_t step = is_blocked ? SP_BLOCK : 1;
    const int64_t first = in.first * step, last = in.last * step;
    for (int64_t i = 0; i < first; i++) to[i] = padding;
    if (row != NULL && in.first < in.last) {
        const float *from = row + (column + in.first * stride) * step;
        if (is_blocked) sp_patch_copy_blocks(from, stride, in.last - in.first, to + first);
        else sp_patch_copy_elements(from, stride, in.last - in.first, to + first);
    }
    for (int64_t i = last > first ? last : first; i < count * step; i++) to[i] = padding;
}

/* Copies the input of rows x columns outputs from `row`, `column` on, from the first of p->planes
 * planes x. */
static SP_ALWAYS_INLINE void sp_patch_copy(const sp_patch *p, const bool is_blocked, const float *x,
                                           int64_t planes, int64_t row, int64_t rows,
                                           int64_t column, const float padding, float *to)
{
    const sp_conv_constants *k = p->k;
    const int64_t in_row = k->in_w * p->step, in_plane = k->in_h * in_row;
    const int64_t first = row * k->stride_h - k->pad_top;
    const int64_t start = column * k->stride_w - k->pad_left;
    const int64_t used = p->plane_rows - (p->rows - rows) * (k->stride_h / p->row_stride);
    for (int64_t plane = 0; plane < planes; plane++, x += in_plane, to += p->plane) {
        float *out = to;
        for (int64_t r = 0; r < used; r++) {
            const int64_t y = first + r * p->row_stride;
            const float *from = y >= 0 && y < k->in_h ? x + y * in_row : NULL;
            if (from == NULL && p->skips_rows) {
                out += p->row;
                continue;
            }
            for (int64_t part = 0; part < p->parts; part++, out += p->part_columns * p->step) {
                sp_patch_copy_part(p, is_blocked, from, start + part, padding, out);
            }
        }
    }
}

#endif
