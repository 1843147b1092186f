/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of convolutions and pools of plain images. */
#include "ops/cpu/conv/conv_pixels.h"
#include "ops/cpu/tiling.h"

/* Grid (outputs, groups, images). */
static void conv_tiling(const sp_conv_constants *k, int64_t depth, int64_t kernel_d, sp_tiling *out)
{
    const int64_t taps = k->channels * kernel_d * k->kernel_h * k->kernel_w;
    const int64_t blocks = sp_tiling_products(SP_CONV_PIXELS, k->filters, taps);
    const int64_t filters = k->groups * k->filters;
    sp_tiling_cover(out, 0, depth * k->out_h * k->out_w, blocks * SP_CONV_PIXELS);
    sp_tiling_each(out, 1, k->groups);
    sp_tiling_each(out, 2, filters > 0 ? k->planes / filters : 0);
}

void sp__tiling_conv(const void *constants, sp_tiling *out)
{
    conv_tiling(constants, 1, 1, out);
}

void sp__tiling_conv_3d(const void *constants, sp_tiling *out)
{
    const sp_conv_3d_constants *k = constants;
    conv_tiling(&k->plane, k->out_d, k->kernel_d, out);
}

/* Of planes. A multiply-add costs about four times that of the general kernel. */
void sp__tiling_depthwise(const void *constants, sp_tiling *out)
{
    const sp_conv_constants *k = constants;
    sp_tiling_line(out, k->planes,
                   sp_tiling_products(4, k->kernel_h * k->kernel_w, k->out_h * k->out_w));
}

/* Rows of outputs along the last dimension, of all planes. */
static int64_t window_rows(const sp_window_constants *k)
{
    return k->planes * k->out[0] * k->out[1];
}

static int64_t window_taps(const sp_window_constants *k)
{
    return k->kernel[0] * k->kernel[1] * k->kernel[2];
}

/* An output uses only the taps of one phase. */
void sp__tiling_conv_transpose(const void *constants, sp_tiling *out)
{
    const sp_conv_transpose_constants *k = constants;
    const sp_window_constants *window = &k->window;
    sp_tiling_line(out, window_rows(window),
                   sp_tiling_products(4, k->channels * window_taps(window), window->out[2]));
}

/* ---- pools: a tap costs units of 1/32 ns, an output a few taps more ---- */

void sp__tiling_max_pool(const void *constants, sp_tiling *out)
{
    const sp_pool_constants *k = constants;
    sp_tiling_line(out, k->planes,
                   sp_tiling_products(8, k->kernel_h * k->kernel_w + 4, k->out_h * k->out_w));
}

static void window_tiling(const sp_window_constants *k, int64_t tap_cost, sp_tiling *out)
{
    const int64_t taps = window_taps(k);
    sp_tiling_line(
        out, window_rows(k),
        sp_tiling_products(tap_cost, (taps < UINT32_MAX ? taps : UINT32_MAX) + 4, k->out[2]));
}

/* About 1 ns, in scalar code. */
void sp__tiling_max_pool_any(const void *constants, sp_tiling *out)
{
    window_tiling(constants, 32, out);
}

void sp__tiling_average_pool(const void *constants, sp_tiling *out)
{
    window_tiling(constants, 8, out);
}
