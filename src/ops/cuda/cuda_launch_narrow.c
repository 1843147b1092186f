/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of narrow products and convolutions, and of their packing (docs/decisions/0072). */
#include "ops/cuda/cuda_grid.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/pack.h"

typedef struct narrow_tile {
    int64_t rows, columns;
    uint32_t threads, bytes[2]; /* of elements of 2 and of 4 bytes */
} narrow_tile;

#define TILE_BYTES SP_CUDA_NARROW_TILE_BYTES
#define NARROW_TILE(name, rows, columns, warp_rows, warp_columns, groups, stages, left)            \
    {rows,                                                                                         \
     columns,                                                                                      \
     (rows) / (warp_rows) * ((columns) / (warp_columns)) * (groups) * SP_CUDA_LANES,               \
     {TILE_BYTES(rows, columns, groups, stages, left, 2),                                          \
      TILE_BYTES(rows, columns, groups, stages, left, 4)}},
static const narrow_tile narrow_tiles[SP_CUDA_NARROW_TILES] = {
    SP_CUDA_NARROW_TILE_LIST(NARROW_TILE)};
static const narrow_tile packed_tiles[SP_CUDA_PACKED_TILES] = {
    SP_CUDA_PACKED_TILE_LIST(NARROW_TILE)};
static const narrow_tile conv_tiles[SP_CUDA_CONV_TILES] = {SP_CUDA_CONV_TILE_LIST(NARROW_TILE)};
#undef NARROW_TILE
#undef TILE_BYTES

static void set_block(const narrow_tile *tile, uint32_t element_bytes, const sp_gpu_kernel *variant,
                      sp_launch_shape *out)
{
    out->block[0] = tile->threads;
    out->shared_bytes = tile->bytes[element_bytes == 4];
    out->variant = variant;
}

static void set_narrow(const sp_gemm_constants *k, const narrow_tile *tile, uint32_t element_bytes,
                       const sp_gpu_kernel *variant, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_tiles(k->rows, tile->rows), sp_cuda_tiles(k->columns, tile->columns),
                      1, out);
    set_block(tile, element_bytes, variant, out);
}

static int64_t narrow_blocks(const sp_gemm_constants *k, const narrow_tile *tile)
{
    return sp_cuda_tiles(k->rows, tile->rows) * sp_cuda_tiles(k->columns, tile->columns);
}

/* The tile that is expected to be fastest, by measurements (bench/NOTES.md): a deep product whose
 * smallest tiles fit the processors at once, else the smallest tile of which there are not too
 * many. */
static uint32_t pick_narrow(const sp_gemm_constants *k, bool has_groups)
{
    (void)has_groups;
    enum { FEW, DEEP, MIDDLE, LARGE };
    const int64_t enough = SP_CUDA_ENOUGH_BLOCKS;
    if (k->depth >= 1024 && narrow_blocks(k, &narrow_tiles[DEEP]) <= enough) return DEEP;
    if (narrow_blocks(k, &narrow_tiles[FEW]) <= 2 * enough) return FEW;
    return narrow_blocks(k, &narrow_tiles[MIDDLE]) <= enough * 5 / 4 ? MIDDLE : LARGE;
}

/* The largest tile of which there are enough. By warpgroups the last one is the fastest where the
 * first one has more blocks than there are processors. */
static uint32_t pick_packed(const sp_gemm_constants *k, bool has_groups)
{
    uint32_t tile = SP_CUDA_PACKED_TILES - 1;
    const int64_t enough = SP_CUDA_ENOUGH_BLOCKS;
    if (has_groups) return narrow_blocks(k, &packed_tiles[0]) > enough ? tile : 0;
    while (tile > 0 && narrow_blocks(k, &packed_tiles[tile]) < enough * 3 / 4) tile--;
    return tile;
}

/* ---- tiles by warpgroups ---- */

/* A tile's columns, and its time where one of 128 columns takes 20 (bench/NOTES.md). */
typedef struct group_tile {
    int64_t columns, time;
} group_tile;
static const group_tile group_tiles[] = {{128, 20}, {192, 27}};

enum { GROUP_CLUSTERS = SP_CUDA_ENOUGH_BLOCKS / SP_CUDA_GROUP_BLOCKS };

static int64_t group_clusters(const sp_gemm_constants *k, int64_t columns)
{
    const int64_t rows = packed_tiles[SP_CUDA_PACKED_TILES - 1].rows * SP_CUDA_GROUP_BLOCKS;
    return sp_cuda_tiles(k->rows, rows) * sp_cuda_tiles(k->columns, columns);
}

/* Of the cluster that computes the most tiles. */
static int64_t group_time(const sp_gemm_constants *k, const group_tile *tile)
{
    return sp_cuda_tiles(group_clusters(k, tile->columns), GROUP_CLUSTERS) * tile->time;
}

int64_t sp__cuda_group_columns(const sp_gemm_constants *k)
{
    /* A tile of which some columns are scaled takes longer. */
    const bool is_cut = k->is_y_half && k->scaled[1] % 192 != 0 && k->scaled[1] % 128 == 0;
    const bool is_wide = !is_cut && group_time(k, &group_tiles[1]) < group_time(k, &group_tiles[0]);
    return group_tiles[is_wide].columns;
}

/* By the format, whether results are of two bytes, and whether the tile is wide. */
#define VARIANTS(kind, type)                                                                       \
    {&sp__cuda_variant_gemm_##kind##_128_##type, &sp__cuda_variant_gemm_##kind##_192_##type}
static const sp_gpu_kernel *const group_variants[SP_PACK_FORMAT_COUNT][2][2] = {
    [SP_PACK_TF32] = {VARIANTS(packed, tf32)},
    [SP_PACK_F16] = {VARIANTS(packed, f16), VARIANTS(halves, f16)},
    [SP_PACK_BF16] = {VARIANTS(packed, bf16), VARIANTS(halves, bf16)},
};
#undef VARIANTS

void sp__cuda_launch_groups(const sp_gemm_constants *k, int64_t columns, sp_launch_shape *out)
{
    const int64_t clusters = group_clusters(k, columns);
    const int64_t all = clusters < GROUP_CLUSTERS ? clusters : GROUP_CLUSTERS;
    sp__cuda_set_grid(all * SP_CUDA_GROUP_BLOCKS, 1, 1, out);
    out->block[0] = packed_tiles[SP_CUDA_PACKED_TILES - 1].threads;
    out->shared_bytes = columns > 128 ? SP_CUDA_GROUP_BYTES(192) : SP_CUDA_GROUP_BYTES(128);
    out->variant = group_variants[k->b_format][k->is_y_half][columns > 128];
}

/* The first packed tile with results of two bytes. */
static void launch_halves(const sp_gemm_constants *k, sp_launch_shape *out)
{
    const bool is_f16 = k->b_format == SP_PACK_F16;
    set_narrow(k, &packed_tiles[0], 2,
               is_f16 ? &sp__cuda_variant_gemm_halves_f16 : &sp__cuda_variant_gemm_halves_bf16,
               out);
}

static bool is_largest(const narrow_tile *tile)
{
    return tile == &packed_tiles[SP_CUDA_PACKED_TILES - 1];
}

#define NARROW_LAUNCH(kind, type, element_bytes, ...)                                              \
    void sp__cuda_launch_##kind##_##type(const sp_gemm_constants *k, uint32_t tile,                \
                                         sp_launch_shape *out)                                     \
    {                                                                                              \
        static const sp_gpu_kernel *const variants[] = {NULL, __VA_ARGS__};                        \
        set_narrow(k, &kind##_tiles[tile], element_bytes, variants[tile], out);                    \
        if (k->is_y_half) launch_halves(k, out);                                                   \
    }                                                                                              \
    void sp__cuda_tiled_##kind##_##type(const void *constants, uint32_t shared_bytes,              \
                                        sp_launch_shape *out)                                      \
    {                                                                                              \
        const bool has_groups = shared_bytes >= SP_CUDA_GROUP_BYTES(192);                          \
        uint32_t tile = pick_##kind(constants, has_groups);                                        \
        if (kind##_tiles[tile].bytes[(element_bytes) == 4] > shared_bytes) tile = 0;               \
        sp__cuda_launch_##kind##_##type(constants, tile, out);                                     \
        if (!has_groups || !is_largest(&kind##_tiles[tile])) return;                               \
        sp__cuda_launch_groups(constants, sp__cuda_group_columns(constants), out);                 \
    }
#define NARROW_LAUNCHES(type, element_bytes)                                                       \
    NARROW_LAUNCH(narrow, type, element_bytes, &sp__cuda_variant_gemm_narrow_deep_##type,          \
                  &sp__cuda_variant_gemm_narrow_32_##type,                                         \
                  &sp__cuda_variant_gemm_narrow_64_##type)                                         \
    NARROW_LAUNCH(packed, type, element_bytes, &sp__cuda_variant_gemm_packed_wide_##type,          \
                  &sp__cuda_variant_gemm_packed_128_##type)
NARROW_LAUNCHES(tf32, 4)
NARROW_LAUNCHES(f16, 2)
NARROW_LAUNCHES(bf16, 2)

/* ---- convolutions ---- */

static int64_t conv_rows(const sp_conv_constants *k)
{
    return sp_cuda_conv_images(k) * k->out_h * k->out_w;
}

static int64_t conv_blocks(const sp_conv_constants *k, const narrow_tile *tile)
{
    return sp_cuda_tiles(conv_rows(k), tile->rows) * sp_cuda_tiles(k->filters, tile->columns);
}

/* As pick_narrow. */
static uint32_t pick_conv(const sp_conv_constants *k)
{
    enum { FEW, DEEP, MIDDLE, WIDE };
    const int64_t enough = SP_CUDA_ENOUGH_BLOCKS;
    const int64_t depth = k->channels * k->kernel_h * k->kernel_w;
    if (depth >= 512 && conv_blocks(k, &conv_tiles[DEEP]) <= enough) return DEEP;
    if (conv_blocks(k, &conv_tiles[FEW]) <= 2 * enough) return FEW;
    const bool is_wide = k->filters > conv_tiles[MIDDLE].columns;
    return is_wide && conv_blocks(k, &conv_tiles[WIDE]) > enough ? WIDE : MIDDLE;
}

#define CONV_LAUNCH(type, element_bytes)                                                           \
    void sp__cuda_launch_conv_##type(const sp_conv_constants *k, uint32_t tile,                    \
                                     sp_launch_shape *out)                                         \
    {                                                                                              \
        static const sp_gpu_kernel *const variants[] = {                                           \
            NULL, &sp__cuda_variant_conv_narrow_deep_##type,                                       \
            &sp__cuda_variant_conv_narrow_64_##type, &sp__cuda_variant_conv_narrow_wide_##type};   \
        const narrow_tile *of = &conv_tiles[tile];                                                 \
        sp__cuda_set_grid(sp_cuda_tiles(k->filters, of->columns),                                  \
                          sp_cuda_tiles(conv_rows(k), of->rows), 1, out);                          \
        set_block(of, element_bytes, variants[tile], out);                                         \
    }                                                                                              \
    void sp__cuda_tiled_conv_##type(const void *constants, uint32_t shared_bytes,                  \
                                    sp_launch_shape *out)                                          \
    {                                                                                              \
        uint32_t tile = pick_conv(constants);                                                      \
        if (conv_tiles[tile].bytes[(element_bytes) == 4] > shared_bytes) tile = 0;                 \
        sp__cuda_launch_conv_##type(constants, tile, out);                                         \
    }
CONV_LAUNCH(tf32, 4)
CONV_LAUNCH(f16, 2)
CONV_LAUNCH(bf16, 2)

/* ---- packing ---- */

/* A thread for each 16 bytes. */
static void set_narrow_pack(sp_pack_format format, const sp_pack_constants *k, sp_launch_shape *out)
{
    sp__cuda_set_threads((int64_t)(sp__pack_bytes(format, k->depth, k->columns) / 16), out);
}

void sp__cuda_shape_narrow_pack_tf32(const void *constants, sp_launch_shape *out)
{
    set_narrow_pack(SP_PACK_TF32, constants, out);
}

void sp__cuda_shape_narrow_pack_f16(const void *constants, sp_launch_shape *out)
{
    set_narrow_pack(SP_PACK_F16, constants, out);
}
