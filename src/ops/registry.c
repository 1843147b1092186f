/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops: one row for each range of opset versions with one schema. */
#include "ops/registry.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"

#define NEWEST SP_OPSET_NEWEST
#define F32 SP_DTYPE_BIT(SP_F32)
#define INTS (SP_DTYPE_BIT(SP_I32) | SP_DTYPE_BIT(SP_I64))
#define F64 SP_DTYPE_BIT(SP_F64)
#define FLOATS (F32 | F64 | SP_DTYPE_BIT(SP_F16))
#define BYTES (SP_DTYPE_BIT(SP_I8) | SP_DTYPE_BIT(SP_U8))
#define BOOL SP_DTYPE_BIT(SP_BOOL)
#define ANY (~SP_DTYPE_BIT(SP_DTYPE_NONE))

#define ATTRIBUTE(name, type) {name, SP_ATTRIBUTE_##type, false}
#define REQUIRED(name, type) {name, SP_ATTRIBUTE_##type, true}
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
     .dtypes = dtypes_,                                                                            \
     .attributes = {__VA_ARGS__},                                                                  \
     .infer = infer_,                                                                              \
     .lower = lower_,                                                                              \
     .pack = pack_}
#define NO_ATTRIBUTES {NULL, SP_ATTRIBUTE_NONE, false}

#define BINARY(name_, lower_)                                                                      \
    OP(name_, 7, NEWEST, 2, 2, 1, 1, F32 | INTS, sp__binary_infer, lower_, NULL, NO_ATTRIBUTES)
#define UNARY(name_, lower_)                                                                       \
    OP(name_, 6, NEWEST, 1, 1, 1, 1, F32, sp__op_infer_same, lower_, NULL, NO_ATTRIBUTES)

/* Axes as an attribute before version `from`, as an input from then on. */
#define REDUCE_OLD(name_, last_, dtypes_, infer_, lower_)                                          \
    OP(name_, 1, last_, 1, 1, 1, 1, dtypes_, infer_, lower_, NULL, ATTRIBUTE("axes", INTS),        \
       ATTRIBUTE("keepdims", INT))
#define REDUCE_BETWEEN(name_, first_, last_, dtypes_, infer_, lower_)                              \
    OP(name_, first_, last_, 1, 2, 1, 1, dtypes_, infer_, lower_, NULL,                            \
       ATTRIBUTE("keepdims", INT), ATTRIBUTE("noop_with_empty_axes", INT))
#define REDUCE(name_, from, dtypes_, infer_, lower_)                                               \
    REDUCE_OLD(name_, from - 1, dtypes_, infer_, lower_),                                          \
        REDUCE_BETWEEN(name_, from, NEWEST, dtypes_, infer_, lower_)
#define REDUCE_ORDER(name_, lower_)                                                                \
    REDUCE_OLD(name_, 17, FLOATS | INTS | BYTES, sp__reduce_infer, lower_),                        \
        REDUCE_BETWEEN(name_, 18, 19, FLOATS | INTS | BYTES, sp__reduce_infer, lower_),            \
        REDUCE_BETWEEN(name_, 20, NEWEST, FLOATS | INTS | BYTES | BOOL, sp__reduce_infer, lower_)

#define ARG(name_, lower_)                                                                         \
    OP(name_, 1, 11, 1, 1, 1, 1, F32 | F64 | INTS | BYTES, sp__arg_infer, lower_, NULL,            \
       ATTRIBUTE("axis", INT), ATTRIBUTE("keepdims", INT)),                                        \
        OP(name_, 12, NEWEST, 1, 1, 1, 1, F32 | F64 | INTS | BYTES, sp__arg_infer, lower_, NULL,   \
           ATTRIBUTE("axis", INT), ATTRIBUTE("keepdims", INT),                                     \
           ATTRIBUTE("select_last_index", INT))

/* clang-format off */
static const sp_op table[] = {
    BINARY("Add", sp__add_lower),
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
    OP("Conv", 1, NEWEST, 2, 3, 1, 1, F32, sp__conv_infer, sp__conv_lower, NULL,
       WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT), ATTRIBUTE("kernel_shape", INTS)),
    OP("ConvTranspose", 1, NEWEST, 2, 3, 1, 1, F32, sp__conv_transpose_infer,
       sp__conv_transpose_lower, NULL, WINDOW_ATTRIBUTES, ATTRIBUTE("group", INT),
       ATTRIBUTE("kernel_shape", INTS), ATTRIBUTE("output_padding", INTS),
       ATTRIBUTE("output_shape", INTS)),
    OP("CumSum", 11, NEWEST, 2, 2, 1, 1, F32 | F64 | INTS, sp__cumsum_infer, sp__cumsum_lower, NULL,
       ATTRIBUTE("exclusive", INT), ATTRIBUTE("reverse", INT)),
    BINARY("Div", sp__div_lower),
    UNARY("Exp", sp__exp_lower),
    OP("Flatten", 1, NEWEST, 1, 1, 1, 1, ANY, sp__flatten_infer, sp__view_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Gemm", 7, 10, 3, 3, 1, 1, F32, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("Gemm", 11, NEWEST, 2, 3, 1, 1, F32, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("GlobalAveragePool", 1, NEWEST, 1, 1, 1, 1, FLOATS, sp__global_pool_infer,
       sp__global_average_pool_lower, NULL, NO_ATTRIBUTES),
    OP("GlobalMaxPool", 1, NEWEST, 1, 1, 1, 1, FLOATS, sp__global_pool_infer,
       sp__global_max_pool_lower, NULL, NO_ATTRIBUTES),
    OP("GroupNormalization", 18, NEWEST, 3, 3, 1, 1, F32, sp__group_norm_infer,
       sp__group_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT), REQUIRED("num_groups", INT),
       ATTRIBUTE("stash_type", INT)),
    OP("Hardmax", 1, NEWEST, 1, 1, 1, 1, F32, sp__softmax_infer, sp__hardmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Identity", 1, NEWEST, 1, 1, 1, 1, ANY, sp__op_infer_same, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    OP("If", 1, NEWEST, 1, 1, 1, SP_OP_VARIADIC, SP_DTYPE_BIT(SP_BOOL), sp__if_infer,
       sp__if_lower, NULL, REQUIRED("then_branch", GRAPH), REQUIRED("else_branch", GRAPH)),
    OP("InstanceNormalization", 6, NEWEST, 3, 3, 1, 1, F32, sp__instance_norm_infer,
       sp__instance_norm_lower, NULL, ATTRIBUTE("epsilon", FLOAT)),
    OP("LRN", 1, NEWEST, 1, 1, 1, 1, F32, sp__lrn_infer, sp__lrn_lower, NULL,
       ATTRIBUTE("alpha", FLOAT), ATTRIBUTE("beta", FLOAT), ATTRIBUTE("bias", FLOAT),
       REQUIRED("size", INT)),
    OP("LayerNormalization", 17, NEWEST, 2, 3, 1, 3, F32, sp__layer_norm_infer,
       sp__layer_norm_lower, NULL, ATTRIBUTE("axis", INT), ATTRIBUTE("epsilon", FLOAT),
       ATTRIBUTE("stash_type", INT)),
    OP("LogSoftmax", 1, NEWEST, 1, 1, 1, 1, FLOATS, sp__softmax_infer, sp__log_softmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("LpNormalization", 1, NEWEST, 1, 1, 1, 1, F32, sp__lp_norm_infer, sp__lp_norm_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("p", INT)),
    OP("MatMul", 1, NEWEST, 2, 2, 1, 1, F32, sp__matmul_infer, sp__matmul_lower, sp__matmul_pack,
       NO_ATTRIBUTES),
    OP("MaxPool", 1, NEWEST, 1, 1, 1, 2, F32 | F64 | BYTES, sp__pool_infer,
       sp__max_pool_lower, NULL, WINDOW_ATTRIBUTES, REQUIRED("kernel_shape", INTS),
       ATTRIBUTE("ceil_mode", INT), ATTRIBUTE("storage_order", INT)),
    OP("MeanVarianceNormalization", 9, NEWEST, 1, 1, 1, 1, F32, sp__mvn_infer, sp__mvn_lower, NULL,
       ATTRIBUTE("axes", INTS)),
    BINARY("Mul", sp__mul_lower),
    OP("Pad", 2, 10, 1, 1, 1, 1, F32, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING), REQUIRED("pads", INTS), ATTRIBUTE("value", FLOAT)),
    OP("Pad", 11, 17, 2, 3, 1, 1, ANY, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP("Pad", 18, NEWEST, 2, 4, 1, 1, ANY, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    REDUCE("ReduceL1", 18, FLOATS | INTS, sp__reduce_infer, sp__reduce_l1_lower),
    REDUCE("ReduceL2", 18, FLOATS, sp__reduce_infer, sp__reduce_l2_lower),
    REDUCE("ReduceLogSum", 18, FLOATS, sp__reduce_infer, sp__reduce_log_sum_lower),
    REDUCE("ReduceLogSumExp", 18, FLOATS, sp__reduce_infer, sp__reduce_log_sum_exp_lower),
    REDUCE_ORDER("ReduceMax", sp__reduce_max_lower),
    REDUCE("ReduceMean", 18, FLOATS | INTS, sp__reduce_mean_infer, sp__reduce_mean_lower),
    REDUCE_ORDER("ReduceMin", sp__reduce_min_lower),
    REDUCE("ReduceProd", 18, FLOATS | INTS, sp__reduce_infer, sp__reduce_prod_lower),
    REDUCE("ReduceSum", 13, FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_lower),
    REDUCE("ReduceSumSquare", 18, FLOATS | INTS, sp__reduce_infer, sp__reduce_sum_square_lower),
    UNARY("Relu", sp__relu_lower),
    OP("Reshape", 5, 13, 2, 2, 1, 1, ANY, sp__reshape_infer, sp__view_lower, NULL, NO_ATTRIBUTES),
    OP("Reshape", 14, NEWEST, 2, 2, 1, 1, ANY, sp__reshape_infer, sp__view_lower, NULL,
       ATTRIBUTE("allowzero", INT)),
    OP("Shape", 1, 14, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP("Shape", 15, NEWEST, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL,
       ATTRIBUTE("start", INT), ATTRIBUTE("end", INT)),
    UNARY("Sigmoid", sp__sigmoid_lower),
    OP("Softmax", 1, NEWEST, 1, 1, 1, 1, FLOATS, sp__softmax_infer, sp__softmax_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Split", 2, 12, 1, 1, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("split", INTS)),
    OP("Split", 13, 17, 1, 2, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Split", 18, NEWEST, 1, 2, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("num_outputs", INT)),
    BINARY("Sub", sp__sub_lower),
    UNARY("Tanh", sp__tanh_lower),
    OP("Transpose", 1, NEWEST, 1, 1, 1, 1, ANY, sp__transpose_infer, sp__transpose_lower, NULL,
       ATTRIBUTE("perm", INTS)),
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
