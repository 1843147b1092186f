/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops: one row for each range of opset versions with one schema. */
#include "ops/registry.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

#define NEWEST SP_OPSET_NEWEST
#define F32 SP_DTYPE_BIT(SP_F32)
#define F64 SP_DTYPE_BIT(SP_F64)
#define INTS (SP_DTYPE_BIT(SP_I32) | SP_DTYPE_BIT(SP_I64))
#define I16 SP_DTYPE_BIT(SP_I16)
#define SIGNED_INTS (INTS | I16 | SP_DTYPE_BIT(SP_I8))
#define ALL_INTS                                                                                   \
    (SIGNED_INTS | SP_DTYPE_BIT(SP_U8) | SP_DTYPE_BIT(SP_U16) | SP_DTYPE_BIT(SP_U32) |             \
     SP_DTYPE_BIT(SP_U64))
#define HALVES (SP_DTYPE_BIT(SP_F16) | SP_DTYPE_BIT(SP_BF16))
#define F32_AND_HALVES (F32 | HALVES)
#define FLOATS (F32_AND_HALVES | F64)
#define LANE_FLOATS (F32 | F64 | SP_DTYPE_BIT(SP_F16)) /* of reductions */
#define PRODUCT_TYPES (FLOATS | INTS | SP_DTYPE_BIT(SP_U32) | SP_DTYPE_BIT(SP_U64))
#define BYTES (SP_DTYPE_BIT(SP_I8) | SP_DTYPE_BIT(SP_U8))
#define NUMBERS (FLOATS | ALL_INTS)
#define BOOLS SP_DTYPE_BIT(SP_BOOL)
#define ANY (NUMBERS | BOOLS)
#define I64 SP_DTYPE_BIT(SP_I64)
/* What a branch that is not taken would give has no type. */
#define ANY_OR_NONE (ANY | SP_DTYPE_BIT(SP_DTYPE_NONE))

/* Types of input 0, 1, ...; where there are less of them than inputs, or SAME, the others have the
 * type of input 0. */
#define TYPES(...) __VA_ARGS__
#define SAME 0
#define ALL_ANY TYPES(ANY, ANY, ANY, ANY, ANY, ANY)

#define ATTRIBUTE(name_, type_) {.name = name_, .type = SP_ATTRIBUTE_##type_}
#define REQUIRED(name_, type_) {.name = name_, .type = SP_ATTRIBUTE_##type_, .is_required = true}
/* Types are narrowed to these unless it is `free_`. */
#define NARROWING(name_, type_, fallback_, free_, dtypes_)                                         \
    {.name = name_,                                                                                \
     .type = SP_ATTRIBUTE_##type_,                                                                 \
     .dtypes = dtypes_,                                                                            \
     .fallback = fallback_,                                                                        \
     .free = free_}
#define WINDOW_ATTRIBUTES                                                                          \
    ATTRIBUTE("auto_pad", STRING), ATTRIBUTE("pads", INTS), ATTRIBUTE("strides", INTS),            \
        ATTRIBUTE("dilations", INTS)
#define AVERAGE_POOL_ATTRIBUTES                                                                    \
    ATTRIBUTE("auto_pad", STRING), ATTRIBUTE("pads", INTS), ATTRIBUTE("strides", INTS),            \
        REQUIRED("kernel_shape", INTS), ATTRIBUTE("ceil_mode", INT),                               \
        ATTRIBUTE("count_include_pad", INT)
#define GEMM_ATTRIBUTES                                                                            \
    ATTRIBUTE("alpha", FLOAT), ATTRIBUTE("beta", FLOAT), ATTRIBUTE("transA", INT),                 \
        ATTRIBUTE("transB", INT)

#define RESIZE_MODE NARROWING("mode", STRING, "nearest", "nearest", FLOATS)
#define RESIZE_TYPES TYPES(ANY, F32 | F64 | SP_DTYPE_BIT(SP_F16), F32, INTS)
#define SCATTER_TYPES TYPES(ANY, INTS, SAME)
#define SCATTER_REDUCTION NARROWING("reduction", STRING, "none", "none", NUMBERS)
#define RESIZE_ATTRIBUTES                                                                          \
    ATTRIBUTE("coordinate_transformation_mode", STRING), ATTRIBUTE("cubic_coeff_a", FLOAT),        \
        ATTRIBUTE("exclude_outside", INT), ATTRIBUTE("extrapolation_value", FLOAT), RESIZE_MODE,   \
        ATTRIBUTE("nearest_mode", STRING)
#define RECURRENT_ATTRIBUTES                                                                       \
    ATTRIBUTE("activation_alpha", FLOATS), ATTRIBUTE("activation_beta", FLOATS),                   \
        ATTRIBUTE("activations", STRINGS), ATTRIBUTE("clip", FLOAT),                               \
        ATTRIBUTE("direction", STRING), ATTRIBUTE("hidden_size", INT)
#define RECURRENT(name_, since_, until_, max_in, max_out, ...)                                     \
    OP(name_, since_, until_, 3, max_in, 1, max_out,                                               \
       TYPES(F32, SAME, SAME, SAME, SP_DTYPE_BIT(SP_I32)), sp__recurrent_infer,                    \
       sp__recurrent_lower, sp__recurrent_pack, RECURRENT_ATTRIBUTES, __VA_ARGS__)

/* name, versions, inputs, outputs, types, shape rule, lowering, packing, attributes */
#define OP(name_, since_, until_, min_in, max_in, min_out, max_out, dtypes_, infer_, lower_,       \
           pack_, ...)                                                                             \
    {.name = name_,                                                                                \
     .since = since_,                                                                              \
     .until = until_,                                                                              \
     .min_inputs = min_in,                                                                         \
     .max_inputs = max_in,                                                                         \
     .min_outputs = min_out,                                                                       \
     .max_outputs = max_out,                                                                       \
     .dtypes = {dtypes_},                                                                          \
     .attributes = {__VA_ARGS__},                                                                  \
     .infer = infer_,                                                                              \
     .lower = lower_,                                                                              \
     .pack = pack_}
#define NO_ATTRIBUTES {.name = NULL}

/* Two inputs that broadcast; before version 7 the second one to the first, by attributes. */
#define BINARY(name_, dtypes_, infer_, lower_)                                                     \
    OP(name_, 6, 6, 2, 2, 1, 1, dtypes_, infer_, lower_, NULL, ATTRIBUTE("axis", INT),             \
       ATTRIBUTE("broadcast", INT)),                                                               \
        OP(name_, 7, NEWEST, 2, 2, 1, 1, dtypes_, infer_, lower_, NULL, NO_ATTRIBUTES)
#define COMPARISON(name_, since_, dtypes_, lower_)                                                 \
    OP(name_, since_, NEWEST, 2, 2, 1, 1, dtypes_, sp__comparison_infer, lower_, NULL,             \
       NO_ATTRIBUTES)
#define VARIADIC(name_, dtypes_, lower_)                                                           \
    OP(name_, 6, NEWEST, 1, SP_OP_VARIADIC, 1, 1, dtypes_, sp__variadic_infer, lower_, NULL,       \
       NO_ATTRIBUTES)
#define UNARY(name_, since_, dtypes_, lower_, ...)                                                 \
    OP(name_, since_, NEWEST, 1, 1, 1, 1, dtypes_, sp__op_infer_same, lower_, NULL, __VA_ARGS__)
#define PREDICATE(name_, since_, dtypes_, lower_, ...)                                             \
    OP(name_, since_, NEWEST, 1, 1, 1, 1, dtypes_, sp__predicate_infer, lower_, NULL, __VA_ARGS__)

/* Axes as an attribute before version `from`, as an input from then on. */
#define REDUCE_OLD(name_, last_, dtypes_, infer_, lower_)                                          \
    OP(name_, 1, last_, 1, 1, 1, 1, dtypes_, infer_, lower_, NULL, ATTRIBUTE("axes", INTS),        \
       ATTRIBUTE("keepdims", INT))
#define REDUCE_BETWEEN(name_, first_, last_, dtypes_, infer_, lower_)                              \
    OP(name_, first_, last_, 1, 2, 1, 1, TYPES(dtypes_, INTS), infer_, lower_, NULL,               \
       ATTRIBUTE("keepdims", INT), ATTRIBUTE("noop_with_empty_axes", INT))
#define REDUCE(name_, from, dtypes_, infer_, lower_)                                               \
    REDUCE_OLD(name_, from - 1, dtypes_, infer_, lower_),                                          \
        REDUCE_BETWEEN(name_, from, NEWEST, dtypes_, infer_, lower_)
#define REDUCE_ORDER(name_, lower_)                                                                \
    REDUCE_OLD(name_, 17, LANE_FLOATS | INTS | BYTES, sp__reduce_infer, lower_),                   \
        REDUCE_BETWEEN(name_, 18, 19, LANE_FLOATS | INTS | BYTES, sp__reduce_infer, lower_),       \
        REDUCE_BETWEEN(name_, 20, NEWEST, LANE_FLOATS | INTS | BYTES | BOOLS, sp__reduce_infer,    \
                       lower_)

#define ARG(name_, lower_)                                                                         \
    OP(name_, 1, 11, 1, 1, 1, 1, F32 | F64 | INTS | BYTES, sp__arg_infer, lower_, NULL,            \
       ATTRIBUTE("axis", INT), ATTRIBUTE("keepdims", INT)),                                        \
        OP(name_, 12, NEWEST, 1, 1, 1, 1, F32 | F64 | INTS | BYTES, sp__arg_infer, lower_, NULL,   \
           ATTRIBUTE("axis", INT), ATTRIBUTE("keepdims", INT),                                     \
           ATTRIBUTE("select_last_index", INT))

/* clang-format off */
static const sp_op table[] = {
    UNARY("Abs", 6, NUMBERS, sp__abs_lower, NO_ATTRIBUTES),
    BINARY("Add", NUMBERS, sp__binary_infer, sp__add_lower),
    COMPARISON("And", 7, BOOLS, sp__and_lower),
    ARG("ArgMax", sp__arg_max_lower),
    ARG("ArgMin", sp__arg_min_lower),
    OP("AveragePool", 1, 18, 1, 1, 1, 1, F32, sp__pool_infer, sp__average_pool_lower, NULL,
       AVERAGE_POOL_ATTRIBUTES),
    OP("AveragePool", 19, NEWEST, 1, 1, 1, 1, F32, sp__pool_infer, sp__average_pool_lower, NULL,
       AVERAGE_POOL_ATTRIBUTES, ATTRIBUTE("dilations", INTS)),
    OP("BatchNormalization", 6, 6, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT), ATTRIBUTE("is_test", INT),
       ATTRIBUTE("spatial", INT)),
    OP("BatchNormalization", 7, 8, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT), ATTRIBUTE("spatial", INT)),
    OP("BatchNormalization", 9, 13, 5, 5, 1, 5, F32, sp__batch_norm_infer, sp__batch_norm_lower,
       NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT)),
    OP("BatchNormalization", 14, NEWEST, 5, 5, 1, 3, F32, sp__batch_norm_infer,
       sp__batch_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT), ATTRIBUTE("momentum", FLOAT),
       ATTRIBUTE("training_mode", INT)),
    OP("Cast", 6, NEWEST, 1, 1, 1, 1, ANY, sp__cast_infer, sp__cast_lower, NULL,
       REQUIRED("to", INT), ATTRIBUTE("saturate", INT), ATTRIBUTE("round_mode", STRING)),
    OP("CastLike", 15, NEWEST, 2, 2, 1, 1, TYPES(ANY, ANY), sp__cast_like_infer, sp__cast_lower, NULL,
       ATTRIBUTE("saturate", INT), ATTRIBUTE("round_mode", STRING)),
    UNARY("Ceil", 6, FLOATS, sp__ceil_lower, NO_ATTRIBUTES),
    UNARY("Celu", 12, F32_AND_HALVES, sp__celu_lower, ATTRIBUTE("alpha", FLOAT)),
    OP("Clip", 6, 10, 1, 1, 1, 1, FLOATS, sp__op_infer_same, sp__clip_lower, NULL,
       ATTRIBUTE("min", FLOAT), ATTRIBUTE("max", FLOAT)),
    OP("Clip", 11, NEWEST, 1, 3, 1, 1, NUMBERS, sp__clip_infer, sp__clip_lower, NULL,
       NO_ATTRIBUTES),
    OP("Concat", 4, NEWEST, 1, SP_OP_VARIADIC, 1, 1, ANY, sp__concat_infer, sp__concat_lower, NULL,
       REQUIRED("axis", INT)),
    OP("Constant", 1, 10, 0, 0, 1, 1, ANY, sp__constant_infer, sp__known_lower, NULL,
       REQUIRED("value", TENSOR)),
    OP("Constant", 11, NEWEST, 0, 0, 1, 1, ANY, sp__constant_infer, sp__known_lower, NULL,
       ATTRIBUTE("value", TENSOR), ATTRIBUTE("value_float", FLOAT),
       ATTRIBUTE("value_floats", FLOATS), ATTRIBUTE("value_int", INT),
       ATTRIBUTE("value_ints", INTS)),
    OP("ConstantOfShape", 9, NEWEST, 1, 1, 1, 1, INTS, sp__constant_of_shape_infer,
       sp__constant_of_shape_lower, NULL, ATTRIBUTE("value", TENSOR)),
    OP("Conv", 1, NEWEST, 2, 3, 1, 1, FLOATS, sp__conv_infer, sp__conv_lower, NULL,
       WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT), ATTRIBUTE("kernel_shape", INTS)),
    OP("ConvTranspose", 1, NEWEST, 2, 3, 1, 1, F32, sp__conv_transpose_infer,
       sp__conv_transpose_lower, NULL, WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT),
       ATTRIBUTE("kernel_shape", INTS), ATTRIBUTE("output_padding", INTS),
       ATTRIBUTE("output_shape", INTS)),
    OP("CumSum", 11, NEWEST, 2, 2, 1, 1, TYPES(F32 | F64 | INTS, INTS), sp__cumsum_infer, sp__cumsum_lower, NULL,
       ATTRIBUTE("exclusive", INT), ATTRIBUTE("reverse", INT)),
    OP("DepthToSpace", 1, 10, 1, 1, 1, 1, ANY, sp__depth_to_space_infer, sp__depth_to_space_lower,
       NULL, REQUIRED("blocksize", INT)),
    OP("DepthToSpace", 11, NEWEST, 1, 1, 1, 1, ANY, sp__depth_to_space_infer,
       sp__depth_to_space_lower, NULL, REQUIRED("blocksize", INT), ATTRIBUTE("mode", STRING)),
    BINARY("Div", NUMBERS, sp__binary_infer, sp__div_lower),
    OP("Dropout", 7, 11, 1, 1, 1, 2, FLOATS, sp__dropout_infer, sp__dropout_lower, NULL,
       ATTRIBUTE("ratio", FLOAT)),
    OP("Dropout", 12, NEWEST, 1, 3, 1, 2, TYPES(FLOATS, FLOATS, BOOLS), sp__dropout_infer, sp__dropout_lower, NULL,
       ATTRIBUTE("seed", INT)),
    UNARY("Elu", 6, F32_AND_HALVES, sp__elu_lower, ATTRIBUTE("alpha", FLOAT)),
    COMPARISON("Equal", 7, NUMBERS | BOOLS, sp__equal_lower),
    UNARY("Erf", 9, F32_AND_HALVES, sp__erf_lower, NO_ATTRIBUTES),
    UNARY("Exp", 6, FLOATS, sp__exp_lower, NO_ATTRIBUTES),
    OP("Expand", 8, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__expand_infer, sp__expand_lower, NULL,
       NO_ATTRIBUTES),
    OP("EyeLike", 9, NEWEST, 1, 1, 1, 1, ANY, sp__eye_like_infer, sp__eye_like_lower, NULL,
       ATTRIBUTE("dtype", INT), ATTRIBUTE("k", INT)),
    OP("Flatten", 1, NEWEST, 1, 1, 1, 1, ANY, sp__flatten_infer, sp__view_lower, NULL,
       ATTRIBUTE("axis", INT)),
    UNARY("Floor", 6, FLOATS, sp__floor_lower, NO_ATTRIBUTES),
    RECURRENT("GRU", 7, 13, 6, 2, ATTRIBUTE("linear_before_reset", INT)),
    RECURRENT("GRU", 14, NEWEST, 6, 2, ATTRIBUTE("linear_before_reset", INT),
              ATTRIBUTE("layout", INT)),
    OP("Gather", 1, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_infer, sp__gather_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("GatherElements", 11, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_elements_infer,
       sp__gather_elements_lower, NULL, ATTRIBUTE("axis", INT)),
    OP("GatherND", 11, 11, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP("GatherND", 12, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       ATTRIBUTE("batch_dims", INT)),
    OP("Gelu", 20, NEWEST, 1, 1, 1, 1, F32_AND_HALVES, sp__gelu_infer, sp__gelu_lower, NULL,
       ATTRIBUTE("approximate", STRING)),
    OP("Gemm", 6, 6, 3, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES, ATTRIBUTE("broadcast", INT)),
    OP("Gemm", 7, 10, 3, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("Gemm", 11, NEWEST, 2, 3, 1, 1, FLOATS, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("GlobalAveragePool", 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__global_pool_infer,
       sp__global_average_pool_lower, NULL, NO_ATTRIBUTES),
    OP("GlobalMaxPool", 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__global_pool_infer,
       sp__global_max_pool_lower, NULL, NO_ATTRIBUTES),
    COMPARISON("Greater", 7, NUMBERS, sp__greater_lower),
    COMPARISON("GreaterOrEqual", 12, NUMBERS, sp__greater_or_equal_lower),
    OP("GroupNormalization", 18, NEWEST, 3, 3, 1, 1, F32, sp__group_norm_infer,
       sp__group_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT), REQUIRED("num_groups", INT),
       ATTRIBUTE("stash_type", INT)),
    UNARY("HardSigmoid", 6, FLOATS, sp__hard_sigmoid_lower, ATTRIBUTE("alpha", FLOAT),
          ATTRIBUTE("beta", FLOAT)),
    UNARY("HardSwish", 14, FLOATS, sp__hard_swish_lower, NO_ATTRIBUTES),
    OP("Hardmax", 1, NEWEST, 1, 1, 1, 1, F32, sp__softmax_infer, sp__hardmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Identity", 1, NEWEST, 1, 1, 1, 1, ANY, sp__op_infer_same, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    OP("If", 1, NEWEST, 1, 1, 1, SP_OP_VARIADIC, TYPES(BOOLS, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE, ANY_OR_NONE), sp__if_infer,
       sp__if_lower, NULL, REQUIRED("then_branch", GRAPH), REQUIRED("else_branch", GRAPH)),
    OP("InstanceNormalization", 6, NEWEST, 3, 3, 1, 1, F32, sp__instance_norm_infer,
       sp__instance_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT)),
    PREDICATE("IsInf", 10, FLOATS, sp__is_inf_lower, ATTRIBUTE("detect_negative", INT),
              ATTRIBUTE("detect_positive", INT)),
    PREDICATE("IsNaN", 9, FLOATS, sp__is_nan_lower, NO_ATTRIBUTES),
    OP("LRN", 1, NEWEST, 1, 1, 1, 1, F32, sp__lrn_infer, sp__lrn_lower, NULL,
       ATTRIBUTE("alpha", FLOAT), ATTRIBUTE("beta", FLOAT), ATTRIBUTE("bias", FLOAT),
       REQUIRED("size", INT)),
    RECURRENT("LSTM", 7, 13, 8, 3, ATTRIBUTE("input_forget", INT)),
    RECURRENT("LSTM", 14, NEWEST, 8, 3, ATTRIBUTE("input_forget", INT), ATTRIBUTE("layout", INT)),
    OP("LayerNormalization", 17, NEWEST, 2, 3, 1, 3, F32, sp__layer_norm_infer,
       sp__layer_norm_lower, NULL, ATTRIBUTE("axis", INT), ATTRIBUTE("epsilon", FLOAT),
       ATTRIBUTE("stash_type", INT)),
    UNARY("LeakyRelu", 6, FLOATS, sp__leaky_relu_lower, ATTRIBUTE("alpha", FLOAT)),
    COMPARISON("Less", 7, NUMBERS, sp__less_lower),
    COMPARISON("LessOrEqual", 12, NUMBERS, sp__less_or_equal_lower),
    UNARY("Log", 6, FLOATS, sp__log_lower, NO_ATTRIBUTES),
    OP("LogSoftmax", 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__softmax_infer, sp__log_softmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Loop", 1, NEWEST, 0, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, TYPES(I64, BOOLS, ANY, ANY, ANY, ANY), sp__loop_infer,
       sp__loop_lower, NULL, REQUIRED("body", GRAPH)),
    OP("LpNormalization", 1, NEWEST, 1, 1, 1, 1, F32, sp__lp_norm_infer, sp__lp_norm_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("p", INT)),
    OP("MatMul", 1, NEWEST, 2, 2, 1, 1, PRODUCT_TYPES, sp__matmul_infer, sp__matmul_lower, sp__matmul_pack,
       NO_ATTRIBUTES),
    VARIADIC("Max", NUMBERS, sp__max_lower),
    OP("MaxPool", 1, NEWEST, 1, 1, 1, 2, F32 | F64 | BYTES, sp__pool_infer,
       sp__max_pool_lower, NULL, WINDOW_ATTRIBUTES, REQUIRED("kernel_shape", INTS),
       ATTRIBUTE("ceil_mode", INT), ATTRIBUTE("storage_order", INT)),
    VARIADIC("Mean", FLOATS, sp__mean_lower),
    OP("MeanVarianceNormalization", 9, NEWEST, 1, 1, 1, 1, F32, sp__mvn_infer, sp__mvn_lower, NULL,
       ATTRIBUTE("axes", INTS)),
    VARIADIC("Min", NUMBERS, sp__min_lower),
    UNARY("Mish", 18, F32_AND_HALVES, sp__mish_lower, NO_ATTRIBUTES),
    OP("Mod", 10, NEWEST, 2, 2, 1, 1, NUMBERS, sp__binary_infer, sp__mod_lower, NULL,
       NARROWING("fmod", INT, "0", "1", ALL_INTS)),
    BINARY("Mul", NUMBERS, sp__binary_infer, sp__mul_lower),
    UNARY("Neg", 6, FLOATS | SIGNED_INTS, sp__neg_lower, NO_ATTRIBUTES),
    OP("NonZero", 9, NEWEST, 1, 1, 1, 1, ANY, sp__non_zero_infer, sp__non_zero_lower, NULL,
       NO_ATTRIBUTES),
    UNARY("Not", 1, BOOLS, sp__not_lower, NO_ATTRIBUTES),
    OP("OneHot", 9, NEWEST, 3, 3, 1, 1, TYPES(F32 | INTS, F32 | INTS, ANY), sp__one_hot_infer, sp__one_hot_lower, NULL,
       ATTRIBUTE("axis", INT)),
    COMPARISON("Or", 7, BOOLS, sp__or_lower),
    OP("PRelu", 6, NEWEST, 2, 2, 1, 1, FLOATS | INTS | SP_DTYPE_BIT(SP_U32) | SP_DTYPE_BIT(SP_U64),
       sp__prelu_infer, sp__prelu_lower, NULL, NO_ATTRIBUTES),
    OP("Pad", 2, 10, 1, 1, 1, 1, F32 | F64, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING), REQUIRED("pads", INTS), ATTRIBUTE("value", FLOAT)),
    OP("Pad", 11, 17, 2, 3, 1, 1, TYPES(ANY, INTS, SAME), sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP("Pad", 18, NEWEST, 2, 4, 1, 1, TYPES(ANY, INTS, SAME, INTS), sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP("Pow", 6, 6, 2, 2, 1, 1, FLOATS | INTS, sp__binary_infer, sp__pow_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("broadcast", INT)),
    OP("Pow", 7, 11, 2, 2, 1, 1, FLOATS | INTS, sp__binary_infer, sp__pow_lower, NULL, NO_ATTRIBUTES),
    OP("Pow", 12, NEWEST, 2, 2, 1, 1, TYPES(FLOATS | INTS, NUMBERS), sp__binary_infer, sp__pow_lower,
       NULL, NO_ATTRIBUTES),
    RECURRENT("RNN", 7, 13, 6, 2, NO_ATTRIBUTES),
    RECURRENT("RNN", 14, NEWEST, 6, 2, ATTRIBUTE("layout", INT)),
    OP("Range", 11, NEWEST, 3, 3, 1, 1, F32 | F64 | INTS | I16, sp__range_infer, sp__range_lower,
       NULL, NO_ATTRIBUTES),
    UNARY("Reciprocal", 6, FLOATS, sp__reciprocal_lower, NO_ATTRIBUTES),
    REDUCE("ReduceL1", 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_l1_lower),
    REDUCE("ReduceL2", 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_l2_lower),
    REDUCE("ReduceLogSum", 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_log_sum_lower),
    REDUCE("ReduceLogSumExp", 18, LANE_FLOATS, sp__reduce_infer, sp__reduce_log_sum_exp_lower),
    REDUCE_ORDER("ReduceMax", sp__reduce_max_lower),
    REDUCE("ReduceMean", 18, LANE_FLOATS | INTS, sp__reduce_mean_infer, sp__reduce_mean_lower),
    REDUCE_ORDER("ReduceMin", sp__reduce_min_lower),
    REDUCE("ReduceProd", 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_prod_lower),
    REDUCE("ReduceSum", 13, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_lower),
    REDUCE("ReduceSumSquare", 18, LANE_FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_square_lower),
    UNARY("Relu", 6, FLOATS | SIGNED_INTS, sp__relu_lower, NO_ATTRIBUTES),
    OP("Reshape", 5, 13, 2, 2, 1, 1, TYPES(ANY, INTS), sp__reshape_infer, sp__view_lower, NULL, NO_ATTRIBUTES),
    OP("Reshape", 14, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__reshape_infer, sp__view_lower, NULL,
       ATTRIBUTE("allowzero", INT)),
    OP("Resize", 10, 10, 2, 2, 1, 1, TYPES(ANY, F32), sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE),
    OP("Resize", 11, 17, 1, 4, 1, 1, RESIZE_TYPES, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES),
    OP("Resize", 18, NEWEST, 1, 4, 1, 1, RESIZE_TYPES, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES, ATTRIBUTE("antialias", INT), ATTRIBUTE("axes", INTS),
       ATTRIBUTE("keep_aspect_ratio_policy", STRING)),
    UNARY("Round", 11, FLOATS, sp__round_lower, NO_ATTRIBUTES),
    OP("Scan", 8, 8, 0, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, ALL_ANY, sp__loop_infer, sp__loop_lower,
       NULL, REQUIRED("body", GRAPH), REQUIRED("num_scan_inputs", INT),
       ATTRIBUTE("directions", INTS)),
    OP("Scan", 9, NEWEST, 1, SP_OP_VARIADIC, 1, SP_OP_VARIADIC, ALL_ANY, sp__loop_infer,
       sp__loop_lower, NULL, REQUIRED("body", GRAPH), REQUIRED("num_scan_inputs", INT),
       ATTRIBUTE("scan_input_axes", INTS), ATTRIBUTE("scan_input_directions", INTS),
       ATTRIBUTE("scan_output_axes", INTS), ATTRIBUTE("scan_output_directions", INTS)),
    OP("Scatter", 9, 10, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer, sp__scatter_elements_lower,
       NULL, ATTRIBUTE("axis", INT)),
    OP("ScatterElements", 11, 15, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT)),
    OP("ScatterElements", 16, NEWEST, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT), SCATTER_REDUCTION),
    OP("ScatterND", 11, 15, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP("ScatterND", 16, NEWEST, 3, 3, 1, 1, SCATTER_TYPES, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       SCATTER_REDUCTION),
    UNARY("Selu", 6, F32_AND_HALVES, sp__selu_lower, ATTRIBUTE("alpha", FLOAT),
          ATTRIBUTE("gamma", FLOAT)),
    OP("Shape", 1, 14, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP("Shape", 15, NEWEST, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL,
       ATTRIBUTE("start", INT), ATTRIBUTE("end", INT)),
    UNARY("Sigmoid", 6, F32_AND_HALVES, sp__sigmoid_lower, NO_ATTRIBUTES),
    UNARY("Sign", 9, NUMBERS, sp__sign_lower, NO_ATTRIBUTES),
    OP("Size", 1, NEWEST, 1, 1, 1, 1, ANY, sp__size_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP("Slice", 1, 9, 1, 1, 1, 1, ANY, sp__slice_infer, sp__slice_lower, NULL,
       REQUIRED("starts", INTS), REQUIRED("ends", INTS), ATTRIBUTE("axes", INTS)),
    OP("Slice", 10, NEWEST, 3, 5, 1, 1, TYPES(ANY, INTS, INTS, INTS, INTS), sp__slice_infer, sp__slice_lower, NULL, NO_ATTRIBUTES),
    OP("Softmax", 1, NEWEST, 1, 1, 1, 1, LANE_FLOATS, sp__softmax_infer, sp__softmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    UNARY("Softplus", 1, F32_AND_HALVES, sp__softplus_lower, NO_ATTRIBUTES),
    UNARY("Softsign", 1, FLOATS, sp__softsign_lower, NO_ATTRIBUTES),
    OP("SpaceToDepth", 1, NEWEST, 1, 1, 1, 1, ANY, sp__space_to_depth_infer,
       sp__space_to_depth_lower, NULL, REQUIRED("blocksize", INT)),
    OP("Split", 2, 12, 1, 1, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("split", INTS)),
    OP("Split", 13, 17, 1, 2, 1, SP_OP_VARIADIC, TYPES(ANY, I64), sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Split", 18, NEWEST, 1, 2, 1, SP_OP_VARIADIC, TYPES(ANY, I64), sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("num_outputs", INT)),
    UNARY("Sqrt", 6, FLOATS, sp__sqrt_lower, NO_ATTRIBUTES),
    OP("Squeeze", 1, 12, 1, 1, 1, 1, ANY, sp__squeeze_infer, sp__view_lower, NULL,
       ATTRIBUTE("axes", INTS)),
    OP("Squeeze", 13, NEWEST, 1, 2, 1, 1, TYPES(ANY, INTS), sp__squeeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    BINARY("Sub", NUMBERS, sp__binary_infer, sp__sub_lower),
    VARIADIC("Sum", FLOATS, sp__sum_lower),
    UNARY("Tanh", 6, F32_AND_HALVES, sp__tanh_lower, NO_ATTRIBUTES),
    UNARY("ThresholdedRelu", 10, FLOATS, sp__thresholded_relu_lower, ATTRIBUTE("alpha", FLOAT)),
    OP("Tile", 6, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__tile_infer, sp__tile_lower, NULL, NO_ATTRIBUTES),
    OP("TopK", 1, 9, 1, 1, 2, 2, F32 | F64, sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), REQUIRED("k", INT)),
    OP("TopK", 10, 10, 2, 2, 2, 2, TYPES(F32 | F64, INTS), sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("TopK", 11, NEWEST, 2, 2, 2, 2, TYPES(F32 | F64 | ALL_INTS, INTS), sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("largest", INT), ATTRIBUTE("sorted", INT)),
    OP("Transpose", 1, NEWEST, 1, 1, 1, 1, ANY, sp__transpose_infer, sp__transpose_lower, NULL,
       ATTRIBUTE("perm", INTS)),
    OP("Trilu", 14, NEWEST, 1, 2, 1, 1, TYPES(ANY, INTS), sp__trilu_infer, sp__trilu_lower, NULL,
       ATTRIBUTE("upper", INT)),
    OP("Unsqueeze", 1, 12, 1, 1, 1, 1, ANY, sp__unsqueeze_infer, sp__view_lower, NULL,
       REQUIRED("axes", INTS)),
    OP("Unsqueeze", 13, NEWEST, 2, 2, 1, 1, TYPES(ANY, INTS), sp__unsqueeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    OP("Upsample", 7, 8, 1, 1, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE, REQUIRED("scales", FLOATS)),
    OP("Upsample", 9, 9, 2, 2, 1, 1, TYPES(ANY, F32), sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_MODE),
    OP("Where", 9, NEWEST, 3, 3, 1, 1, TYPES(BOOLS, ANY, SP_DTYPES_LIKE(1)), sp__where_infer, sp__where_lower, NULL,
       NO_ATTRIBUTES),
    COMPARISON("Xor", 7, BOOLS, sp__xor_lower),
};
/* clang-format on */

const sp_op *sp__op_table(uint32_t *count)
{
    *count = SP_COUNT_OF(table);
    return table;
}

bool sp__op_is_onnx_domain(sp_text domain)
{
    return domain.len == 0 || sp__text_is(domain, "ai.onnx");
}

sp_status sp__op_find(sp_text domain, sp_text name, int64_t version, const sp_op **out)
{
    const bool is_onnx = sp__op_is_onnx_domain(domain);
    bool has_name = false;
    for (uint32_t i = 0; i < SP_COUNT_OF(table) && is_onnx; i++) {
        const sp_op *op = &table[i];
        if (!sp__text_is(name, op->name)) continue;
        has_name = true;
        if (version < (int64_t)op->since || version > (int64_t)op->until) continue;
        *out = op;
        return SP_OK;
    }
    const sp_text_print op_text = sp__text_print(name), domain_text = sp__text_print(domain);
    if (has_name) {
        return sp__fail(SP_UNSUPPORTED, "not supported: %s in opset %" PRId64, op_text.text,
                        version);
    }
    return sp__fail(SP_UNSUPPORTED, "not supported: op %s%s%s", is_onnx ? "" : domain_text.text,
                    is_onnx ? "" : ".", op_text.text);
}
