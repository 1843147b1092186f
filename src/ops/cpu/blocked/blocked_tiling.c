/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of images in blocks of channels. */
#include "ops/blocked.h"

#include "base/size.h"
#include "ops/cpu/tiling.h"

/* Outputs of a tile, at least: each tile reads all weights of its filters. */
#define TILE_PIXELS 64
/* Blocks of filters of a tile, at least: each tile copies its input. */
#define TILE_BLOCKS 2
/* Rows of maxima of a tile, at least: tiles compute the rows between them twice. */
#define POOLED_ROWS 8

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- convolutions ---- */

/* About SP_TILE_PRODUCTS multiply-adds: of outputs first, then of filters. The second size is rows
 * of outputs, or columns of the only row. */
static void choose_conv(const sp_conv_constants *k, uint32_t size[2])
{
    const int64_t all_pixels = k->out_h * k->out_w, blocks = sp__channel_blocks(k->filters);
    const double products = (double)all_pixels * (double)k->filters * (double)k->channels *
                            (double)(k->kernel_h * k->kernel_w);
    const double wanted = products / SP_TILE_PRODUCTS + 1;
    const int64_t tiles = wanted < 4096 ? (int64_t)wanted : 4096;
    const int64_t splits = sp_size_least(tiles, quotient_up(all_pixels, TILE_PIXELS));
    const int64_t outputs = k->out_h == 1 ? quotient_up(k->out_w, splits)
                                          : quotient_up(k->out_h, sp_size_least(splits, k->out_h));
    const int64_t parts =
        sp_size_least(quotient_up(tiles, splits), quotient_up(blocks, TILE_BLOCKS));
    size[0] = sp_tiling_number((uint64_t)quotient_up(blocks, parts));
    size[1] = sp_tiling_number((uint64_t)outputs);
}

/* Grid (blocks of filters of all groups, outputs, images): joined tiles that are next to each other
 * share the copy of their input. No tile has blocks of two groups. */
void sp__tiling_conv_blocked(const void *constants, sp_tiling *out)
{
    const sp_blocked_constants *b = constants;
    const sp_conv_constants *k = &b->of;
    uint32_t size[2];
    choose_conv(k, size);
    sp_tiling_cover(out, 0, sp__channel_blocks(k->filters), size[0]);
    out->grid[0] = sp_tiling_number((uint64_t)k->groups * out->grid[0]);
    sp_tiling_cover(out, 1, k->out_h == 1 ? k->out_w : k->out_h, size[1]);
    sp_tiling_each(out, 2, b->images);
}

/* Grid (blocks of filters, rows of the maxima, images). */
void sp__tiling_conv_pool(const void *constants, sp_tiling *out)
{
    const sp_conv_pool_constants *b = constants;
    const sp_conv_constants *k = &b->conv.of, *pool = &b->pool;
    uint32_t size[2];
    choose_conv(k, size);
    const int64_t rows = (k->out_h == 1 ? 1 : size[1]) / pool->stride_h;
    sp_tiling_cover(out, 0, sp__channel_blocks(k->filters), size[0]);
    sp_tiling_cover(out, 1, pool->out_h,
                    sp_size_least(rows > POOLED_ROWS ? rows : POOLED_ROWS, pool->out_h));
    sp_tiling_each(out, 2, b->conv.images);
}

/* Grid (rows, groups, images). */
void sp__tiling_conv_rows(const void *constants, sp_tiling *out)
{
    const sp_blocked_constants *b = constants;
    const sp_conv_constants *k = &b->of;
    const double row = (double)k->out_w * (double)k->filters * (double)k->channels *
                       (double)(k->kernel_h * k->kernel_w);
    const double most = SP_TILE_PRODUCTS / row + 1;
    sp_tiling_cover(out, 0, k->out_h, most < (double)k->out_h ? (int64_t)most : k->out_h);
    sp_tiling_each(out, 1, k->groups);
    sp_tiling_each(out, 2, b->images);
}

/* Grid (rows, blocks, images), for a kernel whose multiply-add costs `cost` times that of a
 * product. A group is a channel. */
static void tile_rows(const sp_blocked_constants *b, int64_t cost, sp_tiling *out)
{
    const sp_conv_constants *k = &b->of;
    const int64_t row = k->out_w * SP_CHANNEL_BLOCK;
    const int64_t rows = sp_tiling_products(cost, k->kernel_h * k->kernel_w, row);
    sp_tiling_cover(out, 0, k->out_h, sp_size_least(rows, k->out_h));
    sp_tiling_each(out, 1, sp__channel_blocks(k->groups));
    sp_tiling_each(out, 2, b->images);
}

void sp__tiling_depthwise_blocked(const void *constants, sp_tiling *out)
{
    tile_rows(constants, 2, out);
}

_Static_assert(offsetof(sp_average_blocked_constants, window) == 0, "as those of maxima");

void sp__tiling_pool_blocked(const void *constants, sp_tiling *out)
{
    tile_rows(constants, 4, out);
}

/* ---- pixel by pixel: grid (pixels, blocks, images) ---- */

static void tile_pixels(int64_t pixels, int64_t blocks, int64_t images, sp_tiling *out)
{
    sp_tiling_cover(out, 0, pixels, SP_TILE_ELEMENTS / SP_CHANNEL_BLOCK);
    sp_tiling_each(out, 1, blocks);
    sp_tiling_each(out, 2, images);
}

void sp__tiling_norm_blocked(const void *constants, sp_tiling *out)
{
    const sp_norm_blocked_constants *k = constants;
    tile_pixels(k->pixels, sp__channel_blocks(k->channels), k->images, out);
}

void sp__tiling_channel_op(const void *constants, sp_tiling *out)
{
    const sp_channel_op_constants *k = constants;
    tile_pixels(k->pixels, sp__channel_blocks(k->channels), k->images, out);
}

void sp__tiling_channel_chain(const void *constants, sp_tiling *out)
{
    const sp_channel_chain_constants *k = constants;
    tile_pixels(k->pixels, sp__channel_blocks(k->channels), k->images, out);
}

void sp__tiling_channels(const void *constants, sp_tiling *out)
{
    const sp_channels_constants *k = constants;
    tile_pixels(k->pixels, sp__channel_blocks(k->channels), k->images, out);
}

void sp__tiling_channels_move(const void *constants, sp_tiling *out)
{
    const sp_channels_move_constants *k = constants;
    tile_pixels(k->pixels, k->y_blocks, k->images, out);
}

/* A mean is one tile's. */
void sp__tiling_mean_blocked(const void *constants, sp_tiling *out)
{
    const sp_channels_constants *k = constants;
    sp_tiling_cover(out, 0, 1, 1);
    sp_tiling_each(out, 1, sp__channel_blocks(k->channels));
    sp_tiling_each(out, 2, k->images);
}
