/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA kernels give the CPU's bits, for random calls of every op, in the emulator. */
#include "base/error.h"
#include "cuda/cuda_emulator.h"
#include "cuda/kernel_compare.h"
#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

/* Smaller grids must give the same result: the kernels then loop with a stride. */
static uint32_t largest_grid;

static sp_status run_emulated(const sp_kernel *kernel, const sp_dispatch *dispatch,
                              void *const *bindings, void *context)
{
    (void)context;
    const sp_gpu_kernel *gpu = kernel->gpu;
    sp_launch_shape shape;
    gpu->shape(dispatch->constants, &shape);
    if (shape.grid[0] > largest_grid) shape.grid[0] = largest_grid;
    if (cuda_emulator_launch(gpu->entry, &shape, bindings, dispatch->binding_count,
                             dispatch->constants)) {
        return SP_OK;
    }
    return sp__fail(SP_INTERNAL, "%s: threads of a block parted at a barrier", gpu->entry);
}

static void compare_all(uint64_t seed, uint64_t count)
{
    kernel_compare compare = {.kernels = sp__cuda_kernels(), .run = run_emulated};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, seed, count);
    }
    kernel_compare_check_runs(&compare);
}

TEST(emulated_kernels_have_the_bits_of_the_cpu)
{
    largest_grid = UINT32_MAX;
    compare_all(1000, test_count(1000, 120));
}

TEST(a_grid_that_is_too_small_changes_nothing)
{
    largest_grid = 2;
    compare_all(77000, test_count(300, 60));
}

TEST_MAIN
