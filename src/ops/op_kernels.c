/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_kernels.h"

#include <string.h>

#include "base/macros.h"
#include "ops/registry.h"

#define BIT(name) ((uint64_t)1 << SP_KERNEL_ID_##name)
#define BINARY(name) (BIT(name##_f32) | BIT(name##_i32) | BIT(name##_i64))

_Static_assert(SP_KERNEL_COUNT <= 64, "a row has one bit for each kernel");

/* Ops that are not here emit none: views, and what is known before the run. A plan copies them
 * (copy_bytes) where an output needs bytes of its own. */
static const struct row {
    const char *op;
    uint64_t kernels;
} rows[] = {
    {"Add", BINARY(add)},
    {"Concat", BIT(concat)},
    {"ConstantOfShape", BIT(fill)},
    {"Conv", BIT(conv_f32) | BIT(conv_depthwise_f32)},
    {"DepthToSpace", BIT(copy_strided)},
    {"Div", BINARY(div)},
    {"Exp", BIT(exp_f32)},
    {"EyeLike", BIT(eye)},
    {"GRU", BIT(gemm_f32) | BIT(gemm_pack_f32) | BIT(gru_f32)},
    {"Gather", BIT(gather)},
    {"GatherElements", BIT(gather_elements)},
    {"GatherND", BIT(gather_nd)},
    {"Gemm", BIT(gemm_f32) | BIT(gemm_pack_f32)},
    {"LSTM", BIT(gemm_f32) | BIT(gemm_pack_f32) | BIT(lstm_f32)},
    {"MatMul", BIT(gemm_f32) | BIT(gemm_pack_f32)},
    {"MaxPool", BIT(max_pool_f32)},
    {"Mul", BINARY(mul)},
    {"OneHot", BIT(one_hot)},
    {"Pad", BIT(pad)},
    {"RNN", BIT(gemm_f32) | BIT(gemm_pack_f32) | BIT(rnn_f32)},
    {"Range", BIT(range)},
    {"Relu", BIT(relu_f32)},
    {"Resize", BIT(resize_nearest) | BIT(resize_f32)},
    {"Scatter", BIT(copy_bytes) | BIT(scatter_elements)},
    {"ScatterElements", BIT(copy_bytes) | BIT(scatter_elements)},
    {"ScatterND", BIT(copy_bytes) | BIT(scatter_nd)},
    {"Sigmoid", BIT(sigmoid_f32)},
    {"Slice", BIT(copy_strided)},
    {"SpaceToDepth", BIT(copy_strided)},
    {"Split", BIT(split)},
    {"Sub", BINARY(sub)},
    {"Tanh", BIT(tanh_f32)},
    {"Tile", BIT(copy_strided)},
    {"TopK", BIT(top_k)},
    {"Transpose", BIT(copy_strided)},
    {"Trilu", BIT(trilu)},
    {"Upsample", BIT(resize_nearest) | BIT(resize_f32)},
};

static uint64_t kernels_of(const char *op)
{
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].op, op) == 0) return rows[i].kernels;
    }
    return 0;
}

bool sp__op_may_use(const char *op, sp_kernel_id kernel)
{
    return (kernels_of(op) >> kernel & 1) != 0;
}

static uint64_t kernels_in(const sp_kernel *table)
{
    if (table == NULL) return UINT64_MAX;
    uint64_t kernels = 0;
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        if (table[i].run != NULL || table[i].gpu != NULL) kernels |= (uint64_t)1 << i;
    }
    return kernels;
}

sp_op_coverage sp__op_coverage(const sp_kernel *table)
{
    const uint64_t present = kernels_in(table);
    sp_op_coverage coverage = {0};
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        /* The versions of one op stand together. */
        if (i > 0 && strcmp(ops[i].name, ops[i - 1].name) == 0) continue;
        coverage.op_count++;
        if ((kernels_of(ops[i].name) & ~present) == 0) coverage.covered_count++;
    }
    return coverage;
}
