/* SPDX-License-Identifier: Apache-2.0 */
/* Maximum over windows of images in blocks of channels. */
#include "ops/cpu/blocked/max_window.h"

static void run_row(const void *kernel, const float *x, float *y, sp_patch_row outputs)
{
    sp_max_row(kernel, x, y, outputs.columns);
}

sp_status SP_KERNEL(max_pool_blocked_f32)(const sp_tile *tile)
{
    const sp_blocked_constants *b = tile->constants;
    sp_max_window w = {.taps = b->of.kernel_h * b->of.kernel_w, .step = SP_BLOCK};
    sp_patch patch;
    sp_patch_begin(&patch, tile, w.offsets);
    sp_patch_run(&patch, tile, tile->bindings[0], tile->bindings[1], -__builtin_inff(), &w,
                 run_row);
    return SP_OK;
}
