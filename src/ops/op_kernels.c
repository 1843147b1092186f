/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op_kernels.h"

#include <string.h>

#include "base/macros.h"
#include "ops/op_list.h"
#include "ops/registry.h"

/* Names of kernels, between commas; a * at the end stands for one word without a _: add_* is
 * add_f32 and add_i64, max_* is not max_pool_f32. A ? in front: f32 does not need it, or only in
 * rare forms (training, volumes, places of maxima); the op counts as covered without.
 *
 * Ops that are not here emit none: views, and what is known before the run. A plan copies them
 * (copy_bytes) where an output needs bytes of its own. */
static const struct row {
    const char *op;
    const char *kernels;
} rows[] = {
    {"Abs", "abs_*, ?cast_*"},
    {"Add", "add_*, ?cast_*"},
    {"And", "and_bool"},
    {"ArgMax", "arg_*"},
    {"ArgMin", "arg_*"},
    {"AveragePool", "average_pool_*"},
    {"BatchNormalization", "batch_norm_*, ?reduce_f32, ?blend_*"},
    {"Cast", "cast_*"},
    {"CastLike", "cast_*"},
    {"Ceil", "ceil_*, ?cast_*"},
    {"Celu", "celu_f32, ?cast_*"},
    {"Clip", "clip_*, max_*, min_*, ?cast_*"},
    {"Concat", "concat"},
    {"ConstantOfShape", "fill"},
    {"Conv", "conv_f32, conv_depthwise_f32, ?conv_3d_*, ?conv_any_*"},
    {"ConvTranspose", "conv_transpose_*"},
    {"CumSum", "cumsum_*"},
    {"DepthToSpace", "copy_strided"},
    {"Div", "div_*, ?cast_*"},
    {"Dropout", "copy_bytes, fill"},
    {"Elu", "elu_f32, ?cast_*"},
    {"Equal", "equal_*, ?cast_*"},
    {"Erf", "erf_f32, ?cast_*"},
    {"Exp", "exp_*, ?cast_*"},
    {"Expand", "copy_strided"},
    {"EyeLike", "eye"},
    {"Floor", "floor_*, ?cast_*"},
    {"GRU", "gemm_f32, gemm_pack_f32, gru_f32"},
    {"Gather", "gather"},
    {"GatherElements", "gather_elements"},
    {"GatherND", "gather_nd"},
    {"Gelu", "gelu_f32, gelu_tanh_f32, ?cast_*"},
    {"Gemm", "gemm_f32, gemm_pack_f32, ?gemm_any_*"},
    {"GlobalAveragePool", "reduce_*"},
    {"GlobalMaxPool", "reduce_*"},
    {"Greater", "less_*, ?cast_*"},
    {"GreaterOrEqual", "less_or_equal_*, ?cast_*"},
    {"GroupNormalization", "norm_*"},
    {"HardSigmoid", "hard_sigmoid_*, ?cast_*"},
    {"HardSwish", "hard_swish_*, ?cast_*"},
    {"Hardmax", "hardmax_*"},
    {"InstanceNormalization", "norm_*"},
    {"IsInf", "is_inf_*, ?cast_*"},
    {"IsNaN", "is_nan_*, ?cast_*"},
    {"LRN", "lrn_*"},
    {"LSTM", "gemm_f32, gemm_pack_f32, lstm_f32"},
    {"LayerNormalization", "norm_*, ?copy_strided"},
    {"LeakyRelu", "leaky_relu_*, ?cast_*"},
    {"Less", "less_*, ?cast_*"},
    {"LessOrEqual", "less_or_equal_*, ?cast_*"},
    {"Log", "log_*, ?cast_*"},
    {"LogSoftmax", "softmax_*"},
    {"LpNormalization", "lp_norm_*"},
    {"MatMul", "gemm_f32, gemm_pack_f32, ?gemm_any_*"},
    {"Max", "max_*, ?cast_*"},
    {"MaxPool", "max_pool_*, ?max_pool_any_*"},
    {"Mean", "add_*, divide_*, ?cast_*"},
    {"MeanVarianceNormalization", "reduce_f32, standardize_*"},
    {"Min", "min_*, ?cast_*"},
    {"Mish", "mish_f32, ?cast_*"},
    {"Mod", "mod_*, fmod_*, ?cast_*"},
    {"Mul", "mul_*, ?cast_*"},
    {"Neg", "neg_*, ?cast_*"},
    {"NonZero", "non_zero"},
    {"Not", "not_bool"},
    {"OneHot", "one_hot"},
    {"Or", "or_bool"},
    {"PRelu", "prelu_*, ?cast_*"},
    {"Pad", "pad"},
    {"Pow", "pow_*, ?cast_*"},
    {"RNN", "gemm_f32, gemm_pack_f32, rnn_f32"},
    {"Range", "range"},
    {"Reciprocal", "reciprocal_*, ?cast_*"},
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
    {"Relu", "relu_*, ?cast_*"},
    {"Resize", "resize_nearest, resize_*, ?cast_*"},
    {"Round", "round_*, ?cast_*"},
    {"Scatter", "copy_bytes, scatter_elements, ?cast_*"},
    {"ScatterElements", "copy_bytes, scatter_elements, ?cast_*"},
    {"ScatterND", "copy_bytes, scatter_nd, ?cast_*"},
    {"Selu", "selu_f32, ?cast_*"},
    {"Sigmoid", "sigmoid_f32, ?cast_*"},
    {"Sign", "sign_*, ?cast_*"},
    {"Slice", "copy_strided"},
    {"Softmax", "softmax_*"},
    {"Softplus", "softplus_f32, ?cast_*"},
    {"Softsign", "softsign_*, ?cast_*"},
    {"SpaceToDepth", "copy_strided"},
    {"Split", "split"},
    {"Sqrt", "sqrt_*, ?cast_*"},
    {"Sub", "sub_*, ?cast_*"},
    {"Sum", "add_*, ?cast_*"},
    {"Tanh", "tanh_f32, ?cast_*"},
    {"ThresholdedRelu", "thresholded_relu_*, ?cast_*"},
    {"Tile", "copy_strided"},
    {"TopK", "top_k"},
    {"Transpose", "copy_strided"},
    {"Trilu", "trilu"},
    {"Upsample", "resize_nearest, resize_*, ?cast_*"},
    {"Where", "where_*"},
    {"Xor", "xor_bool"},
};

static const char *kernels_of(const char *op)
{
    for (size_t i = 0; i < SP_COUNT_OF(rows); i++) {
        if (strcmp(rows[i].op, op) == 0) return rows[i].kernels;
    }
    return "";
}

/* A pattern without the ? that it may begin with. */
static sp_text bare(sp_text pattern)
{
    const size_t skipped = pattern.ptr[0] == '?';
    return (sp_text){pattern.ptr + skipped, pattern.len - skipped};
}

static bool matches(sp_text pattern, const char *name)
{
    pattern = bare(pattern);
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
    return has_match(kernels_of(op), name);
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
        kernel_count *count = &counts[pattern.ptr[0] == '?' || is_of_other_type(name)];
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
    const char *kernels = kernels_of(op);
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
