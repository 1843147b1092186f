/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of two inputs and of any number of them, with broadcasting. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/math/elementwise.h"

/* ---- shapes ---- */

/* The shape that input 1 broadcasts with. Before version 7 it only broadcasts if the attribute
 * `broadcast` is set, and its dimensions begin at dimension `axis` of input 0. */
static sp_status second_shape(const sp_op_call *call, sp_shape *out)
{
    const sp_shape *a = &call->inputs[0].shape;
    *out = call->inputs[1].shape;
    if (call->version >= 7) return SP_OK;
    const bool repeats = sp__attribute_int(call->attributes, "broadcast", 0) != 0;
    const int64_t behind = (int64_t)a->rank - out->rank;
    int64_t axis = sp__attribute_int(call->attributes, "axis", behind);
    if (axis < 0) axis += a->rank;
    if (axis < 0 || axis > behind || (!repeats && !sp__shape_equal(a, out))) {
        return sp__fail(SP_MISMATCH, "shapes %s and %s do not broadcast in opset %" PRIu32,
                        sp__shape_print(a).text, sp__shape_print(out).text, call->version);
    }
    while (axis + out->rank < a->rank) out->dims[out->rank++] = 1;
    return SP_OK;
}

static sp_status infer_two(sp_op_call *call, sp_dtype dtype)
{
    sp_shape b, shape;
    SP_TRY(second_shape(call, &b));
    SP_TRY(sp__shape_broadcast(&call->inputs[0].shape, &b, &shape));
    sp__op_set_output(call, 0, dtype, &shape);
    return SP_OK;
}

sp_status sp__binary_infer(sp_op_call *call)
{
    return infer_two(call, call->inputs[0].dtype);
}

sp_status sp__comparison_infer(sp_op_call *call)
{
    return infer_two(call, SP_BOOL);
}

sp_status sp__variadic_infer(sp_op_call *call)
{
    sp_shape shape = call->inputs[0].shape;
    for (uint32_t i = 1; i < call->input_count; i++) {
        if (!sp__op_has_input(call, i)) {
            return sp__fail(SP_CORRUPT, "input %" PRIu32 " is missing", i);
        }
        const sp_shape before = shape;
        SP_TRY(sp__shape_broadcast(&before, &call->inputs[i].shape, &shape));
    }
    sp__op_set_output(call, 0, call->inputs[0].dtype, &shape);
    return SP_OK;
}

/* ---- two inputs ---- */

/* Input `first` is the left operand, the other one the right operand. */
static sp_status lower_two(const sp_op_call *call, sp_lowering *lowering, const sp_kernel_set *set,
                           uint32_t first)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_term terms[2];
    for (uint32_t i = 0; i < 2; i++) SP_TRY(sp__emit_input(call, lowering, i, &terms[i]));
    SP_TRY(second_shape(call, &terms[1].shape));
    const sp_term y = sp__term_result(call, lowering);
    SP_TRY(sp__emit_binary(lowering, set, &terms[first], &terms[1 - first], &y));
    for (uint32_t i = 2; i-- > 0;) sp__allow_in_place(call, lowering, i);
    return sp__emit_result(call, lowering, &y);
}

#define LOWER(name, ...)                                                                           \
    static const sp_kernel_set name##_kernels = {.of = {__VA_ARGS__}};                             \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        return lower_two(call, lowering, &name##_kernels, 0);                                      \
    }

LOWER(add, SP_SET_FLOATS(add), SP_SET_INTS_AS_SIGNED(add))
LOWER(sub, SP_SET_FLOATS(sub), SP_SET_INTS_AS_SIGNED(sub))
LOWER(mul, SP_SET_FLOATS(mul), SP_SET_INTS_AS_SIGNED(mul))
LOWER(div, SP_SET_FLOATS(div), SP_SET_SIGNED(div), SP_SET_UNSIGNED(div))
LOWER(equal, SP_SET_FLOATS(equal),
      SP_SET_INTS_AS_SIGNED(equal), [SP_BOOL] = SP_KERNEL_ID_equal_bool)
LOWER(less, SP_SET_FLOATS(less), SP_SET_SIGNED(less), SP_SET_UNSIGNED(less))
LOWER(less_or_equal, SP_SET_FLOATS(less_or_equal), SP_SET_SIGNED(less_or_equal),
      SP_SET_UNSIGNED(less_or_equal))
LOWER(and, [SP_BOOL] = SP_KERNEL_ID_and_bool)
LOWER(or, [SP_BOOL] = SP_KERNEL_ID_or_bool)
LOWER(xor, [SP_BOOL] = SP_KERNEL_ID_xor_bool)

/* a > b is b < a. */
sp_status sp__greater_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_two(call, lowering, &less_kernels, 1);
}

sp_status sp__greater_or_equal_lower(const sp_op_call *call, sp_lowering *lowering)
{
    return lower_two(call, lowering, &less_or_equal_kernels, 1);
}

/* ---- Mod ---- */

sp_status sp__mod_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set mod = {.of = {SP_SET_SIGNED(mod), SP_SET_UNSIGNED(mod)}};
    static const sp_kernel_set fmod = {
        .of = {SP_SET_FLOATS(fmod), SP_SET_SIGNED(fmod), SP_SET_UNSIGNED(mod)}};
    const bool is_fmod = sp__attribute_int(call->attributes, "fmod", 0) != 0;
    return lower_two(call, lowering, is_fmod ? &fmod : &mod, 0);
}

/* ---- PRelu ---- */

/* Only the slope broadcasts. Before version 7 it is one number, or one per channel. */
static sp_status slope_shape(const sp_op_call *call, sp_shape *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    *out = call->inputs[1].shape;
    if (call->version < 7 && out->rank == 1 && x->rank >= 2) {
        while (out->rank < x->rank - 1) out->dims[out->rank++] = 1;
    }
    sp_shape both;
    SP_TRY(sp__shape_broadcast(x, out, &both));
    if (sp__shape_equal(&both, x)) return SP_OK;
    return sp__fail(SP_MISMATCH, "slope of shape %s does not broadcast to %s",
                    sp__shape_print(&call->inputs[1].shape).text, sp__shape_print(x).text);
}

sp_status sp__prelu_infer(sp_op_call *call)
{
    sp_shape slope;
    SP_TRY(slope_shape(call, &slope));
    return sp__op_infer_same(call);
}

/* Slopes before version 7 are aligned to axis 1. */
const char *sp__prelu_rows(const sp_rows_call *call)
{
    const bool is_slope_batched = call->inputs[1].kind == SP_ROWS_BATCHED;
    if (call->many->version < 7 && is_slope_batched) return "a parameter is batched";
    return sp__elementwise_rows(call);
}

sp_status sp__prelu_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set set = {
        .of = {SP_SET_FLOATS(prelu), [SP_I32] = SP_KERNEL_ID_prelu_i32,
               [SP_I64] = SP_KERNEL_ID_prelu_i64}};
    const sp_dtype dtype = call->inputs[0].dtype;
    if (dtype == SP_U32 || dtype == SP_U64) { /* never negative */
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_term x, slope;
    SP_TRY(sp__emit_input(call, lowering, 0, &x));
    SP_TRY(sp__emit_input(call, lowering, 1, &slope));
    SP_TRY(slope_shape(call, &slope.shape));
    const sp_term y = sp__term_result(call, lowering);
    SP_TRY(sp__emit_binary(lowering, &set, &x, &slope, &y));
    sp__allow_in_place(call, lowering, 0);
    return sp__emit_result(call, lowering, &y);
}

/* ---- Pow ---- */

static bool is_int(sp_dtype dtype)
{
    return dtype >= SP_I8 && dtype <= SP_U64;
}

/* The compute type: i64 for integers (the low bits of a product depend on low bits only), f32 for
 * types that it represents, else f64. */
static sp_dtype pow_type(sp_dtype base, sp_dtype exponent)
{
    if (is_int(base) && is_int(exponent)) return SP_I64;
    const bool is_small = exponent == SP_I8 || exponent == SP_I16 || exponent == SP_U8 ||
                          exponent == SP_U16 || sp__compute_type(exponent) == SP_F32;
    return sp__compute_type(base) == SP_F32 && is_small ? SP_F32 : SP_F64;
}

sp_status sp__pow_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set set = {.of = {SP_SET_FLOATS(pow), [SP_I64] = SP_KERNEL_ID_pow_i64}};
    static const sp_kernel_set unsigned_set = {.of = {[SP_I64] = SP_KERNEL_ID_pow_u64}};
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_term base = sp__term_input(call, 0), exponent = sp__term_input(call, 1);
    const sp_dtype type = pow_type(base.dtype, exponent.dtype);
    const bool is_unsigned = type == SP_I64 && exponent.dtype == SP_U64;
    SP_TRY(sp__emit_convert(lowering, &base, type, &base));
    SP_TRY(sp__emit_convert(lowering, &exponent, is_unsigned ? SP_U64 : type, &exponent));
    SP_TRY(second_shape(call, &exponent.shape));
    sp_term y = sp__term_output(call, 0);
    if (y.dtype != type) y = sp__term_scratch(lowering, type, &y.shape);
    SP_TRY(sp__emit_binary(lowering, is_unsigned ? &unsigned_set : &set, &base, &exponent, &y));
    if (y.operand.kind == SP_OPERAND_OUTPUT) {
        if (exponent.operand.kind == SP_OPERAND_INPUT) sp__allow_in_place(call, lowering, 1);
        if (base.operand.kind == SP_OPERAND_INPUT) sp__allow_in_place(call, lowering, 0);
    }
    return sp__emit_result(call, lowering, &y);
}

/* ---- any number of inputs ---- */

/* y = ((x0 op x1) op x2) ..., from left to right. All inputs share the scratch for casts. */
static sp_status emit_chain(const sp_op_call *call, sp_lowering *lowering, const sp_kernel_set *set,
                            const sp_term *y)
{
    sp_term rooms[2];
    const sp_shape *shape = &call->outputs[0].shape;
    const bool is_half = sp__is_half(call->outputs[0].dtype);
    for (int i = 0; i < 2 && is_half; i++) rooms[i] = sp__term_scratch(lowering, SP_F32, shape);
    sp_term left = *y;
    for (uint32_t i = 0; i < call->input_count; i++) {
        sp_term x = sp__term_input(call, i);
        if (is_half) {
            sp_term *room = &rooms[i == 0 ? 0 : 1];
            room->shape = x.shape;
            SP_TRY(sp__emit_cast(lowering, &x, room));
            x = *room;
        }
        if (i > 0) SP_TRY(sp__emit_binary(lowering, set, &left, &x, y));
        left = i == 0 ? x : *y;
    }
    return SP_OK;
}

static sp_status lower_chain(const sp_op_call *call, sp_lowering *lowering,
                             const sp_kernel_set *set, bool is_mean)
{
    static const sp_kernel_set divide = {.of = {SP_SET_FLOATS(divide)}};
    if (call->input_count == 1) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    if (call->outputs[0].bytes == 0) return SP_OK;
    const sp_term y = sp__term_result(call, lowering);
    SP_TRY(emit_chain(call, lowering, set, &y));
    if (is_mean) {
        SP_TRY(sp__emit_function(lowering, &divide, &y, (double)call->input_count, 0, &y));
    }
    for (uint32_t i = 2; i-- > 0;) sp__allow_in_place(call, lowering, i);
    return sp__emit_result(call, lowering, &y);
}

#define LOWER_CHAIN(name, is_mean, ...)                                                            \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        static const sp_kernel_set set = {.of = {__VA_ARGS__}};                                    \
        return lower_chain(call, lowering, &set, is_mean);                                         \
    }

LOWER_CHAIN(max, false, SP_SET_FLOATS(max), SP_SET_SIGNED(max), SP_SET_UNSIGNED(max))
LOWER_CHAIN(min, false, SP_SET_FLOATS(min), SP_SET_SIGNED(min), SP_SET_UNSIGNED(min))
LOWER_CHAIN(sum, false, SP_SET_FLOATS(add))
LOWER_CHAIN(mean, true, SP_SET_FLOATS(add))
