/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_kernels.h"

#include <string.h>

#include "base/macros.h"
#include "ops/op_list.h"
#include "ops/registry.h"

/* Names of kernels, between commas; a * at the end stands for one word without a _: add_* is
 * add_f32 and add_i64, max_* is not max_pool_f32.
 *
 * Ops that are not here emit none: views, and what is known before the run. A plan copies them
 * (copy_bytes) where an output needs bytes of its own. */
typedef struct row {
    const char *op;
    const char *kernels;
} row;

static const row rows[] = {
    {"Add", "add_*"},
    {"ArgMax", "arg_*"},
    {"ArgMin", "arg_*"},
    {"AveragePool", "average_pool_*"},
    {"BatchNormalization", "batch_norm_*"},
    {"Concat", "concat"},
    {"ConstantOfShape", "fill"},
    {"Conv", "conv_f32, conv_depthwise_f32"},
    {"ConvTranspose", "conv_transpose_*"},
    {"CumSum", "cumsum_*"},
    {"Div", "div_*"},
    {"Exp", "exp_*"},
    {"Gemm", "gemm_f32, gemm_pack_f32"},
    {"GlobalAveragePool", "reduce_*"},
    {"GlobalMaxPool", "reduce_*"},
    {"GroupNormalization", "norm_*"},
    {"Hardmax", "hardmax_*"},
    {"InstanceNormalization", "norm_*"},
    {"LRN", "lrn_*"},
    {"LayerNormalization", "norm_*"},
    {"LogSoftmax", "softmax_*"},
    {"LpNormalization", "lp_norm_*"},
    {"MatMul", "gemm_f32, gemm_pack_f32"},
    {"MaxPool", "max_pool_*"},
    {"MeanVarianceNormalization", "reduce_f32, standardize_*"},
    {"Mul", "mul_*"},
    {"Pad", "pad"},
    {"ReduceL1", "reduce_*"},
    {"ReduceL2", "reduce_*"},
    {"ReduceLogSum", "reduce_*"},
    {"ReduceLogSumExp", "reduce_*"},
    {"ReduceMax", "reduce_*"},
    {"ReduceMean", "reduce_*"},
    {"ReduceMin", "reduce_*"},
    {"ReduceProd", "reduce_*"},
    {"ReduceSum", "reduce_*"},
    {"ReduceSumSquare", "reduce_*"},
    {"Relu", "relu_*"},
    {"Sigmoid", "sigmoid_*"},
    {"Softmax", "softmax_*"},
    {"Split", "split"},
    {"Sub", "sub_*"},
    {"Tanh", "tanh_*"},
    {"Transpose", "copy_strided"},
};

/* What few uses of an op need: it is covered without. */
static const row rare_rows[] = {
    {"BatchNormalization", "reduce_f32, blend_*"}, /* in training */
    {"Conv", "conv_3d_*"},
    {"MaxPool", "max_pool_any_*"}, /* volumes, and places of the maxima */
};

static const char *find_row(const row *table, size_t count, const char *op)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].op, op) == 0) return table[i].kernels;
    }
    return "";
}

static bool matches(sp_text pattern, const char *name)
{
    if (pattern.ptr[pattern.len - 1] != '*') return sp__text_is(pattern, name);
    const size_t stem = pattern.len - 1;
    return strncmp(pattern.ptr, name, stem) == 0 && name[stem] != '\0' &&
           strchr(name + stem, '_') == NULL;
}

static const char *name_of(sp_kernel_id kernel)
{
    return sp__cpu_kernels(SP_CPU_PORTABLE)[kernel].name; /* which has all */
}

static bool has_match(const char *list, const char *name)
{
    for (sp_text pattern; sp__op_list_next(&list, &pattern);) {
        if (matches(pattern, name)) return true;
    }
    return false;
}

bool sp__op_may_use(const char *op, sp_kernel_id kernel)
{
    const char *name = name_of(kernel);
    return has_match(find_row(rows, SP_COUNT_OF(rows), op), name) ||
           has_match(find_row(rare_rows, SP_COUNT_OF(rare_rows), op), name);
}

/* Is the kernel for elements of one type, which is not f32? */
static bool is_of_other_type(const char *kernel)
{
    static const sp_dtype dtypes[] = {
#define DTYPE(code, value, name, bytes) code,
        SP_DTYPE_LIST(DTYPE)
#undef DTYPE
    };
    const char *end = strrchr(kernel, '_');
    for (size_t i = 0; i < SP_COUNT_OF(dtypes) && end != NULL; i++) {
        if (strcmp(end + 1, sp_dtype_name(dtypes[i])) == 0) return dtypes[i] != SP_F32;
    }
    return false;
}

typedef struct kernel_count {
    uint32_t all, present;
} kernel_count;

/* Adds the kernels that match, counts[1] those of other types than f32; false if there are none. */
static bool count_matches(sp_text pattern, const sp_kernel *table, kernel_count counts[2])
{
    bool is_any = false;
    for (uint32_t i = 0; i < SP_KERNEL_COUNT; i++) {
        const char *name = name_of((sp_kernel_id)i);
        if (!matches(pattern, name)) continue;
        kernel_count *count = &counts[is_of_other_type(name)];
        count->all++;
        if (table == NULL || sp__kernel_is_there(&table[i])) count->present++;
        is_any = true;
    }
    return is_any;
}

/* A row with a name that no kernel has is covered by nothing, so tests find it. */
bool sp__op_is_covered(const char *op, const sp_kernel *table)
{
    kernel_count counts[2] = {0};
    const char *kernels = find_row(rows, SP_COUNT_OF(rows), op);
    for (sp_text pattern; sp__op_list_next(&kernels, &pattern);) {
        if (!count_matches(pattern, table, counts)) return false;
    }
    const kernel_count *needed = &counts[counts[0].all == 0];
    return needed->present == needed->all;
}

sp_op_coverage sp__op_coverage(const sp_kernel *table)
{
    sp_op_coverage coverage = {0};
    uint32_t count;
    const sp_op *ops = sp__op_table(&count);
    for (uint32_t i = 0; i < count; i++) {
        /* The versions of one op stand together. */
        if (i > 0 && strcmp(ops[i].name, ops[i - 1].name) == 0) continue;
        coverage.op_count++;
        if (sp__op_is_covered(ops[i].name, table)) coverage.covered_count++;
    }
    return coverage;
}
