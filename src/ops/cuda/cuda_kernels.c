/* SPDX-License-Identifier: Apache-2.0 */
/* The table of CUDA kernels, and the launch shape of each. The kernels use grid-stride loops, so
 * any number of elements can be launched. */
#include "ops/cuda/cuda_kernels.h"

#include "ops/cuda/tile_choice.h"

/* Grid limits of every GPU, along x and along y and z. */
#define MAX_BLOCKS INT64_C(0x7fffffff)
#define MAX_OUTER_BLOCKS SP_CUDA_MAX_OUTER_BLOCKS

static uint32_t clamp_blocks(int64_t count, int64_t limit)
{
    return (uint32_t)(count < limit ? count : limit);
}

static void set_grid(int64_t x, int64_t y, int64_t z, sp_launch_shape *out)
{
    *out =
        (sp_launch_shape){.grid = {clamp_blocks(x, MAX_BLOCKS), clamp_blocks(y, MAX_OUTER_BLOCKS),
                                   clamp_blocks(z, MAX_OUTER_BLOCKS)},
                          .block = {SP_CUDA_THREADS, 1, 1}};
}

static void set_threads(int64_t threads, sp_launch_shape *out)
{
    set_grid(sp_cuda_tiles(threads, SP_CUDA_THREADS), 1, 1, out);
}

static void set_tile(const sp_cuda_tile *tile, int64_t shared_bytes, sp_launch_shape *out)
{
    out->tile[0] = tile->groups;
    out->tile[1] = tile->warps;
    out->tile[2] = tile->rows;
    out->shared_bytes = (uint32_t)shared_bytes;
}

#define VARIANT_ENTRY(variant)                                                                     \
    static const sp_gpu_kernel variant = {.program = &sp__cuda_program,                            \
                                          .entry = "sp_" #variant,                                 \
                                          .index = SP_CUDA_VARIANT_##variant,                      \
                                          .has_shared_memory = true};
SP_CUDA_VARIANT_LIST(VARIANT_ENTRY)
#undef VARIANT_ENTRY

static void tiled_gemm(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_gemm_constants *k = constants;
    const sp_cuda_tile tile = sp_cuda_gemm_tile(k, shared_bytes);
    const bool is_square = tile.groups == 0;
    const int64_t rows = is_square ? tile.rows : (int64_t)tile.warps * tile.rows;
    set_grid(sp_cuda_tiles(k->rows, rows),
             sp_cuda_tiles(k->columns, is_square ? tile.rows : SP_CUDA_LANES),
             sp_cuda_gemm_matrices(k), out);
    if (is_square) out->variant = &gemm_square_f32;
    else if (sp_cuda_gemm_is_plain(k)) out->variant = &gemm_rows_f32;
    set_tile(&tile,
             is_square ? SP_CUDA_SQUARE_BYTES((int64_t)tile.rows)
                       : sp_cuda_product_bytes(tile.groups, rows),
             out);
}

static void shape_pack(const void *constants, sp_launch_shape *out)
{
    const sp_gemm_pack_constants *k = constants;
    set_threads(sp_cuda_tiles(k->columns, SP_GEMM_PANEL) * SP_GEMM_PANEL * k->depth, out);
}

static void tiled_conv(const void *constants, uint32_t shared_bytes, sp_launch_shape *out)
{
    const sp_conv_constants *k = constants;
    const sp_cuda_tile tile = sp_cuda_conv_tile(k, shared_bytes);
    const int64_t rows = (int64_t)tile.warps * tile.rows;
    set_grid(sp_cuda_tiles(k->out_h * k->out_w, SP_CUDA_LANES), sp_cuda_tiles(k->filters, rows),
             k->filters > 0 ? k->planes / k->filters : 0, out);
    if (sp_cuda_conv_is_small(k)) out->variant = &conv_small_f32;
    set_tile(&tile, sp_cuda_product_bytes(tile.groups, rows), out);
}

static void shape_depthwise(const void *constants, sp_launch_shape *out)
{
    const sp_conv_constants *k = constants;
    set_threads(k->planes * k->out_h * k->out_w, out);
}

static void shape_pool(const void *constants, sp_launch_shape *out)
{
    const sp_pool_constants *k = constants;
    set_threads(k->planes * k->out_h * k->out_w, out);
}

static void shape_binary(const void *constants, sp_launch_shape *out)
{
    const sp_binary_constants *k = constants;
    set_threads(sp_cuda_tiles(k->count, sp_cuda_binary_elements(k)), out);
}

static void shape_unary(const void *constants, sp_launch_shape *out)
{
    const sp_flat_constants *k = constants;
    set_threads(sp_cuda_tiles(k->count, SP_CUDA_ELEMENTS), out);
}

static void shape_copy_bytes(const void *constants, sp_launch_shape *out)
{
    const sp_flat_constants *k = constants;
    set_threads(sp_cuda_tiles(k->count, SP_CUDA_WORD), out);
}

static void shape_copy_strided(const void *constants, sp_launch_shape *out)
{
    set_threads(((const sp_copy_constants *)constants)->count, out);
}

static void shape_concat(const void *constants, sp_launch_shape *out)
{
    const sp_concat_constants *k = constants;
    int64_t most = 0;
    for (uint32_t i = 0; i < k->parts; i++) {
        if (k->part_bytes[i] > most) most = k->part_bytes[i];
    }
    set_grid(sp_cuda_tiles(sp_cuda_tiles(most * k->outer, SP_CUDA_WORD), SP_CUDA_THREADS), k->parts,
             1, out);
}

static void shape_pad(const void *constants, sp_launch_shape *out)
{
    const sp_pad_constants *k = constants;
    set_threads(k->rank > 0 ? k->rows * k->out[k->rank - 1] : 0, out);
}

static void shape_fill(const void *constants, sp_launch_shape *out)
{
    set_threads(((const sp_fill_constants *)constants)->count, out);
}

#define BINARY_LIST(X, suffix)                                                                     \
    X(add_##suffix, binary)                                                                        \
    X(sub_##suffix, binary)                                                                        \
    X(mul_##suffix, binary)                                                                        \
    X(div_##suffix, binary)

#define TILED_KERNEL_LIST(X)                                                                       \
    X(gemm_f32, gemm)                                                                              \
    X(conv_f32, conv)

#define SHAPED_KERNEL_LIST(X)                                                                      \
    X(gemm_pack_f32, pack)                                                                         \
    X(conv_depthwise_f32, depthwise)                                                               \
    X(max_pool_f32, pool)                                                                          \
    BINARY_LIST(X, f32)                                                                            \
    BINARY_LIST(X, i32)                                                                            \
    BINARY_LIST(X, i64)                                                                            \
    X(relu_f32, unary)                                                                             \
    X(sigmoid_f32, unary)                                                                          \
    X(tanh_f32, unary)                                                                             \
    X(exp_f32, unary)                                                                              \
    X(copy_bytes, copy_bytes)                                                                      \
    X(copy_strided, copy_strided)                                                                  \
    X(concat, concat)                                                                              \
    X(split, concat)                                                                               \
    X(pad, pad)                                                                                    \
    X(fill, fill)

static const sp_gpu_kernel gpu_table[SP_CUDA_KERNEL_COUNT] = {
#define GPU_ENTRY(kernel)                                                                          \
    [SP_KERNEL_ID_##kernel].program = &sp__cuda_program,                                           \
    [SP_KERNEL_ID_##kernel].entry = "sp_" #kernel,                                                 \
    [SP_KERNEL_ID_##kernel].index = SP_KERNEL_ID_##kernel
#define SHAPED_ENTRY(kernel, how) GPU_ENTRY(kernel), [SP_KERNEL_ID_##kernel].shape = shape_##how,
#define TILED_ENTRY(kernel, how)                                                                   \
    GPU_ENTRY(kernel), [SP_KERNEL_ID_##kernel].tiled = tiled_##how,                                \
                       [SP_KERNEL_ID_##kernel].has_shared_memory = true,
    SHAPED_KERNEL_LIST(SHAPED_ENTRY) TILED_KERNEL_LIST(TILED_ENTRY)
#undef TILED_ENTRY
#undef SHAPED_ENTRY
#undef GPU_ENTRY
};

static const sp_kernel table[SP_KERNEL_COUNT] = {
#define TABLE_NAME(kernel) [SP_KERNEL_ID_##kernel].name = #kernel,
    SP_KERNEL_LIST(TABLE_NAME)
#undef TABLE_NAME
#define TABLE_GPU(kernel) [SP_KERNEL_ID_##kernel].gpu = &gpu_table[SP_KERNEL_ID_##kernel],
        SP_CUDA_KERNEL_LIST(TABLE_GPU)
#undef TABLE_GPU
};

const sp_kernel *sp__cuda_kernels(void)
{
    return table;
}

_Static_assert(SP_CUDA_ENTRY_COUNT <= SP_GPU_MAX_KERNELS, "one program holds all kernels");
