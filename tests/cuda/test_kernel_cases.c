/* SPDX-License-Identifier: Apache-2.0 */
/* The random calls for the comparison of GPU kernels, on the CPU's tables: AVX2 against portable,
 * and portable with fused activations against portable without. Also tests the comparison
 * itself. */
#include <string.h>

#include "cuda/kernel_compare.h"
#include "ops/op_kernels.h"
#include "ops/registry.h"
#include "support/test.h"

static sp_status run_on_cpu(const sp_kernel *kernel, const sp_dispatch *dispatch,
                            void *const *bindings, void *context)
{
    (void)context;
    return sp__kernel_run(kernel, bindings, dispatch->constants);
}

static void compare_with(sp_cpu_isa isa, uint64_t seed)
{
    kernel_compare compare = {.kernels = sp__cpu_kernels(isa), .run = run_on_cpu};
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        kernel_compare_calls(&compare, kind, seed, kernel_compare_count(4000, 120, 60));
    }
    kernel_compare_rows(&compare, seed, kernel_compare_count(1000, 80, 40));
    kernel_compare_signals(&compare, seed, kernel_compare_count(1000, 80, 40));
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

/* Lowers one random call; its kernels must be listed in its op's row. */
static void check_row(const kernel_case *what)
{
    const sp_op *op;
    sp_op_value inputs[KERNEL_CASE_INPUTS];
    sp_op_value outputs[KERNEL_CASE_INPUTS];
    memset(outputs, 0, sizeof outputs);
    REQUIRE_OK(sp__op_find((sp_text){0}, sp__text(what->op), what->version, &op));
    for (uint32_t i = 0; i < what->input_count; i++) {
        inputs[i] = data_operand(&what->inputs[i], what->is_known[i]);
    }
    sp_op_call call = {.op = op,
                       .version = what->version,
                       .attributes = {what->attributes, what->attribute_count},
                       .inputs = inputs,
                       .outputs = outputs,
                       .input_count = what->input_count,
                       .output_count = what->output_count,
                       .precision = what->precision,
                       .packs_left = what->packs_left};
    if (sp__op_check(&call) != SP_OK || sp__op_infer(&call) != SP_OK) return;
    inputs[1].is_packed = what->packs && sp__op_pack(&call, 1).format != SP_PACK_NONE;
    const sp_kernel *table = sp__cpu_kernels(SP_CPU_PORTABLE);
    sp_lowering lowering;
    sp__lowering_init(&lowering);
    CHECK_OK(sp__op_lower(&call, &lowering));
    for (uint32_t i = 0; i < lowering.dispatch_count; i++) {
        const sp_kernel_id kernel = lowering.dispatches[i].kernel;
        CHECK(sp__op_may_use(op->name, kernel));
        if (!sp__op_may_use(op->name, kernel)) test_note("%s: %s", op->name, table[kernel].name);
    }
    sp__lowering_deinit(&lowering);
}

TEST(ops_emit_the_kernels_of_their_rows_only)
{
    for (uint32_t kind = 0; kind < kernel_case_kinds(); kind++) {
        data_random random = {kind};
        const uint64_t count = kernel_case_count(kind, test_count(2000, 120));
        for (uint64_t i = 0; i < count; i++) {
            kernel_case what;
            kernel_case_make(kind, &random, &what);
            check_row(&what);
            kernel_case_free(&what);
        }
    }
}

TEST_MAIN
