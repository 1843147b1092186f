/* SPDX-License-Identifier: Apache-2.0 */
/* The largest tile of narrow products by warpgroups has the bits of the cpu, in the emulator. */
#include <string.h>

#include "base/macros.h"
#include "cuda/cuda_emulator.h"
#include "cuda/kernel_compare.h"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/cuda_launch.h"
#include "support/test.h"

enum { SHARED_BYTES = 227 * 1024 };

static uint32_t largest_grid, launches;
static uint64_t group_runs[3], runs_of_columns[2];

/* Products with two packed operands get the last tile, as devices with warpgroups launch it. */
static void set_groups(const sp_gpu_kernel *gpu, const void *constants, sp_launch_shape *shape)
{
    static const struct {
        sp_kernel_id id;
        void (*launch)(const sp_gemm_constants *k, uint32_t tile, sp_launch_shape *out);
    } kernels[] = {{SP_KERNEL_ID_gemm_packed_tf32, sp__cuda_launch_packed_tf32},
                   {SP_KERNEL_ID_gemm_packed_f16, sp__cuda_launch_packed_f16},
                   {SP_KERNEL_ID_gemm_packed_bf16, sp__cuda_launch_packed_bf16}};
    for (size_t i = 0; i < SP_COUNT_OF(kernels); i++) {
        if (gpu != sp__cuda_kernels()[kernels[i].id].gpu) continue;
        kernels[i].launch(constants, SP_CUDA_PACKED_TILES - 1, shape);
        const bool is_wide = launches++ % 2 == 0;
        sp__cuda_launch_groups(constants, is_wide ? 192 : 128, shape);
        if (shape->grid[0] > largest_grid) shape->grid[0] = largest_grid;
        group_runs[i]++;
        runs_of_columns[is_wide]++;
    }
}

static sp_status run_emulated(const sp_kernel *kernel, const sp_dispatch *dispatch,
                              void *const *bindings, void *context)
{
    (void)context;
    const sp_gpu_kernel *gpu = kernel->gpu;
    sp_launch_shape shape = {0};
    if (gpu->tiled != NULL) gpu->tiled(dispatch->constants, SHARED_BYTES, &shape);
    else gpu->shape(dispatch->constants, &shape);
    set_groups(gpu, dispatch->constants, &shape);
    if (shape.variant != NULL) gpu = shape.variant;
    CHECK(cuda_emulator_launch(gpu->entry, &shape, bindings, dispatch->binding_count,
                               dispatch->constants));
    return SP_OK;
}

static void compare(uint64_t seed, uint64_t count)
{
    kernel_compare calls = {.kernels = sp__cuda_kernels(), .run = run_emulated};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        const char *name = kernel_case_kind_name(kind);
        if (strstr(name, "narrow") == NULL || strstr(name, "conv") != NULL) continue;
        kernel_compare_calls(&calls, kind, seed, count);
    }
}

TEST(products_of_warpgroups_have_the_bits_of_the_cpu)
{
    largest_grid = UINT32_MAX;
    compare(4000, test_count(1000, 60));
    for (int i = 0; i < 3; i++) CHECK(group_runs[i] > 3);
    for (int i = 0; i < 2; i++) CHECK(runs_of_columns[i] > 10);
}

/* Rounds of 64 clusters, of which each has two tiles of 128 rows: as measured. */
TEST(a_tile_is_wide_where_that_takes_fewer_rounds)
{
    static const struct {
        int64_t rows, columns, wanted;
    } cases[] = {{32768, 1152, 192}, {8192, 1152, 192}, {2048, 1152, 192}, {1024, 1152, 128},
                 {32768, 2048, 192}, {2048, 2048, 128}, {2048, 384, 128},  {1, 1, 128}};
    for (size_t i = 0; i < SP_COUNT_OF(cases); i++) {
        const sp_gemm_constants k = {.rows = cases[i].rows, .columns = cases[i].columns};
        CHECK_EQ_INT(sp__cuda_group_columns(&k), cases[i].wanted);
    }
}

TEST(a_cluster_computes_several_tiles)
{
    largest_grid = SP_CUDA_GROUP_BLOCKS;
    compare(9000, test_count(400, 25));
}

TEST_MAIN
