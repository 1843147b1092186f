/* SPDX-License-Identifier: Apache-2.0 */
/* The taps of a convolution in blocks of channels that are padding for a row of outputs, or for its
 * ends. Where weights are finite they add zeros and are left out: a sixth of the taps of 3 x 3 in
 * an image of 8 x 8. */
#ifndef SP_OPS_CPU_BLOCKED_CONV_EDGES_H
#define SP_OPS_CPU_BLOCKED_CONV_EDGES_H

#include "ops/cpu/blocked/blocked_block.h"

/* Is the input of an output at this kernel column padding? */
static inline bool sp_edge_is_padding(const sp_conv_constants *k, int64_t out, int64_t column)
{
    const int64_t at = out * k->stride_w - k->pad_left + column * k->dilation_w;
    return at < 0 || at >= k->in_w - SP_PLANTED(last_is_padding);
}

/* By tap of so many channels, the ends of a row of outputs that read padding. */
static inline void sp_edge_sides(const sp_conv_constants *k, int64_t channels, uint8_t *sides)
{
    const int64_t rows = channels * k->kernel_h;
    for (int64_t column = 0; column < k->kernel_w; column++) {
        const unsigned left = sp_edge_is_padding(k, 0, column) ? SP_BLOCKED_LEFT : 0;
        const unsigned right = sp_edge_is_padding(k, k->out_w - 1, column) ? SP_BLOCKED_RIGHT : 0;
        for (int64_t i = 0; i < rows; i++) {
            sides[i * k->kernel_w + column] = (uint8_t)(left | right);
        }
    }
}

/* The taps of a row of outputs that are not in rows of padding. */
static inline void sp_edge_runs(const sp_conv_constants *k, int64_t row, sp_blocked_segment *s)
{
    const int64_t taps = k->kernel_h * k->kernel_w;
    const sp_tap_range rows =
        sp_clip_taps(row * k->stride_h - k->pad_top, k->dilation_h, k->kernel_h, k->in_h);
    s->first = rows.first * k->kernel_w;
    s->run = (rows.last - rows.first) * k->kernel_w;
    s->gap = taps - s->run;
    s->runs = s->gap > 0 ? s->depth / taps : 1;
    if (s->gap == 0) s->run = s->depth;
}

#endif
