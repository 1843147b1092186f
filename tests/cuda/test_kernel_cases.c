/* SPDX-License-Identifier: Apache-2.0 */
/* The random calls that GPU kernels are compared with, on the CPU's own tables: AVX2 against
 * portable, and portable with fused activations against portable without. Also tries the comparison
 * itself. */
#include <string.h>

#include "cuda/kernel_compare.h"
#include "support/test.h"

static sp_status run_on_cpu(const sp_dispatch *dispatch, void *const *bindings, void *context)
{
    (void)context;
    return sp__kernel_run_grid(dispatch->kernel, dispatch->grid, bindings, dispatch->constants);
}

static void compare_with(sp_cpu_isa isa, uint64_t seed)
{
    kernel_compare compare = {.kernels = sp__cpu_kernels(isa), .run = run_on_cpu};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, seed, test_count(4000, 300));
    }
    kernel_compare_check_runs(&compare);
}

TEST(calls_of_every_kind_have_equal_bits_and_run_every_kernel)
{
    if (sp__cpu_kernels(SP_CPU_AVX2) == NULL) SKIP("this processor has no AVX2");
    compare_with(SP_CPU_AVX2, 100);
}

TEST(portable_kernels_apply_activations_with_the_bits_of_kernels_of_their_own)
{
    compare_with(SP_CPU_PORTABLE, 9100);
}

TEST_MAIN
