/* SPDX-License-Identifier: Apache-2.0 */
/* The random calls that GPU kernels are compared with, on the CPU's own tables: AVX2 against
 * portable. Also tries the comparison itself. */
#include <string.h>

#include "cuda/kernel_compare.h"
#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

static sp_status run_on_cpu(const sp_dispatch *dispatch, void *const *bindings, void *context)
{
    (void)context;
    return sp__kernel_run_grid(dispatch->kernel, dispatch->grid, bindings, dispatch->constants);
}

TEST(calls_of_every_kind_have_equal_bits_and_run_every_kernel_of_gpus)
{
    const sp_kernel *avx2 = sp__cpu_kernels(SP_CPU_AVX2);
    kernel_compare compare = {.kernels = avx2 != NULL ? avx2 : sp__cpu_kernels(SP_CPU_PORTABLE),
                              .run = run_on_cpu};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, 100, test_count(4000, 300));
    }
    for (int i = 0; i < SP_KERNEL_COUNT; i++) {
        if (sp__cuda_kernels()[i].gpu == NULL) continue;
        CHECK(compare.runs[i] > 0);
        if (compare.runs[i] == 0) test_note("%s never ran", compare.kernels[i].name);
    }
}

TEST_MAIN
