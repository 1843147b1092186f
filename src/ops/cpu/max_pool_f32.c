/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of one or two spatial dimensions. Padding counts as -inf, a window that is
 * all padding gives -inf. A NaN in the window gives the canonical NaN; of +0 and -0 the first in
 * window order stays. */
#include "ops/cpu/isa.h"

/* The taps of a window, first included, last not, that lie inside [0, size). */
typedef struct tap_range {
    int64_t first, last;
} tap_range;

static tap_range clip_taps(int64_t start, int64_t step, int64_t taps, int64_t size)
{
    tap_range range = {0, taps};
    if (start < 0) range.first = (-start + step - 1) / step;
    if (start + (taps - 1) * step >= size) {
        range.last = size > start ? (size - start + step - 1) / step : 0;
    }
    if (range.first > range.last) range.first = range.last;
    return range;
}

static float pool_window(const sp_pool_constants *k, const float *x, tap_range rows, int64_t y0,
                         int64_t x0)
{
    const tap_range columns = clip_taps(x0, k->dilation_w, k->kernel_w, k->in_w);
    float best = -__builtin_inff();
    for (int64_t i = rows.first; i < rows.last; i++) {
        const float *row = x + (y0 + i * k->dilation_h) * k->in_w + x0;
        for (int64_t j = columns.first; j < columns.last; j++) {
            const float value = row[j * k->dilation_w];
            best = value > best || value != value ? value : best;
        }
    }
    return sp_canonical(best);
}

sp_status SP_KERNEL(max_pool_f32)(const sp_tile *tile)
{
    const sp_pool_constants *k = tile->constants;
    const float *x = tile->bindings[0];
    float *y = tile->bindings[1];
    const int64_t first = tile->index[0] * k->tile_planes;
    const int64_t last = first + k->tile_planes < k->planes ? first + k->tile_planes : k->planes;
    for (int64_t plane = first; plane < last; plane++) {
        const float *from = x + plane * k->in_h * k->in_w;
        float *to = y + plane * k->out_h * k->out_w;
        for (int64_t i = 0; i < k->out_h; i++) {
            const int64_t y0 = i * k->stride_h - k->pad_top;
            const tap_range rows = clip_taps(y0, k->dilation_h, k->kernel_h, k->in_h);
            for (int64_t j = 0; j < k->out_w; j++) {
                *to++ = pool_window(k, from, rows, y0, j * k->stride_w - k->pad_left);
            }
        }
    }
    return SP_OK;
}
