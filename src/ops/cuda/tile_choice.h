/* SPDX-License-Identifier: Apache-2.0 */
/* Which tiles the blocks of a product have. It may depend on the number of rows, since every tile
 * computes the same expression (docs/decisions/0050-tiles-by-shape.md). */
#ifndef SP_OPS_CUDA_TILE_CHOICE_H
#define SP_OPS_CUDA_TILE_CHOICE_H

#include <stddef.h>

#include "ops/cuda/arch/tiles.h"

/* Shared memory of a block: two chunks of each group, and the chains of all groups but one. */
static inline int64_t sp_cuda_product_bytes(int64_t groups, int64_t rows)
{
    const int64_t chunk = (int64_t)SP_CUDA_CHUNK * (SP_CUDA_LANES + rows);
    return (groups * 2 * chunk + (groups - 1) * rows * SP_CUDA_LANES) * 4;
}

/* The warps of a tile of `rows` rows: more rows for a warp read less shared memory, which is what
 * limits larger tiles; fewer wait less for one another. */
static inline sp_cuda_tile sp_cuda_make_tile(int64_t groups, int64_t rows)
{
    int64_t each = rows <= 2 ? 1 : rows <= 4 ? 2 : rows <= 16 ? 4 : 8;
    while (rows / each > SP_CUDA_WARPS / groups || (groups == 4 && rows <= 4 && each < rows)) {
        each *= 2;
    }
    const sp_cuda_tile tile = {(uint32_t)groups, (uint32_t)(rows / each), (uint32_t)each};
    return tile;
}

/* The tile of a product with `across` tiles of columns in all matrices of a batch, in blocks that
 * have `shared_bytes` of memory. Few rows are spread over many processors. */
static inline sp_cuda_tile sp_cuda_product_tile(int64_t rows, int64_t across, int64_t depth,
                                                int64_t segment, int64_t shared_bytes)
{
    const int64_t segments = sp_cuda_tiles(depth, segment);
    int64_t groups = segments > 2 ? 4 : segments > 1 ? 2 : 1;
    if (rows > 16 && across * sp_cuda_tiles(rows, 32) >= SP_CUDA_ENOUGH_BLOCKS) groups = 1;
    const int has_many = across * sp_cuda_tiles(rows, 64) >= SP_CUDA_ENOUGH_BLOCKS;
    const int64_t most = groups == 4 ? 16 : groups == 1 && has_many ? 64 : 32;
    int64_t each = 1;
    while (each < rows && each < most &&
           across * sp_cuda_tiles(rows, each) > SP_CUDA_ENOUGH_BLOCKS / 2) {
        each *= 2;
    }
    while (sp_cuda_product_bytes(groups, each) > shared_bytes && groups * each > 1) {
        if (groups > 1) groups /= 2;
        else each /= 2;
    }
    return sp_cuda_make_tile(groups, each);
}

/* Must the sums of a square wait: for another segment, or for an activation that is long? */
static inline int sp_cuda_square_has_sums(int64_t depth, int64_t segment, uint8_t activation)
{
    return depth > segment ||
           (activation != SP_ACTIVATION_NONE && activation != SP_ACTIVATION_RELU);
}

/* The side of the largest square of which there are enough; 0: none. The larger squares need one
 * for each processor, and a depth for which their many sums pay. */
static inline int64_t sp_cuda_square_side(int64_t rows, int64_t columns, int64_t matrices,
                                          int64_t depth, int64_t shared_bytes)
{
    for (int64_t side = 128; side >= 64; side /= 2) {
        const int64_t count = sp_cuda_tiles(rows, side) * sp_cuda_tiles(columns, side) * matrices;
        const int64_t enough = (int64_t)SP_CUDA_ENOUGH_BLOCKS * (side == 128 ? 15 : 12) / 16;
        const int is_mostly_full = rows > side / 2 && columns > side / 2;
        const int is_deep = side == 64 || depth >= (int64_t)8 * SP_CUDA_SQUARE_DEPTH;
        if (is_mostly_full && is_deep && count >= enough &&
            shared_bytes >= SP_CUDA_SQUARE_BYTES(side, 1)) {
            return side;
        }
    }
    return 0;
}

/* Blocks that share the segments of a product's tiles; 0: each tile has one. Teams exchange chains,
 * which pays if a block computes several segments; pairs take the place of tiles of some rows where
 * they are one block for each processor. */
static inline uint32_t sp_cuda_gemm_blocks(const sp_gemm_constants *k, int64_t side,
                                           int64_t shared_bytes)
{
    const int64_t tiles = sp_cuda_tiles(k->rows, SP_CUDA_TEAM_ROWS) *
                          sp_cuda_tiles(k->columns, SP_CUDA_TEAM_COLUMNS) *
                          sp_cuda_gemm_matrices(k);
    const int64_t segments = sp_cuda_tiles(k->depth, SP_GEMM_SEGMENT);
    const int is_mostly_full =
        k->rows > SP_CUDA_TEAM_ROWS / 2 && k->columns > SP_CUDA_TEAM_COLUMNS / 2;
    if (!is_mostly_full || shared_bytes < (int64_t)SP_CUDA_CLUSTER_BYTES || segments < 4) return 0;
    const int64_t enough = SP_CUDA_ENOUGH_BLOCKS, least = enough * 3 / 4, most = enough * 8;
    const int64_t blocks = segments < 8 ? SP_CUDA_PAIR : SP_CUDA_TEAM;
    if (blocks == SP_CUDA_PAIR && side > 0) return 0;
    return tiles * blocks >= least && tiles * blocks <= most ? (uint32_t)blocks : 0;
}

static inline sp_cuda_tile sp_cuda_team_tile(uint32_t blocks)
{
    const sp_cuda_tile tile = {0, blocks, 0};
    return tile;
}

/* The tile of a matrix product: of several blocks, or the largest square of which there are enough,
 * or some rows. */
static inline sp_cuda_tile sp_cuda_gemm_tile(const sp_gemm_constants *k, int64_t shared_bytes)
{
    const int64_t matrices = sp_cuda_gemm_matrices(k);
    const int64_t side = sp_cuda_square_side(k->rows, k->columns, matrices, k->depth, shared_bytes);
    const uint32_t blocks = sp_cuda_gemm_blocks(k, side, shared_bytes);
    if (blocks > 0) return sp_cuda_team_tile(blocks);
    if (side > 0) {
        const sp_cuda_tile tile = {0, 0, (uint32_t)side};
        return tile;
    }
    return sp_cuda_product_tile(k->rows, sp_cuda_tiles(k->columns, SP_CUDA_LANES) * matrices,
                                k->depth, SP_GEMM_SEGMENT, shared_bytes);
}

/* Is it one matrix of rows by packed panels, with elements whose offsets have 31 bits? */
static inline int sp_cuda_gemm_is_plain(const sp_gemm_constants *k)
{
    const int64_t most = (int64_t)1 << 30;
    return k->batch_rank == 0 && k->a_depth == 1 && k->a_row == k->depth &&
           k->b_format == SP_PACK_F32 && k->rows < most && k->columns < most && k->depth < most &&
           (k->rows + 1) * k->depth < most && (k->columns + SP_GEMM_PANEL) * k->depth < most &&
           sp_cuda_tiles(k->columns, SP_CUDA_LANES) < SP_CUDA_MAX_OUTER_BLOCKS;
}

/* Do 31 bits hold each offset, and each coordinate in the padding? A chunk's loads go up to 32
 * planes beyond the input, where nothing is read. */
static inline int sp_cuda_conv_is_small(const sp_conv_constants *k)
{
    const int64_t most = (int64_t)1 << 28;
    const int64_t sizes[] = {k->planes,     k->channels,   k->in_h,     k->in_w,     k->out_h,
                             k->out_w,      k->kernel_h,   k->kernel_w, k->stride_h, k->stride_w,
                             k->dilation_h, k->dilation_w, k->pad_top,  k->pad_left};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] >= most) return 0;
    }
    const int64_t in = k->in_h * k->in_w, out = k->out_h * k->out_w;
    const int64_t kernel = k->kernel_h * k->kernel_w;
    const int64_t images = k->filters > 0 ? k->planes / k->filters : 0;
    return in < most / 32 && out < most / 32 && kernel < most &&
           k->kernel_h * k->dilation_h < most && k->kernel_w * k->dilation_w < most &&
           k->out_h * k->stride_h < most && k->out_w * k->stride_w < most &&
           k->planes < most / (out + 1) && images * k->channels < most / (in + 1) &&
           k->groups * k->filters < most / (k->channels * kernel + 1);
}

/* Can a convolution be computed by squares, whose loads count the rows and columns of a window in
 * bits, and a segment's taps in a table? */
static inline int sp_cuda_conv_has_squares(const sp_conv_constants *k)
{
    return sp_cuda_conv_is_small(k) && k->kernel_h <= 32 && k->kernel_w <= 32 &&
           k->kernel_h * k->kernel_w <= k->segment && k->groups <= SP_CUDA_MAX_OUTER_BLOCKS &&
           k->filters <= (int64_t)SP_CUDA_MAX_OUTER_BLOCKS * 64;
}

/* Blocks that share the segments of a convolution's tiles; 0: each tile has one. */
static inline uint32_t sp_cuda_conv_blocks(const sp_conv_constants *k, int64_t shared_bytes)
{
    const int64_t pixels = k->out_h * k->out_w * sp_cuda_conv_images(k);
    const int64_t tiles = sp_cuda_tiles(pixels, SP_CUDA_TEAM_ROWS) *
                          sp_cuda_tiles(k->filters, SP_CUDA_TEAM_COLUMNS) * k->groups;
    const int64_t segments = sp_cuda_tiles(k->channels * k->kernel_h * k->kernel_w, k->segment);
    const int is_mostly_full =
        k->filters > SP_CUDA_TEAM_COLUMNS / 2 && pixels > SP_CUDA_TEAM_ROWS / 2;
    if (!is_mostly_full || shared_bytes < (int64_t)SP_CUDA_CLUSTER_BYTES || segments < 4) return 0;
    const int64_t enough = SP_CUDA_ENOUGH_BLOCKS, least = enough / 2, most = enough * 4;
    const int is_team = segments >= 8 && tiles * SP_CUDA_TEAM <= most;
    const int64_t blocks = is_team ? SP_CUDA_TEAM : SP_CUDA_TEAM / 2;
    return tiles * blocks >= least && tiles * blocks <= most ? (uint32_t)blocks : 0;
}

/* Has it a direct form? Sums are one chain there, and windows have a width that is compiled. */
static inline int sp_cuda_conv_has_direct(const sp_conv_constants *k)
{
    const int has_width = (k->kernel_w == 3 && (k->stride_w == 1 || k->stride_w == 2)) ||
                          (k->kernel_w == 5 && k->stride_w == 1);
    return sp_cuda_conv_is_small(k) && has_width && k->kernel_h <= 5 && k->stride_h <= 2 &&
           k->dilation_h == 1 && k->dilation_w == 1 &&
           k->channels * k->kernel_h * k->kernel_w <= k->segment &&
           sp_cuda_conv_images(k) * k->groups <= SP_CUDA_MAX_OUTER_BLOCKS &&
           k->filters <= (int64_t)SP_CUDA_MAX_OUTER_BLOCKS * SP_CUDA_DIRECT_HEIGHT;
}

/* Words across the parts of an image: those of a row, up to all of a block. */
static inline int64_t sp_cuda_direct_across(const sp_conv_constants *k)
{
    int64_t across = 1;
    while (across < SP_CUDA_DIRECT_WORDS && across * SP_CUDA_DIRECT_COLUMNS < k->out_w) across *= 2;
    return across;
}

/* Parts of an image. */
static inline int64_t sp_cuda_direct_parts(const sp_conv_constants *k, int64_t across)
{
    return sp_cuda_tiles(k->out_w, across * SP_CUDA_DIRECT_COLUMNS) *
           sp_cuda_tiles(k->out_h, SP_CUDA_DIRECT_WORDS / across);
}

/* Are there enough blocks of the direct form, and are they mostly full? */
static inline int sp_cuda_conv_is_direct(const sp_conv_constants *k, int64_t shared_bytes)
{
    if (!sp_cuda_conv_has_direct(k)) return 0;
    const int64_t across = sp_cuda_direct_across(k), parts = sp_cuda_direct_parts(k, across);
    const int64_t heights = sp_cuda_tiles(k->filters, SP_CUDA_DIRECT_HEIGHT);
    const int64_t outputs =
        parts * heights * SP_CUDA_DIRECT_WORDS * SP_CUDA_DIRECT_COLUMNS * SP_CUDA_DIRECT_HEIGHT;
    return parts * heights * k->groups * sp_cuda_conv_images(k) >= SP_CUDA_ENOUGH_BLOCKS &&
           k->out_h * k->out_w * k->filters >= outputs / 2 &&
           sp_cuda_direct_bytes(k, across) <= shared_bytes;
}

/* The tile of a convolution, whose rows are filters and whose columns are pixels: of all images for
 * squares. */
static inline sp_cuda_tile sp_cuda_conv_tile(const sp_conv_constants *k, int64_t shared_bytes)
{
    const int64_t pixels = k->out_h * k->out_w, depth = k->channels * k->kernel_h * k->kernel_w;
    if (sp_cuda_conv_is_direct(k, shared_bytes)) {
        const sp_cuda_tile tile = {0, (uint32_t)sp_cuda_direct_across(k), SP_CUDA_DIRECT_HEIGHT};
        return tile;
    }
    const uint32_t blocks = sp_cuda_conv_has_squares(k) ? sp_cuda_conv_blocks(k, shared_bytes) : 0;
    if (blocks > 0) return sp_cuda_team_tile(blocks);
    const int64_t side =
        sp_cuda_conv_has_squares(k)
            ? sp_cuda_square_side(k->filters, pixels * sp_cuda_conv_images(k), k->groups, depth,
                                  shared_bytes - (int64_t)SP_CUDA_TAPS_BYTES)
            : 0;
    if (side > 0) {
        const sp_cuda_tile tile = {0, 0, (uint32_t)side};
        return tile;
    }
    const int64_t planes = k->filters > 0 ? k->planes / k->filters : 0;
    return sp_cuda_product_tile(k->filters, sp_cuda_tiles(pixels, SP_CUDA_LANES) * planes, depth,
                                k->segment, shared_bytes);
}

#endif
