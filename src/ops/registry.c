/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops, as op_rows.h lists them: an entry for each range of opset versions with one
 * schema. */
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
/* The outputs of a branch that is not taken have no type. */
#define ANY_OR_NONE (ANY | SP_DTYPE_BIT(SP_DTYPE_NONE))

/* Types of input 0, 1, ...; an input without an entry, or with SAME, has the type of input 0. */
#define TYPES(...) __VA_ARGS__
#define SAME 0
#define ALL_ANY TYPES(ANY, ANY, ANY, ANY, ANY, ANY)

#define ATTRIBUTE(name_, type_) {.name = name_, .type = SP_ATTRIBUTE_##type_}
#define REQUIRED(name_, type_) {.name = name_, .type = SP_ATTRIBUTE_##type_, .is_required = true}
/* Narrows the types of input 0 unless the value is `free_`. */
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
    {.name = #name_,                                                                               \
     .traits = &traits_of_##name_,                                                                 \
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

/* Two inputs that broadcast; before version 7 only the second to the first, by attributes. */
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

/* ---- the columns of the rows ---- */

#define TRAITS(...) __VA_ARGS__
#define NO_TRAITS .shape_inputs = 0
#define ROWS(rule_) .rows = sp__##rule_##_rows
#define NO_KERNELS ""
#define INPUT(index) (1u << (index))

#define ROW(name_, kernels_, traits_, ...)                                                         \
    static const sp_op_traits traits_of_##name_ = {.kernels = (kernels_), traits_};
#include "ops/op_rows.h"
#undef ROW

#define ROW(name_, kernels_, traits_, ...) __VA_ARGS__,
static const sp_op table[] = {
#include "ops/op_rows.h"
};
#undef ROW

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
