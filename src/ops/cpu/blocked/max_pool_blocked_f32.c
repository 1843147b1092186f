/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of images in blocks of channels. */
#include "ops/cpu/blocked/max_window.h"
#include "ops/cpu/blocked/plane.h"

static void run_row(const void *kernel, const sp_plane_row *r)
{
    const sp_conv_constants *k = kernel;
    const sp_max_window w = {
        .taps = k->kernel_h * k->kernel_w, .step = r->step, .offsets = r->offsets};
    sp_max_row(&w, r->x, r->y, r->columns);
}

sp_status SP_KERNEL(max_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    sp_plane_run(tile, tile->bindings[0], tile->bindings[1], -__builtin_inff(), &b->of, run_row);
    return SP_OK;
}
