/* SPDX-License-Identifier: Apache-2.0 */
/* The number of ops that a table of kernels covers. The rows are checked with random calls in
 * tests/cuda/test_kernel_cases.c. */
#include "ops/op_kernels.h"

#include <string.h>

#include "ops/cuda/cuda_kernels.h"
#include "support/test.h"

TEST(all_tables_that_there_are_cover_all_ops)
{
    const sp_op_coverage all = sp__op_coverage(NULL);
    CHECK(all.op_count > 20);
    CHECK_EQ_U64(all.covered_count, all.op_count);
    CHECK_EQ_U64(sp__op_coverage(sp__cpu_kernels(SP_CPU_PORTABLE)).covered_count, all.op_count);
    CHECK_EQ_U64(sp__op_coverage(sp__cuda_kernels()).covered_count, all.op_count);
}

TEST(cuda_covers_what_its_kernels_are_for)
{
    static const char *const covered[] = {"Add",     "Concat",   "ConstantOfShape",
                                          "Conv",    "Div",      "Exp",
                                          "Gemm",    "MatMul",   "MaxPool",
                                          "Mul",     "Pad",      "Relu",
                                          "Reshape", "Shape",    "If",
                                          "Sigmoid", "Split",    "Sub",
                                          "Tanh",    "Transpose"};
    for (size_t i = 0; i < SP_COUNT_OF(covered); i++) {
        CHECK(sp__op_is_covered(covered[i], sp__cuda_kernels()));
        if (!sp__op_is_covered(covered[i], sp__cuda_kernels())) test_note("%s", covered[i]);
    }
}

TEST(a_kernel_that_is_missing_costs_the_ops_that_may_use_it)
{
    sp_kernel table[SP_KERNEL_COUNT];
    memcpy(table, sp__cpu_kernels(SP_CPU_PORTABLE), sizeof table);
    const uint32_t all = sp__op_coverage(table).covered_count;
    table[SP_KERNEL_ID_tanh_f32].run = NULL;
    CHECK_EQ_U64(sp__op_coverage(table).covered_count, all - 1);
    table[SP_KERNEL_ID_gemm_f32].run = NULL; /* Einsum, Gemm, MatMul, GRU, LSTM, RNN */
    CHECK_EQ_U64(sp__op_coverage(table).covered_count, all - 7);
    table[SP_KERNEL_ID_copy_strided].run = NULL; /* for all types */
    CHECK(!sp__op_is_covered("Transpose", table));
}

TEST(an_op_is_covered_without_its_kernels_for_other_types_than_f32)
{
    sp_kernel table[SP_KERNEL_COUNT];
    memcpy(table, sp__cpu_kernels(SP_CPU_PORTABLE), sizeof table);
    table[SP_KERNEL_ID_add_i32].run = NULL;
    table[SP_KERNEL_ID_add_i64].run = NULL;
    CHECK(sp__op_is_covered("Add", table));
    table[SP_KERNEL_ID_add_f32].run = NULL;
    CHECK(!sp__op_is_covered("Add", table));
    CHECK(sp__op_is_covered("Sub", table));
}

/* A table with the kernels of Sum but not of Cast, of Conv for images but not for volumes; without
 * that of Sqrt, and those that select. */
TEST(kernels_that_f32_does_not_need_or_seldom_needs_do_not_count)
{
    static const char *const missing[] = {"Cast", "Sqrt", "Where", "And"};
    sp_kernel table[SP_KERNEL_COUNT];
    memcpy(table, sp__cpu_kernels(SP_CPU_PORTABLE), sizeof table);
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        for (size_t k = 0; k < SP_COUNT_OF(missing); k++) {
            if (sp__op_may_use(missing[k], (sp_kernel_id)i)) table[i].run = NULL;
        }
    }
    table[SP_KERNEL_ID_conv_3d_f32].run = NULL;
    CHECK(sp__op_may_use("Add", SP_KERNEL_ID_cast_f16));
    CHECK(sp__op_is_covered("Sum", table));
    CHECK(sp__op_may_use("Conv", SP_KERNEL_ID_conv_3d_f32));
    CHECK(sp__op_is_covered("Conv", table));
    CHECK(sp__op_is_covered("Expand", table));
    for (size_t k = 0; k < SP_COUNT_OF(missing); k++) {
        CHECK(!sp__op_is_covered(missing[k], table)); /* And: of bools alone */
    }
}

TEST(a_pattern_stands_for_the_types_of_one_operation)
{
    CHECK(sp__op_may_use("Add", SP_KERNEL_ID_add_i64));
    CHECK(!sp__op_may_use("Add", SP_KERNEL_ID_sub_i64));
    CHECK(!sp__op_may_use("Less", SP_KERNEL_ID_less_or_equal_f32));
    CHECK(!sp__op_may_use("Max", SP_KERNEL_ID_max_pool_f32));
    CHECK(sp__op_may_use("Gemm", SP_KERNEL_ID_gemm_pack_f32));
    CHECK(!sp__op_may_use("Conv", SP_KERNEL_ID_concat));
    CHECK(!sp__op_may_use("Reshape", SP_KERNEL_ID_copy_bytes));
}

TEST_MAIN
