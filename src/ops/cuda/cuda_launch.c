/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/cuda/cuda_launch.h"

#include "ops/cuda/recurrent/team_size.h"
#include "ops/cuda/cuda_grid.h"
#include "ops/pack.h"

static void set_tile(const sp_cuda_tile *tile, int64_t shared_bytes, sp_launch_shape *out)
{
    out->tile[0] = tile->groups;
    out->tile[1] = tile->warps;
    out->tile[2] = tile->rows;
    out->shared_bytes = (uint32_t)shared_bytes;
}

static void set_square(bool has_sums, int64_t side, sp_launch_shape *out)
{
    out->block[0] = (uint32_t)SP_CUDA_SQUARE_THREADS(side);
    out->shared_bytes = (uint32_t)SP_CUDA_SQUARE_BYTES(side, has_sums);
    out->tile[2] = (uint32_t)side;
}

/* Tiles of which each has several blocks of a cluster, all along x. */
static void set_team(int64_t tiles, int64_t outer, int64_t segments, uint32_t blocks,
                     int64_t cluster, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_tiles(tiles * blocks, cluster) * cluster, 1, outer, out);
    out->block[0] = SP_CUDA_TEAM_THREADS;
    out->shared_bytes = (uint32_t)SP_CUDA_TEAM_BYTES(blocks, segments > blocks);
    out->tile[1] = blocks;
}

static void set_gemm_team(const sp_gemm_constants *k, uint32_t blocks, sp_launch_shape *out)
{
    const bool is_pair = blocks == SP_CUDA_PAIR;
    const int64_t tiles = sp_cuda_tiles(k->rows, SP_CUDA_TEAM_ROWS) *
                          sp_cuda_tiles(k->columns, SP_CUDA_TEAM_COLUMNS) *
                          sp_cuda_gemm_matrices(k);
    set_team(tiles, 1, sp_cuda_tiles(k->depth, SP_GEMM_SEGMENT), blocks,
             is_pair ? SP_CUDA_PAIR : SP_CUDA_TEAM, out);
    out->variant = is_pair ? &sp__cuda_variant_gemm_pair_f32 : &sp__cuda_variant_gemm_team_f32;
}

static void set_gemm_square(const sp_gemm_constants *k, int64_t side, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_tiles(k->rows, side), sp_cuda_tiles(k->columns, side),
                      sp_cuda_gemm_matrices(k), out);
    set_square(sp_cuda_square_has_sums(k->depth, SP_GEMM_SEGMENT, k->activation), side, out);
    out->variant =
        side == 64 ? &sp__cuda_variant_gemm_square_64_f32 : &sp__cuda_variant_gemm_square_128_f32;
}

static void set_gemm_rounded(const sp_gemm_constants *k, sp_launch_shape *out)
{
    const int64_t rows = (int64_t)SP_CUDA_ROUNDED_ROWS * SP_CUDA_ROUNDED_WARPS;
    sp__cuda_set_grid(sp_cuda_tiles(k->rows, rows),
                      sp_cuda_tiles(k->columns, SP_CUDA_ROUNDED_COLUMNS), sp_cuda_gemm_matrices(k),
                      out);
    out->block[0] = SP_CUDA_ROUNDED_WARPS * SP_CUDA_LANES;
    out->shared_bytes = SP_CUDA_ROUNDED_BYTES;
    out->variant = k->rounding == SP_ROUNDING_F16 ? &sp__cuda_variant_gemm_rounded_f16
                                                  : &sp__cuda_variant_gemm_rounded_bf16;
}

void sp__cuda_launch_gemm(const sp_gemm_constants *k, const sp_cuda_tile *tile,
                          sp_launch_shape *out)
{
    if (k->rounding != SP_ROUNDING_NONE) {
        set_gemm_rounded(k, out);
        return;
    }
    if (tile->groups == 0) {
        if (tile->warps > 0) set_gemm_team(k, tile->warps, out);
        else set_gemm_square(k, tile->rows, out);
        return;
    }
    const int64_t rows = (int64_t)tile->warps * tile->rows;
    sp__cuda_set_grid(sp_cuda_tiles(k->rows, rows), sp_cuda_tiles(k->columns, SP_CUDA_LANES),
                      sp_cuda_gemm_matrices(k), out);
    if (sp_cuda_gemm_is_plain(k)) out->variant = &sp__cuda_variant_gemm_rows_f32;
    set_tile(tile, sp_cuda_product_bytes(tile->groups, rows), out);
}

void sp__cuda_tiled_gemm(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_cuda_tile tile = sp_cuda_gemm_tile(constants, shared_bytes);
    sp__cuda_launch_gemm(constants, &tile, out);
}

void sp__cuda_shape_pack(const void *constants, sp_launch_shape *out)
{
    const sp_pack_constants *k = constants;
    const uint64_t bytes = sp__pack_bytes(SP_PACK_F32, k->depth, k->columns);
    sp__cuda_set_threads((int64_t)(bytes / sizeof(float)), out);
}

/* ---- convolutions ---- */

static void set_conv_team(const sp_conv_constants *k, uint32_t blocks, sp_launch_shape *out)
{
    const int64_t pixels = sp_cuda_conv_images(k) * k->out_h * k->out_w;
    const int64_t tiles =
        sp_cuda_tiles(pixels, SP_CUDA_TEAM_ROWS) * sp_cuda_tiles(k->filters, SP_CUDA_TEAM_COLUMNS);
    set_team(tiles, k->groups, sp_cuda_tiles(k->channels * k->kernel_h * k->kernel_w, k->segment),
             blocks, SP_CUDA_TEAM, out);
    out->shared_bytes += SP_CUDA_TAPS_BYTES;
    out->variant = &sp__cuda_variant_conv_team_f32;
}

static void set_conv_square(const sp_conv_constants *k, int64_t side, sp_launch_shape *out)
{
    const int64_t depth = k->channels * k->kernel_h * k->kernel_w;
    sp__cuda_set_grid(sp_cuda_tiles(sp_cuda_conv_images(k) * k->out_h * k->out_w, side),
                      sp_cuda_tiles(k->filters, side), k->groups, out);
    set_square(sp_cuda_square_has_sums(depth, k->segment, k->activation), side, out);
    out->shared_bytes += SP_CUDA_TAPS_BYTES;
    out->variant =
        side == 64 ? &sp__cuda_variant_conv_square_64_f32 : &sp__cuda_variant_conv_square_128_f32;
}

static void set_conv_direct(const sp_conv_constants *k, uint32_t across, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_direct_parts(k, across),
                      sp_cuda_tiles(k->filters, SP_CUDA_DIRECT_HEIGHT),
                      sp_cuda_conv_images(k) * k->groups, out);
    out->block[0] = SP_CUDA_DIRECT_THREADS;
    out->shared_bytes = (uint32_t)sp_cuda_direct_bytes(k, across);
    out->tile[1] = across;
    out->variant = k->kernel_w == 5   ? &sp__cuda_variant_conv_direct_5_f32
                   : k->stride_w == 2 ? &sp__cuda_variant_conv_direct_3_by_2_f32
                                      : &sp__cuda_variant_conv_direct_3_f32;
}

void sp__cuda_launch_conv(const sp_conv_constants *k, const sp_cuda_tile *tile,
                          sp_launch_shape *out)
{
    if (tile->groups == 0) {
        if (tile->warps > 0 && tile->rows > 0) set_conv_direct(k, tile->warps, out);
        else if (tile->warps > 0) set_conv_team(k, tile->warps, out);
        else set_conv_square(k, tile->rows, out);
        return;
    }
    const int64_t rows = (int64_t)tile->warps * tile->rows;
    sp__cuda_set_grid(sp_cuda_tiles(k->out_h * k->out_w, SP_CUDA_LANES),
                      sp_cuda_tiles(k->filters, rows), k->filters > 0 ? k->planes / k->filters : 0,
                      out);
    if (sp_cuda_conv_is_small(k)) out->variant = &sp__cuda_variant_conv_small_f32;
    set_tile(tile, sp_cuda_product_bytes(tile->groups, rows), out);
}

void sp__cuda_tiled_conv(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_cuda_tile tile = sp_cuda_conv_tile(constants, shared_bytes);
    sp__cuda_launch_conv(constants, &tile, out);
}

void sp__cuda_shape_depthwise(const void *constants, sp_launch_shape *out)
{
    const sp_conv_constants *k = constants;
    sp__cuda_set_threads(k->planes * k->out_h * k->out_w, out);
}

void sp__cuda_shape_pool(const void *constants, sp_launch_shape *out)
{
    const sp_pool_constants *k = constants;
    sp__cuda_set_threads(k->planes * k->out_h * k->out_w, out);
}

void sp__cuda_shape_binary(const void *constants, sp_launch_shape *out)
{
    const sp_binary_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, sp_cuda_binary_elements(k)), out);
}

void sp__cuda_shape_flat(const void *constants, sp_launch_shape *out)
{
    const sp_flat_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, SP_CUDA_ELEMENTS), out);
}

void sp__cuda_shape_bytes(const void *constants, sp_launch_shape *out)
{
    const sp_flat_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, SP_CUDA_WORD), out);
}

void sp__cuda_shape_one(const void *constants, sp_launch_shape *out)
{
    (void)constants;
    *out = (sp_launch_shape){.grid = {1, 1, 1}, .block = {1, 1, 1}};
}

void sp__cuda_shape_copy(const void *constants, sp_launch_shape *out)
{
    const sp_copy_constants *k = constants;
    const bool has_words = sp_cuda_copy_has_words(k);
    sp__cuda_set_threads(has_words ? k->count * k->element_bytes / SP_CUDA_COPY_WORD : k->count,
                         out);
}

void sp__cuda_shape_concat(const void *constants, sp_launch_shape *out)
{
    const sp_concat_constants *k = constants;
    int64_t most = 0;
    for (uint32_t i = 0; i < k->parts; i++) {
        if (k->part_bytes[i] > most) most = k->part_bytes[i];
    }
    sp__cuda_set_grid(sp_cuda_tiles(sp_cuda_tiles(most * k->outer, SP_CUDA_WORD), SP_CUDA_THREADS),
                      k->parts, 1, out);
}

/* A row has blocks of its own: its address is found once by each. */
void sp__cuda_shape_rows(const void *constants, sp_launch_shape *out)
{
    const sp_rows_constants *k = constants;
    sp__cuda_set_grid(
        sp_cuda_tiles(sp_cuda_tiles(k->chunk * k->outer, SP_CUDA_WORD), SP_CUDA_THREADS), k->rows,
        1, out);
}

void sp__cuda_shape_pad(const void *constants, sp_launch_shape *out)
{
    const sp_pad_constants *k = constants;
    sp__cuda_set_threads(k->rank > 0 ? k->rows * k->out[k->rank - 1] : 0, out);
}

void sp__cuda_shape_fill(const void *constants, sp_launch_shape *out)
{
    sp__cuda_set_threads(((const sp_fill_constants *)constants)->count, out);
}

/* ---- elementwise ---- */

void sp__cuda_shape_function(const void *constants, sp_launch_shape *out)
{
    const sp_function_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, SP_CUDA_ELEMENTS), out);
}

void sp__cuda_shape_gate(const void *constants, sp_launch_shape *out)
{
    const sp_gate_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, SP_CUDA_ELEMENTS), out);
}

void sp__cuda_shape_cast(const void *constants, sp_launch_shape *out)
{
    const sp_cast_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->count, SP_CUDA_ELEMENTS), out);
}

void sp__cuda_shape_select(const void *constants, sp_launch_shape *out)
{
    sp__cuda_set_threads(((const sp_select_constants *)constants)->count, out);
}

/* ---- reductions and rows ---- */

static void set_reductions(int64_t count, int64_t extent, bool is_columns, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_reduction_blocks(count, extent, is_columns), 1, 1, out);
}

void sp__cuda_shape_reduce(const void *constants, sp_launch_shape *out)
{
    const sp_reduce_constants *k = constants;
    set_reductions(k->count, k->extent, k->is_columns, out);
}

void sp__cuda_shape_axis(const void *constants, sp_launch_shape *out)
{
    const sp_axis_constants *k = constants;
    set_reductions(k->rows, k->extent, k->inner > 1, out);
}

/* Rows of neighbouring elements, in registers if they fit. */
static void set_rows(int64_t rows, int64_t extent, sp_launch_shape *out)
{
    const int64_t warps = sp_cuda_row_warps(extent);
    if (warps == 0) {
        set_reductions(rows, extent, false, out);
        return;
    }
    sp__cuda_set_grid(warps > 1 ? rows : sp_cuda_tiles(rows, SP_CUDA_ROW_BLOCK), 1, 1, out);
    out->block[0] = (uint32_t)((warps > 1 ? warps : SP_CUDA_ROW_BLOCK) * SP_CUDA_LANES);
}

void sp__cuda_shape_softmax(const void *constants, sp_launch_shape *out)
{
    const sp_axis_constants *k = constants;
    if (k->inner > 1) sp__cuda_shape_axis(constants, out);
    else set_rows(k->rows, k->extent, out);
}

void sp__cuda_shape_cumsum(const void *constants, sp_launch_shape *out)
{
    const sp_axis_constants *k = constants;
    if (k->inner > 1) sp__cuda_set_threads(k->rows, out);
    else sp__cuda_set_grid(sp_cuda_tiles(k->rows, SP_CUDA_CUMSUM_ROWS), 1, 1, out);
}

void sp__cuda_shape_norm(const void *constants, sp_launch_shape *out)
{
    const sp_norm_constants *k = constants;
    set_rows(k->rows, k->extent, out);
}

void sp__cuda_shape_row_norm(const void *constants, sp_launch_shape *out)
{
    static const sp_gpu_kernel *const packed[SP_PACK_FORMAT_COUNT] = {
        [SP_PACK_TF32] = &sp__cuda_variant_row_norm_packed_tf32,
        [SP_PACK_F16] = &sp__cuda_variant_row_norm_packed_f16,
        [SP_PACK_BF16] = &sp__cuda_variant_row_norm_packed_bf16,
    };
    const sp_row_norm_constants *k = constants;
    set_rows(k->rows, k->extent, out);
    if (k->y_format == SP_PACK_NONE) return;
    out->variant = packed[k->y_format];
    out->shared_bytes = sp_cuda_row_warps(k->extent) > 1 ? SP_CUDA_ROW_POOL * sizeof(float) : 0;
}

void sp__cuda_shape_row_affine(const void *constants, sp_launch_shape *out)
{
    const sp_row_affine_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_tiles(k->rows * k->extent, SP_CUDA_ELEMENTS), out);
}

void sp__cuda_shape_batch_norm(const void *constants, sp_launch_shape *out)
{
    const sp_batch_norm_constants *k = constants;
    sp__cuda_set_threads(k->planes * k->plane, out);
}

void sp__cuda_shape_blend(const void *constants, sp_launch_shape *out)
{
    sp__cuda_set_threads(((const sp_blend_constants *)constants)->count, out);
}

void sp__cuda_shape_standardize(const void *constants, sp_launch_shape *out)
{
    sp__cuda_set_threads(((const sp_binary_constants *)constants)->count, out);
}

void sp__cuda_shape_lrn(const void *constants, sp_launch_shape *out)
{
    const sp_lrn_constants *k = constants;
    sp__cuda_set_threads(k->planes * k->plane, out);
}

/* ---- selected and generated elements ---- */

/* A row has one thread for each unit of its bytes. */
static int64_t units_of(int64_t rows, int64_t bytes)
{
    const int64_t unit = bytes % SP_CUDA_WORD == 0 ? SP_CUDA_WORD : bytes % 4 == 0 ? 4 : 1;
    return rows * (bytes / unit);
}

void sp__cuda_shape_gather(const void *constants, sp_launch_shape *out)
{
    const sp_gather_constants *k = constants;
    sp__cuda_set_threads(units_of(k->outer * k->count, k->inner_bytes), out);
}

void sp__cuda_shape_gather_elements(const void *constants, sp_launch_shape *out)
{
    const sp_gather_elements_constants *k = constants;
    sp__cuda_set_threads(k->count, out);
}

void sp__cuda_shape_gather_nd(const void *constants, sp_launch_shape *out)
{
    const sp_gather_nd_constants *k = constants;
    sp__cuda_set_threads(units_of(k->rows, k->slice_bytes), out);
}

void sp__cuda_shape_scatter_elements(const void *constants, sp_launch_shape *out)
{
    const sp_scatter_elements_constants *k = constants;
    sp__cuda_set_threads(k->lines, out);
}

void sp__cuda_shape_scatter_nd(const void *constants, sp_launch_shape *out)
{
    const sp_scatter_nd_constants *k = constants;
    sp__cuda_set_grid(k->count, sp_cuda_tiles(k->slice, SP_CUDA_THREADS), 1, out);
}

void sp__cuda_shape_one_hot(const void *constants, sp_launch_shape *out)
{
    const sp_one_hot_constants *k = constants;
    sp__cuda_set_threads(k->outer * k->depth * k->inner, out);
}

void sp__cuda_shape_range(const void *constants, sp_launch_shape *out)
{
    const sp_range_constants *k = constants;
    sp__cuda_set_threads(k->count, out);
}

void sp__cuda_shape_diagonal(const void *constants, sp_launch_shape *out)
{
    const sp_diagonal_constants *k = constants;
    sp__cuda_set_threads(k->rows * k->columns, out);
}

void sp__cuda_shape_non_zero(const void *constants, sp_launch_shape *out)
{
    const sp_non_zero_constants *k = constants;
    sp__cuda_set_grid(k->count > 0 ? 1 : 0, 1, 1, out);
}

void sp__cuda_shape_top_k(const void *constants, sp_launch_shape *out)
{
    const sp_top_k_constants *k = constants;
    sp__cuda_set_threads(k->outer * k->axis * k->inner, out);
}

void sp__cuda_shape_look_up(const void *constants, sp_launch_shape *out)
{
    const sp_look_up_constants *k = constants;
    sp__cuda_set_threads(k->rows * k->columns, out);
}

void sp__cuda_shape_look_up_pack(const void *constants, sp_launch_shape *out)
{
    const sp_pack_constants *k = constants;
    sp__cuda_set_threads(k->columns, out);
}

void sp__cuda_shape_resize(const void *constants, sp_launch_shape *out)
{
    const sp_resize_constants *k = constants;
    sp__cuda_set_threads(k->outer * k->out * k->inner, out);
}

void sp__cuda_shape_grid_sample(const void *constants, sp_launch_shape *out)
{
    const sp_grid_sample_constants *k = constants;
    sp__cuda_set_threads(k->count, out);
}

/* ---- windows, products of other types, recurrent layers ---- */

static int64_t window_outputs(const sp_window_constants *k)
{
    return k->planes * k->out[0] * k->out[1] * k->out[2];
}

void sp__cuda_shape_window(const void *constants, sp_launch_shape *out)
{
    const sp_window_constants *k = constants;
    sp__cuda_set_threads(window_outputs(k), out);
}

void sp__cuda_shape_conv_3d(const void *constants, sp_launch_shape *out)
{
    const sp_conv_3d_constants *k = constants;
    sp__cuda_set_threads(k->plane.planes * k->out_d * k->plane.out_h * k->plane.out_w, out);
}

void sp__cuda_shape_conv_transpose(const void *constants, sp_launch_shape *out)
{
    const sp_conv_transpose_constants *k = constants;
    sp__cuda_set_threads(window_outputs(&k->window), out);
}

void sp__cuda_shape_gemm_any(const void *constants, sp_launch_shape *out)
{
    const sp_gemm_any_constants *k = constants;
    sp__cuda_set_threads(sp_cuda_gemm_matrices(&k->gemm) * k->gemm.rows * k->gemm.columns, out);
}

static const sp_gpu_kernel *cell_team(const sp_recurrent_constants *k)
{
    if (k->gates == 4) return &sp__cuda_variant_lstm_team_f32;
    return k->gates == 3 ? &sp__cuda_variant_gru_team_f32 : &sp__cuda_variant_rnn_team_f32;
}

void sp__cuda_tiled_recurrent(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_recurrent_constants *k = constants;
    const bool is_team = sp_cuda_has_cell_team(k, shared_bytes);
    const int64_t blocks = is_team ? SP_CUDA_TEAM : 1;
    sp__cuda_set_grid(sp_cuda_tiles(k->rows, SP_CUDA_CELL_ROWS) * blocks, k->directions, 1, out);
    out->block[0] = is_team ? SP_CUDA_CELL_TEAM_THREADS : SP_CUDA_CELL_THREADS;
    if (!is_team) return;
    out->variant = cell_team(k);
    out->shared_bytes = (uint32_t)sp_cuda_cell_team_bytes(k);
}
