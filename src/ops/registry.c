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
#define ALL_INTS                                                                                   \
    (INTS | I16 | SP_DTYPE_BIT(SP_I8) | SP_DTYPE_BIT(SP_U8) | SP_DTYPE_BIT(SP_U16) |               \
     SP_DTYPE_BIT(SP_U32) | SP_DTYPE_BIT(SP_U64))
#define ANY (~SP_DTYPE_BIT(SP_DTYPE_NONE))

#define ATTRIBUTE(name, type) {name, SP_ATTRIBUTE_##type, false}
#define REQUIRED(name, type) {name, SP_ATTRIBUTE_##type, true}
#define WINDOW_ATTRIBUTES                                                                          \
    ATTRIBUTE("auto_pad", STRING), ATTRIBUTE("pads", INTS), ATTRIBUTE("strides", INTS),            \
        ATTRIBUTE("dilations", INTS)
#define GEMM_ATTRIBUTES                                                                            \
    ATTRIBUTE("alpha", FLOAT), ATTRIBUTE("beta", FLOAT), ATTRIBUTE("transA", INT),                 \
        ATTRIBUTE("transB", INT)

#define RESIZE_ATTRIBUTES                                                                          \
    ATTRIBUTE("coordinate_transformation_mode", STRING), ATTRIBUTE("cubic_coeff_a", FLOAT),        \
        ATTRIBUTE("exclude_outside", INT), ATTRIBUTE("extrapolation_value", FLOAT),                \
        ATTRIBUTE("mode", STRING), ATTRIBUTE("nearest_mode", STRING)
#define RECURRENT_ATTRIBUTES                                                                       \
    ATTRIBUTE("activation_alpha", FLOATS), ATTRIBUTE("activation_beta", FLOATS),                   \
        ATTRIBUTE("activations", STRINGS), ATTRIBUTE("clip", FLOAT),                               \
        ATTRIBUTE("direction", STRING), ATTRIBUTE("hidden_size", INT)
#define RECURRENT(name_, since_, until_, max_in, max_out, ...)                                     \
    OP(name_, since_, until_, 3, max_in, 1, max_out, F32, sp__recurrent_infer,                     \
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

/* clang-format off */
static const sp_op table[] = {
    BINARY("Add", sp__add_lower),
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
    OP("DepthToSpace", 1, 10, 1, 1, 1, 1, ANY, sp__depth_to_space_infer, sp__depth_to_space_lower,
       NULL, REQUIRED("blocksize", INT)),
    OP("DepthToSpace", 11, NEWEST, 1, 1, 1, 1, ANY, sp__depth_to_space_infer,
       sp__depth_to_space_lower, NULL, REQUIRED("blocksize", INT), ATTRIBUTE("mode", STRING)),
    BINARY("Div", sp__div_lower),
    UNARY("Exp", sp__exp_lower),
    OP("EyeLike", 9, NEWEST, 1, 1, 1, 1, ANY, sp__eye_like_infer, sp__eye_like_lower, NULL,
       ATTRIBUTE("dtype", INT), ATTRIBUTE("k", INT)),
    OP("Flatten", 1, NEWEST, 1, 1, 1, 1, ANY, sp__flatten_infer, sp__view_lower, NULL,
       ATTRIBUTE("axis", INT)),
    RECURRENT("GRU", 7, 13, 6, 2, ATTRIBUTE("linear_before_reset", INT)),
    RECURRENT("GRU", 14, NEWEST, 6, 2, ATTRIBUTE("linear_before_reset", INT),
              ATTRIBUTE("layout", INT)),
    OP("Gather", 1, NEWEST, 2, 2, 1, 1, ANY, sp__gather_infer, sp__gather_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("GatherElements", 11, NEWEST, 2, 2, 1, 1, ANY, sp__gather_elements_infer,
       sp__gather_elements_lower, NULL, ATTRIBUTE("axis", INT)),
    OP("GatherND", 11, 11, 2, 2, 1, 1, ANY, sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP("GatherND", 12, NEWEST, 2, 2, 1, 1, ANY, sp__gather_nd_infer, sp__gather_nd_lower, NULL,
       ATTRIBUTE("batch_dims", INT)),
    OP("Gemm", 7, 10, 3, 3, 1, 1, F32, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("Gemm", 11, NEWEST, 2, 3, 1, 1, F32, sp__gemm_infer, sp__gemm_lower, sp__gemm_pack,
       GEMM_ATTRIBUTES),
    OP("Identity", 1, NEWEST, 1, 1, 1, 1, ANY, sp__op_infer_same, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    OP("If", 1, NEWEST, 1, 1, 1, SP_OP_VARIADIC, SP_DTYPE_BIT(SP_BOOL), sp__if_infer,
       sp__if_lower, NULL, REQUIRED("then_branch", GRAPH), REQUIRED("else_branch", GRAPH)),
    RECURRENT("LSTM", 7, 13, 8, 3, ATTRIBUTE("input_forget", INT)),
    RECURRENT("LSTM", 14, NEWEST, 8, 3, ATTRIBUTE("input_forget", INT), ATTRIBUTE("layout", INT)),
    OP("MatMul", 1, NEWEST, 2, 2, 1, 1, F32, sp__matmul_infer, sp__matmul_lower, sp__matmul_pack,
       NO_ATTRIBUTES),
    OP("MaxPool", 1, NEWEST, 1, 1, 1, 1, F32, sp__max_pool_infer, sp__max_pool_lower, NULL,
       WINDOW_ATTRIBUTES, REQUIRED("kernel_shape", INTS), ATTRIBUTE("ceil_mode", INT),
       ATTRIBUTE("storage_order", INT) /* of the second output, which is not supported */),
    BINARY("Mul", sp__mul_lower),
    OP("NonZero", 9, NEWEST, 1, 1, 1, 1, ANY, sp__non_zero_infer, sp__non_zero_lower, NULL,
       NO_ATTRIBUTES),
    OP("OneHot", 9, NEWEST, 3, 3, 1, 1, F32 | INTS, sp__one_hot_infer, sp__one_hot_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Pad", 2, 10, 1, 1, 1, 1, F32 | F64, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING), REQUIRED("pads", INTS), ATTRIBUTE("value", FLOAT)),
    OP("Pad", 11, 17, 2, 3, 1, 1, ANY, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP("Pad", 18, NEWEST, 2, 4, 1, 1, ANY, sp__pad_infer, sp__pad_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    RECURRENT("RNN", 7, 13, 6, 2, NO_ATTRIBUTES),
    RECURRENT("RNN", 14, NEWEST, 6, 2, ATTRIBUTE("layout", INT)),
    OP("Range", 11, NEWEST, 3, 3, 1, 1, F32 | F64 | INTS | I16, sp__range_infer, sp__range_lower,
       NULL, NO_ATTRIBUTES),
    UNARY("Relu", sp__relu_lower),
    OP("Reshape", 5, 13, 2, 2, 1, 1, ANY, sp__reshape_infer, sp__view_lower, NULL, NO_ATTRIBUTES),
    OP("Reshape", 14, NEWEST, 2, 2, 1, 1, ANY, sp__reshape_infer, sp__view_lower, NULL,
       ATTRIBUTE("allowzero", INT)),
    OP("Resize", 10, 10, 2, 2, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       ATTRIBUTE("mode", STRING)),
    OP("Resize", 11, 17, 1, 4, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES),
    OP("Resize", 18, NEWEST, 1, 4, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       RESIZE_ATTRIBUTES, ATTRIBUTE("antialias", INT), ATTRIBUTE("axes", INTS),
       ATTRIBUTE("keep_aspect_ratio_policy", STRING)),
    OP("Scatter", 9, 10, 3, 3, 1, 1, ANY, sp__scatter_elements_infer, sp__scatter_elements_lower,
       NULL, ATTRIBUTE("axis", INT)),
    OP("ScatterElements", 11, 15, 3, 3, 1, 1, ANY, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT)),
    OP("ScatterElements", 16, NEWEST, 3, 3, 1, 1, ANY, sp__scatter_elements_infer,
       sp__scatter_elements_lower, NULL, ATTRIBUTE("axis", INT), ATTRIBUTE("reduction", STRING)),
    OP("ScatterND", 11, 15, 3, 3, 1, 1, ANY, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       NO_ATTRIBUTES),
    OP("ScatterND", 16, NEWEST, 3, 3, 1, 1, ANY, sp__scatter_nd_infer, sp__scatter_nd_lower, NULL,
       ATTRIBUTE("reduction", STRING)),
    OP("Shape", 1, 14, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP("Shape", 15, NEWEST, 1, 1, 1, 1, ANY, sp__shape_infer, sp__known_lower, NULL,
       ATTRIBUTE("start", INT), ATTRIBUTE("end", INT)),
    UNARY("Sigmoid", sp__sigmoid_lower),
    OP("Size", 1, NEWEST, 1, 1, 1, 1, ANY, sp__size_infer, sp__known_lower, NULL, NO_ATTRIBUTES),
    OP("Slice", 1, 9, 1, 1, 1, 1, ANY, sp__slice_infer, sp__slice_lower, NULL,
       REQUIRED("starts", INTS), REQUIRED("ends", INTS), ATTRIBUTE("axes", INTS)),
    OP("Slice", 10, NEWEST, 3, 5, 1, 1, ANY, sp__slice_infer, sp__slice_lower, NULL, NO_ATTRIBUTES),
    OP("SpaceToDepth", 1, NEWEST, 1, 1, 1, 1, ANY, sp__space_to_depth_infer,
       sp__space_to_depth_lower, NULL, REQUIRED("blocksize", INT)),
    OP("Split", 2, 12, 1, 1, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("split", INTS)),
    OP("Split", 13, 17, 1, 2, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("Split", 18, NEWEST, 1, 2, 1, SP_OP_VARIADIC, ANY, sp__split_infer, sp__split_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("num_outputs", INT)),
    OP("Squeeze", 1, 12, 1, 1, 1, 1, ANY, sp__squeeze_infer, sp__view_lower, NULL,
       ATTRIBUTE("axes", INTS)),
    OP("Squeeze", 13, NEWEST, 1, 2, 1, 1, ANY, sp__squeeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    BINARY("Sub", sp__sub_lower),
    UNARY("Tanh", sp__tanh_lower),
    OP("Tile", 6, NEWEST, 2, 2, 1, 1, ANY, sp__tile_infer, sp__tile_lower, NULL, NO_ATTRIBUTES),
    OP("TopK", 1, 9, 1, 1, 2, 2, F32 | F64, sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), REQUIRED("k", INT)),
    OP("TopK", 10, 10, 2, 2, 2, 2, F32 | F64, sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT)),
    OP("TopK", 11, NEWEST, 2, 2, 2, 2, F32 | F64 | ALL_INTS, sp__top_k_infer, sp__top_k_lower, NULL,
       ATTRIBUTE("axis", INT), ATTRIBUTE("largest", INT), ATTRIBUTE("sorted", INT)),
    OP("Transpose", 1, NEWEST, 1, 1, 1, 1, ANY, sp__transpose_infer, sp__transpose_lower, NULL,
       ATTRIBUTE("perm", INTS)),
    OP("Trilu", 14, NEWEST, 1, 2, 1, 1, ANY, sp__trilu_infer, sp__trilu_lower, NULL,
       ATTRIBUTE("upper", INT)),
    OP("Unsqueeze", 1, 12, 1, 1, 1, 1, ANY, sp__unsqueeze_infer, sp__view_lower, NULL,
       REQUIRED("axes", INTS)),
    OP("Unsqueeze", 13, NEWEST, 2, 2, 1, 1, ANY, sp__unsqueeze_infer, sp__view_lower, NULL,
       NO_ATTRIBUTES),
    OP("Upsample", 7, 8, 1, 1, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       ATTRIBUTE("mode", STRING), REQUIRED("scales", FLOATS)),
    OP("Upsample", 9, 9, 2, 2, 1, 1, ANY, sp__resize_infer, sp__resize_lower, NULL,
       ATTRIBUTE("mode", STRING)),
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
