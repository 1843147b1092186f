/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels give the CPU's bits, for random calls of every op, in the emulator. */
#include <string.h>

#include "base/error.h"
#include "cuda/cuda_emulator.h"
#include "cuda/kernel_compare.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "ops/cuda/recurrent/team_size.h"
#include "ops/cuda/tile_choice.h"
#include "support/test.h"

/* Smaller grids must give the same result: the kernels then loop with a stride. */
static uint32_t largest_grid;
#define SHARED_BYTES (227u * 1024)

/* If set, the tiles of products take turns, whatever a product's size. */
static bool has_all_tiles;
static uint32_t first_tile; /* the turns begin with it, where a product may have squares */
static uint32_t turn;
static uint32_t chain_runs, column_runs;  /* of recurrent layers, by teams of either form */
static uint32_t direct_turn, direct_runs; /* of convolutions */

#define ROW_TILES 18u /* 1, 2, 4 groups of 1 to 32 rows */
/* Then the squares, and the tiles of several blocks, with clusters and without. */
static const sp_cuda_tile squares[] = {
    {.rows = 64}, {.rows = 128}, {.warps = 2}, {.warps = 4}, {.warps = 8}};
#define SQUARES ((uint32_t)SP_COUNT_OF(squares))
#define SINGLE_SQUARES 2u

static sp_cuda_tile next_tile(bool has_squares)
{
    const uint32_t first = has_squares ? first_tile : 0;
    const uint32_t count = has_squares ? ROW_TILES + SQUARES : ROW_TILES;
    const uint32_t at = first + turn++ % (count - first);
    if (at >= ROW_TILES) return squares[at - ROW_TILES];
    const int64_t groups = INT64_C(1) << at / 6, rows = INT64_C(1) << at % 6;
    return sp_cuda_make_tile(groups, groups == 4 && rows > 16 ? 16 : rows);
}

/* Launches a narrow product or convolution with the next tile of its kernel; false: it is another
 * kernel. */
static bool set_next_narrow_tile(const sp_gpu_kernel *gpu, const void *constants,
                                 sp_launch_shape *out)
{
    static const struct {
        sp_kernel_id id;
        void (*launch)(const sp_gemm_constants *k, uint32_t tile, sp_launch_shape *out);
    } kernels[] = {
#define NARROW(name) {SP_KERNEL_ID_gemm_##name, sp__cuda_launch_##name},
        SP_CUDA_NARROW_LAUNCH_LIST(NARROW)
#undef NARROW
    };
    for (size_t i = 0; i < SP_COUNT_OF(kernels); i++) {
        if (gpu != sp__cuda_kernels()[kernels[i].id].gpu) continue;
        const bool is_packed = i >= SP_COUNT_OF(kernels) / 2; /* as the list is sorted */
        kernels[i].launch(constants,
                          turn++ % (is_packed ? SP_CUDA_PACKED_TILES : SP_CUDA_NARROW_TILES), out);
        return true;
    }
    static const struct {
        sp_kernel_id id;
        void (*launch)(const sp_conv_constants *k, uint32_t tile, sp_launch_shape *out);
    } convs[] = {{SP_KERNEL_ID_conv_narrow_tf32, sp__cuda_launch_conv_tf32},
                 {SP_KERNEL_ID_conv_narrow_f16, sp__cuda_launch_conv_f16},
                 {SP_KERNEL_ID_conv_narrow_bf16, sp__cuda_launch_conv_bf16}};
    for (size_t i = 0; i < SP_COUNT_OF(convs); i++) {
        if (gpu != sp__cuda_kernels()[convs[i].id].gpu) continue;
        convs[i].launch(constants, turn++ % SP_CUDA_CONV_TILES, out);
        return true;
    }
    return false;
}

static bool is_recurrent(const sp_gpu_kernel *gpu)
{
    const sp_kernel *kernels = sp__cuda_kernels();
    return gpu == kernels[SP_KERNEL_ID_lstm_f32].gpu || gpu == kernels[SP_KERNEL_ID_gru_f32].gpu ||
           gpu == kernels[SP_KERNEL_ID_rnn_f32].gpu;
}

/* Where a convolution has a direct form, every other time, with parts of any width. */
static bool set_next_direct(const sp_conv_constants *k, sp_launch_shape *out)
{
    if (!sp_cuda_conv_has_direct(k) || direct_turn++ % 2 == 0) return false;
    const uint32_t across = 1u << direct_turn / 2 % 7;
    const sp_cuda_tile tile = {.warps = across, .rows = SP_CUDA_DIRECT_HEIGHT};
    sp__cuda_launch_conv(k, &tile, out);
    direct_runs++;
    return true;
}

/* Where a product may have a variant for its size, every other time. */
static void set_next_tile(const sp_gpu_kernel *gpu, const void *constants, sp_launch_shape *out)
{
    if (set_next_narrow_tile(gpu, constants, out)) return;
    if (is_recurrent(gpu)) {
        if (turn++ % 3 == 0) gpu->tiled(constants, 48 * 1024, out); /* by single blocks */
        return;
    }
    const bool is_gemm = gpu == sp__cuda_kernels()[SP_KERNEL_ID_gemm_f32].gpu;
    if (!is_gemm && set_next_direct(constants, out)) return;
    const sp_cuda_tile tile = next_tile(is_gemm || sp_cuda_conv_has_squares(constants));
    if (is_gemm) sp__cuda_launch_gemm(constants, &tile, out);
    else sp__cuda_launch_conv(constants, &tile, out);
    if (tile.groups != 0 && turn % 2 == 0) out->variant = NULL;
}

/* Convolutions by squares are launched with a block for each, and teams with all of theirs. */
static bool has_all_blocks(const sp_gpu_kernel *gpu, const sp_launch_shape *shape)
{
    const bool is_conv = gpu == sp__cuda_kernels()[SP_KERNEL_ID_conv_f32].gpu;
    return shape->tile[0] == 0 && (shape->tile[1] != 0 || (is_conv && shape->tile[2] != 0));
}

static void count_team(const void *constants)
{
    const sp_recurrent_constants *k = constants;
    if (sp_cuda_has_cell_chains(k)) chain_runs++;
    else column_runs++;
}

static sp_launch_shape pick_shape_of(const sp_kernel *kernel, const void *constants)
{
    const sp_gpu_kernel *gpu = kernel->gpu;
    sp_launch_shape shape;
    if (gpu->tiled != NULL) gpu->tiled(constants, SHARED_BYTES, &shape);
    else gpu->shape(constants, &shape);
    if (gpu->tiled != NULL && has_all_tiles) set_next_tile(gpu, constants, &shape);
    if (shape.grid[0] > largest_grid && !has_all_blocks(gpu, &shape)) {
        const bool is_team = is_recurrent(gpu) && shape.variant != NULL;
        shape.grid[0] = is_team ? SP_CUDA_TEAM : largest_grid;
        /* The variant for rows is launched with all blocks only. */
        if (gpu == sp__cuda_kernels()[SP_KERNEL_ID_gemm_f32].gpu && shape.tile[0] != 0)
            shape.variant = NULL;
    }
    if (shape.variant != NULL && is_recurrent(gpu)) count_team(constants);
    return shape;
}

/* `report`: where the kernel writes numbers that are out of range. */
static sp_status launch(const sp_kernel *kernel, const sp_dispatch *dispatch, void *const *bindings,
                        sp_gpu_report *report)
{
    void *all[16];
    const uint32_t count = dispatch->binding_count;
    const sp_launch_shape shape = pick_shape_of(kernel, dispatch->constants);
    const sp_gpu_kernel *gpu = shape.variant != NULL ? shape.variant : kernel->gpu;
    memcpy(all, bindings, count * sizeof(*all));
    if (count < SP_COUNT_OF(all)) all[count] = report;
    cuda_emulator_set_clusters(!has_all_tiles || turn % 5 != 0);
    if (cuda_emulator_launch(gpu->entry, &shape, all, count < SP_COUNT_OF(all) ? count + 1 : count,
                             dispatch->constants)) {
        return SP_OK;
    }
    return sp__fail(SP_INTERNAL, "%s: threads of a block parted at a barrier, or one did not wait",
                    gpu->entry);
}

static sp_status run_emulated(const sp_kernel *kernel, const sp_dispatch *dispatch,
                              void *const *bindings, void *context)
{
    (void)context;
    sp_gpu_report report = {0};
    const sp_status status = launch(kernel, dispatch, bindings, &report);
    CHECK(report.most == 0);
    return status;
}

static void compare_all(uint64_t seed, uint64_t count)
{
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_emulated};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, seed, count);
    }
    kernel_compare_rows(&compare, seed, count);
    kernel_compare_signals(&compare, seed, count);
    kernel_compare_check_runs(&compare);
}

TEST(emulated_kernels_have_the_bits_of_the_cpu)
{
    largest_grid = UINT32_MAX;
    compare_all(1000, kernel_compare_count(1000, 80, 80));
}

/* The kinds of calls with products; the other ones have no tiles. */
static bool has_tiles(uint32_t kind)
{
    static const char *const names[] = {"gemm",      "matmul",      "narrow gemm", "narrow matmul",
                                        "conv",      "sequences",   "layer forms", "team layers",
                                        "lstm",      "gru",         "rnn",         "long gemm",
                                        "long conv", "narrow conv", "direct conv"};
    for (size_t i = 0; i < SP_COUNT_OF(names); i++) {
        if (strcmp(kernel_case_kind_name(kind), names[i]) == 0) return true;
    }
    return false;
}

TEST(each_tile_of_a_product_has_the_bits_of_the_cpu)
{
    largest_grid = UINT32_MAX;
    has_all_tiles = true;
    turn = 0;
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_emulated};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        if (has_tiles(kind)) kernel_compare_calls(&compare, kind, 5000, test_count(1000, 50));
    }
    has_all_tiles = false;
    CHECK(turn > 5 * ROW_TILES);
    CHECK(chain_runs > 20);
    CHECK(column_runs > 5);
    CHECK(direct_runs > 20);
#define CHECK_RUNS(kernel, constants, launch) CHECK(compare.runs[SP_KERNEL_ID_##kernel] > 20);
    SP_CUDA_TILED_LIST(CHECK_RUNS)
#undef CHECK_RUNS
#define CHECK_RUNS(kernel, constants, launch) CHECK(compare.runs[SP_KERNEL_ID_##kernel] > 5);
    SP_CUDA_NARROW_LIST(CHECK_RUNS)
#undef CHECK_RUNS
}

/* Runs a layer twice: first with a length that is out of range. */
static sp_status run_with_bad_length(const sp_kernel *kernel, const sp_dispatch *dispatch,
                                     void *const *bindings, void *context)
{
    uint32_t *reports = context;
    const sp_recurrent_constants *k = (const void *)dispatch->constants;
    if (is_recurrent(kernel->gpu) && k->has_lengths) {
        int32_t *length = (int32_t *)bindings[2 + (k->has_bias != 0)] + *reports % k->rows;
        const int32_t kept = *length;
        *length = *reports % 2 == 0 ? -1 : (int32_t)k->steps + 1;
        sp_gpu_report report = {0};
        CHECK_OK(launch(kernel, dispatch, bindings, &report));
        CHECK_EQ_INT(report.number, *length);
        CHECK_EQ_INT(report.most, k->steps + 2);
        *length = kept;
        ++*reports;
    }
    return run_emulated(kernel, dispatch, bindings, NULL);
}

TEST(a_length_that_is_out_of_range_is_reported)
{
    uint32_t reports = 0;
    largest_grid = UINT32_MAX;
    has_all_tiles = true;
    turn = chain_runs = 0;
    kernel_compare compare = {
        .kernels = sp__cuda_kernels(), .run = run_with_bad_length, .context = &reports};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        const char *name = kernel_case_kind_name(kind);
        if (strcmp(name, "sequences") == 0 || strcmp(name, "team layers") == 0)
            kernel_compare_calls(&compare, kind, 3000, test_count(300, 20));
    }
    has_all_tiles = false;
    CHECK(reports > 20);
    CHECK(chain_runs > 5);
}

TEST(segments_that_blocks_share_have_the_bits_of_the_cpu)
{
    largest_grid = UINT32_MAX;
    has_all_tiles = true;
    first_tile = ROW_TILES + SINGLE_SQUARES;
    turn = 0;
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_emulated};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        if (strncmp(kernel_case_kind_name(kind), "long ", 5) != 0 || !has_tiles(kind)) continue;
        kernel_compare_calls(&compare, kind, 9000, test_count(1600, 80));
    }
    has_all_tiles = false;
    first_tile = 0;
    CHECK(compare.runs[SP_KERNEL_ID_gemm_f32] > 10);
    CHECK(compare.runs[SP_KERNEL_ID_conv_f32] > 10);
}

TEST(a_grid_that_is_too_small_changes_nothing)
{
    largest_grid = 2;
    compare_all(77000, kernel_compare_count(300, 40, 40));
}

TEST_MAIN
