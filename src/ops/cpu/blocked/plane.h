/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over one block of channels of an image, whose channels are computed each by itself:
 * depthwise convolutions and pools. Windows inside an image are read where it is if these are most
 * of a large image, or all of a part of a small one; others from a copy with padding. */
#ifndef SP_OPS_CPU_BLOCKED_PLANE_H
#define SP_OPS_CPU_BLOCKED_PLANE_H

#include "ops/cpu/blocked/patch.h"

/* Images of fewer pixels stay in the first cache, where a copy costs less than edges apart. */
enum { SP_PLANE_PIXELS = 512 };

/* Some outputs of a row. Tap t of output i is at x + offsets[t] + i * step; those that count are
 * [first_tap, last_tap). */
typedef struct sp_plane_row {
    const float *x;
    float *y;
    const int64_t *offsets; /* of the taps, and one more, which is of none */
    int64_t first_tap, last_tap;
    int64_t step; /* SP_BLOCK or twice as much */
    int64_t row, column, columns;
} sp_plane_row;

/* Outputs [row, last_row) x [column, last_column). */
typedef struct sp_plane_part {
    int64_t row, last_row, column, last_column;
} sp_plane_part;

/* A plane whose outputs are computed: run_row(kernel, row) for each row of a part. */
typedef struct sp_plane {
    const sp_conv_constants *k;
    const float *x;
    float *y;
    float padding;
    bool skips_padding; /* taps in rows of it do not count */
    const void *kernel;
    void (*run_row)(const void *kernel, const sp_plane_row *row);
    int64_t offsets[SP_CONV_MAX_SEGMENT + 1];
} sp_plane;

/* Outputs along one axis, [*first, *last), none of whose `span` inputs is padding. */
static inline void sp_plane_inside(int64_t in, int64_t out, int64_t span, int64_t stride,
                                   int64_t pad, int64_t *first, int64_t *last)
{
    const int64_t room = in - span + pad; /* the first input of the last such output, and the pad */
    *first = sp_size_least((pad + stride - 1) / stride, out);
    *last = room < 0 ? 0 : sp_size_least(room / stride + 1 + SP_PLANTED(edge_is_inside), out);
    if (*last < *first) *last = *first;
}

static inline sp_plane_part sp_plane_inner(const sp_conv_constants *k)
{
    sp_plane_part inner;
    sp_plane_inside(k->in_h, k->out_h, sp_window_span(k->kernel_h, k->dilation_h), k->stride_h,
                    k->pad_top, &inner.row, &inner.last_row);
    sp_plane_inside(k->in_w, k->out_w, sp_window_span(k->kernel_w, k->dilation_w), k->stride_w,
                    k->pad_left, &inner.column, &inner.last_column);
    return inner;
}

/* Has no output of the part padding? Or has the image many pixels, and most of a row none? */
static inline bool sp_plane_is_direct(const sp_conv_constants *k, const sp_plane_part *part,
                                      const sp_plane_part *inner)
{
    const int64_t columns = inner->last_column - inner->column;
    if (k->stride_w > 2 || inner->row >= inner->last_row) return false;
    if (k->in_h * k->in_w >= SP_PLANE_PIXELS) return columns * 4 >= k->out_w * 3;
    return columns == k->out_w && inner->row == part->row && inner->last_row == part->last_row;
}

/* The taps of a row of outputs. */
static inline sp_tap_range sp_plane_taps(const sp_plane *p, int64_t row)
{
    const sp_conv_constants *k = p->k;
    sp_tap_range rows = {0, k->kernel_h};
    if (p->skips_padding) {
        rows = sp_clip_taps(row * k->stride_h - k->pad_top, k->dilation_h, k->kernel_h, k->in_h);
    }
    return (sp_tap_range){rows.first * k->kernel_w, rows.last * k->kernel_w};
}

static inline void sp_plane_run_inner(sp_plane *p, const sp_plane_part *part)
{
    const sp_conv_constants *k = p->k;
    const int64_t in_row = k->in_w * SP_BLOCK;
    sp_window_taps(k, in_row, p->offsets);
    const int64_t column = part->column * k->stride_w - k->pad_left;
    for (int64_t row = part->row; row < part->last_row; row++) {
        const sp_tap_range taps = sp_plane_taps(p, row);
        const sp_plane_row outputs = {.x = p->x + (row * k->stride_h - k->pad_top) * in_row +
                                           column * SP_BLOCK,
                                      .y = p->y + (row * k->out_w + part->column) * SP_BLOCK,
                                      .offsets = p->offsets,
                                      .first_tap = taps.first,
                                      .last_tap = taps.last,
                                      .step = k->stride_w * SP_BLOCK,
                                      .row = row,
                                      .column = part->column,
                                      .columns = part->last_column - part->column};
        p->run_row(p->kernel, &outputs);
    }
}

/* By copies. */
static inline void sp_plane_run_part(sp_plane *p, const sp_plane_part *part, float *copy)
{
    sp_patch patch = {.most = SP_PATCH_ELEMENTS};
    const sp_conv_constants *k = p->k;
    if (part->row >= part->last_row || part->column >= part->last_column) return;
    sp_patch_choose(&patch, k, SP_BLOCK, 1, part->last_row - part->row,
                    part->last_column - part->column);
    patch.skips_rows = p->skips_padding;
    sp_patch_taps(&patch, p->offsets);
    for (int64_t row = part->row; row < part->last_row; row += patch.rows) {
        const int64_t rows = sp_size_least(patch.rows, part->last_row - row);
        for (int64_t column = part->column; column < part->last_column; column += patch.columns) {
            sp_patch_copy(&patch, true, p->x, 1, row, rows, column, p->padding, copy);
            for (int64_t r = 0; r < rows; r++) {
                const sp_tap_range taps = sp_plane_taps(p, row + r);
                const sp_plane_row outputs = {
                    .x = copy + r * patch.out_row,
                    .y = p->y + ((row + r) * k->out_w + column) * SP_BLOCK,
                    .offsets = p->offsets,
                    .first_tap = taps.first,
                    .last_tap = taps.last,
                    .step = SP_BLOCK,
                    .row = row + r,
                    .column = column,
                    .columns = sp_size_least(patch.columns, part->last_column - column)};
                p->run_row(p->kernel, &outputs);
            }
        }
    }
}

/* The tile's outputs. The tensors are x and y; `padding` is the value of inputs beyond x. */
static inline void sp_plane_run(const sp_tile *tile, const float *x, float *y, float padding,
                                const void *kernel,
                                void (*run_row)(const void *kernel, const sp_plane_row *row))
{
    const sp_blocked_constants *b = tile->constants;
    const sp_conv_constants *k = &b->of;
    const int64_t blocks = (k->groups + SP_BLOCK - 1) / SP_BLOCK;
    const int64_t plane = tile->index[2] * blocks + tile->index[1];
    float copy[SP_PATCH_ELEMENTS];
    sp_plane p = {.k = k,
                  .x = x + plane * k->in_h * k->in_w * SP_BLOCK,
                  .y = y + plane * k->out_h * k->out_w * SP_BLOCK,
                  .padding = padding,
                  .skips_padding = b->skips_padding,
                  .kernel = kernel,
                  .run_row = run_row};
    sp_plane_part all = {.row = sp_tile_first(tile, 0), .last_column = k->out_w};
    all.last_row = sp_tile_end(tile, 0, k->out_h);
    sp_plane_part inner = sp_plane_inner(k);
    if (b->skips_padding) { /* of rows no output has any */
        inner.row = all.row;
        inner.last_row = all.last_row;
    }
    if (inner.row < all.row) inner.row = all.row;
    inner.last_row = sp_size_least(inner.last_row, all.last_row);
    if (!sp_plane_is_direct(k, &all, &inner)) {
        sp_plane_run_part(&p, &all, copy);
        return;
    }
    const sp_plane_part above = {all.row, inner.row, 0, k->out_w};
    const sp_plane_part left = {inner.row, inner.last_row, 0, inner.column};
    const sp_plane_part right = {inner.row, inner.last_row, inner.last_column, k->out_w};
    const sp_plane_part below = {inner.last_row, all.last_row, 0, k->out_w};
    sp_plane_run_part(&p, &above, copy);
    sp_plane_run_part(&p, &left, copy);
    sp_plane_run_inner(&p, &inner);
    sp_plane_run_part(&p, &right, copy);
    sp_plane_run_part(&p, &below, copy);
}

#endif
