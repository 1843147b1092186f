/* SPDX-License-Identifier: Apache-2.0 */
/* A band of the results of a convolution, with their padding, of which the maxima over windows are
 * stored: it moves down the image, and rows that two windows share are computed once. */
#ifndef SP_OPS_CPU_BLOCKED_BAND_H
#define SP_OPS_CPU_BLOCKED_BAND_H

#include "ops/cpu/blocked/max_window.h"

/* Some columns of the maxima, and of the results that their windows reach, padding included; so
 * many rows of those are in memory at a time. */
typedef struct sp_band {
    const sp_conv_constants *pool;
    sp_max_window window;        /* over `offsets` */
    int64_t blocks;              /* of filters */
    int64_t column, columns;     /* of the maxima */
    int64_t in_column, in_width; /* of the results */
    int64_t rows;                /* of the results in memory */
    int64_t in_row, in_end;      /* those that are there now */
    float *results;              /* [blocks][rows][in_width][SP_BLOCK] */
    int64_t offsets[SP_POOLED_TAPS];
} sp_band;

static inline int64_t sp_band_width(const sp_conv_constants *pool, int64_t columns)
{
    return (columns - 1) * pool->stride_w + sp_window_span(pool->kernel_w, pool->dilation_w);
}

/* The most columns whose windows fit, and rows. The lowering has seen to it that one column does.
 */
static inline void sp_band_init(sp_band *b, const sp_conv_constants *pool, int64_t blocks,
                                float *results)
{
    const int64_t span = sp_window_span(pool->kernel_h, pool->dilation_h);
    *b = (sp_band){.pool = pool, .blocks = blocks, .results = results};
    for (int64_t pieces = 1;; pieces *= 2) {
        b->columns = (pool->out_w + pieces - 1) / pieces;
        b->in_width = sp_band_width(pool, b->columns);
        b->rows = SP_POOLED_ELEMENTS / (blocks * b->in_width * SP_BLOCK);
        if (b->columns == 1 || b->rows >= span) break;
    }
    sp_window_taps(pool, b->in_width * SP_BLOCK, b->offsets);
    b->window = (sp_max_window){.taps = pool->kernel_h * pool->kernel_w,
                                .step = pool->stride_w * SP_BLOCK,
                                .offsets = b->offsets};
}

/* Forgets the rows before `row`. */
static inline void sp_band_move(sp_band *b, int64_t row)
{
    const int64_t kept = b->in_end > row ? b->in_end - row : 0;
    const int64_t width = b->in_width * SP_BLOCK;
    const bool moves = kept > 0 && row != b->in_row && !SP_PLANTED(band_stays);
    for (int64_t f = 0; f < b->blocks && moves; f++) {
        float *plane = b->results + f * b->rows * width;
        memmove(plane, plane + (row - b->in_row) * width, (size_t)(kept * width) * sizeof *plane);
    }
    b->in_row = row;
    b->in_end = row + kept;
}

static inline void sp_fill_padding(float *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = -__builtin_inff();
}

/* What of rows [first, last) is no result is padding. */
static inline void sp_band_pad(const sp_band *b, int64_t first, int64_t last)
{
    const int64_t height = b->pool->in_h, width = b->pool->in_w;
    const int64_t left = b->in_column < 0 ? -b->in_column : 0;
    const int64_t beyond = b->in_column + b->in_width - width;
    const int64_t right = beyond > 0 ? beyond : 0;
    for (int64_t f = 0; f < b->blocks; f++) {
        for (int64_t row = first; row < last; row++) {
            float *to = b->results + (f * b->rows + row - b->in_row) * b->in_width * SP_BLOCK;
            if (row < 0 || row >= height || left + right >= b->in_width) {
                sp_fill_padding(to, b->in_width * SP_BLOCK);
                continue;
            }
            sp_fill_padding(to, left * SP_BLOCK);
            sp_fill_padding(to + (b->in_width - right) * SP_BLOCK, right * SP_BLOCK);
        }
    }
}

#endif
