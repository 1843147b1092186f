/* SPDX-License-Identifier: Apache-2.0 */
/* Average over windows of images in blocks of channels; the same sum and quotient as
 * average_pool_f32. The lanes of a vector are channels. */
#include "ops/cpu/blocked/plane.h"
#include "ops/cpu/reduce/lane_tree.h"

typedef struct pool {
    const sp_average_blocked_constants *k;
    int64_t taps;
} pool;

/* Taps along one axis that the average of output `index` counts. `end`: the padding behind. */
static int64_t count_taps(const pool *p, int64_t first, int64_t dilation, int64_t kernel,
                          int64_t size, int64_t before, int64_t end)
{
    if (!p->k->counts_padding) before = end = 0;
    const sp_tap_range range = sp_clip_taps(first + before, dilation, kernel, size + before + end);
    return range.last - range.first;
}

static int64_t count_rows(const pool *p, int64_t row)
{
    const sp_conv_constants *k = &p->k->window.of;
    return count_taps(p, row * k->stride_h - k->pad_top, k->dilation_h, k->kernel_h, k->in_h,
                      k->pad_top, p->k->pad_bottom);
}

static int64_t count_columns(const pool *p, int64_t column)
{
    const sp_conv_constants *k = &p->k->window.of;
    return count_taps(p, column * k->stride_w - k->pad_left, k->dilation_w, k->kernel_w, k->in_w,
                      k->pad_left, p->k->pad_right);
}

/* Padding is +0, which changes no lane: none is -0. */
static SP_ALWAYS_INLINE sp_vector sum_taps(const int64_t taps, const int64_t *offsets,
                                           const float *x)
{
    sp_vector lanes[SP_LANES];
#pragma GCC unroll 16
    for (int64_t t = 0; t < SP_LANES; t++) {
        if (t < taps) lanes[t] = sp_vector_splat(0) + sp_vector_load(x + offsets[t]);
    }
    for (int64_t t = SP_LANES; t < taps; t++) {
        lanes[t % SP_LANES] += sp_vector_load(x + offsets[t]);
    }
    return sp_lane_tree_sum(taps, lanes);
}

static void run_row(const void *kernel, const sp_plane_row *r)
{
    const pool *p = kernel;
    const int64_t rows = count_rows(p, r->row), *offsets = r->offsets;
    const float *x = r->x;
    float *y = r->y;
    for (int64_t i = 0; i < r->columns; i++, x += r->step, y += SP_BLOCK) {
        const sp_vector count = sp_vector_splat((float)(rows * count_columns(p, r->column + i)));
        for (int64_t v = 0; v < SP_BLOCK; v += SP_VECTOR) {
            sp_vector sum;
            if (p->taps == 9) sum = sum_taps(9, offsets, x + v);
            else if (p->taps == 4) sum = sum_taps(4, offsets, x + v);
            else sum = sum_taps(p->taps, offsets, x + v);
            sp_vector_store(y + v, sp_vector_canonical(sum / count));
        }
    }
}

sp_status SP_KERNEL(average_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_average_blocked_constants *k = tile->constants;
    const pool p = {.k = k, .taps = k->window.of.kernel_h * k->window.of.kernel_w};
    sp_plane_run(tile, tile->bindings[0], tile->bindings[1], 0, &p, run_row);
    return SP_OK;
}
