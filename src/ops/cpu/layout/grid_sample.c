/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample of images: each pixel of the output is read at a place of the input that the grid
 * names. A NaN gives the canonical NaN. */
#include "ops/cpu/arch/math_f64.h"
#include "ops/cpu/arch/typed.h"
#include "ops/math/grid_sample.h"

static void sample_pixel(const sp_tile *tile, int64_t at)
{
    const sp_grid_sample_constants *k = tile->constants;
    const float *grid = (const float *)tile->bindings[1] + 2 * at;
    const int64_t first = at / k->pixels * k->channels, pixel = at % k->pixels;
    const float *x = (const float *)tile->bindings[0] + first * k->in_h * k->in_w;
    float *y = (float *)tile->bindings[2] + first * k->pixels + pixel;
    const sp_grid_taps w = sp_grid_taps_of(grid[0], k->in_w, k);
    const sp_grid_taps h = sp_grid_taps_of(grid[1], k->in_h, k);
    for (int64_t c = 0; c < k->channels; c++) {
        const float *plane = x + c * k->in_h * k->in_w;
        y[c * k->pixels] = sp_canonical(sp_grid_value(plane, k->in_w, &h, &w));
    }
}

sp_status SP_KERNEL(grid_sample_f32)(const sp_tile *tile)
{
    const sp_grid_sample_constants *k = tile->constants;
    const int64_t first = sp_tile_first(tile, 0);
    const int64_t end = sp_tile_end(tile, 0, k->count);
    for (int64_t at = first; at < end; at++) sample_pixel(tile, at);
    return SP_OK;
}
