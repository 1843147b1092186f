/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of one input: functions, functions with parameters, predicates. */
#include <math.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/schema/math/elementwise.h"

sp_status sp__predicate_infer(sp_op_call *call)
{
    sp__op_set_output(call, 0, SP_BOOL, &call->inputs[0].shape);
    return SP_OK;
}

static sp_status lower_unary(const sp_op_call *call, sp_lowering *lowering,
                             const sp_kernel_set *set)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_term x;
    SP_TRY(sp__emit_input(call, lowering, 0, &x));
    const sp_term y = sp__term_result(call, lowering);
    SP_TRY(sp__emit_unary(lowering, set, &x, &y));
    sp__allow_in_place(call, lowering, 0);
    return sp__emit_result(call, lowering, &y);
}

#define LOWER(name, ...)                                                                           \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        static const sp_kernel_set set = {.of = {__VA_ARGS__}};                                    \
        return lower_unary(call, lowering, &set);                                                  \
    }

LOWER(relu, SP_SET_FLOATS(relu), SP_SET_SIGNED(relu))
LOWER(neg, SP_SET_FLOATS(neg), SP_SET_SIGNED(neg))
LOWER(sign, SP_SET_FLOATS(sign), SP_SET_SIGNED(sign), SP_SET_UNSIGNED(sign))
LOWER(sqrt, SP_SET_FLOATS(sqrt))
LOWER(reciprocal, SP_SET_FLOATS(reciprocal))
LOWER(ceil, SP_SET_FLOATS(ceil))
LOWER(floor, SP_SET_FLOATS(floor))
LOWER(round, SP_SET_FLOATS(round))
LOWER(softsign, SP_SET_FLOATS(softsign))
LOWER(hard_swish, SP_SET_FLOATS(hard_swish))
LOWER(not, [SP_BOOL] = SP_KERNEL_ID_not_bool)
LOWER(exp, SP_SET_FLOATS(exp))
LOWER(log, SP_SET_FLOATS(log))
LOWER(sigmoid, SP_SET_F32(sigmoid))
LOWER(tanh, SP_SET_F32(tanh))
LOWER(erf, SP_SET_F32(erf))
LOWER(softplus, SP_SET_F32(softplus))
LOWER(mish, SP_SET_F32(mish))
LOWER(sin, SP_SET_F32(sin))
LOWER(cos, SP_SET_F32(cos))
LOWER(tan, SP_SET_F32(tan))
LOWER(asin, SP_SET_F32(asin))
LOWER(acos, SP_SET_F32(acos))
LOWER(atan, SP_SET_F32(atan))
LOWER(sinh, SP_SET_F32(sinh))
LOWER(cosh, SP_SET_F32(cosh))
LOWER(asinh, SP_SET_F32(asinh))
LOWER(acosh, SP_SET_F32(acosh))
LOWER(atanh, SP_SET_F32(atanh))

/* The absolute value of an unsigned number is itself. */
sp_status sp__abs_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set set = {.of = {SP_SET_FLOATS(abs), SP_SET_SIGNED(abs)}};
    const sp_dtype dtype = call->inputs[0].dtype;
    if (dtype < SP_U8 || dtype > SP_U64) return lower_unary(call, lowering, &set);
    sp__lower_alias(lowering, 0);
    return SP_OK;
}

/* ---- Gelu ---- */

static sp_status gelu_kernels(const sp_op_call *call, const sp_kernel_set **out)
{
    static const sp_kernel_set exact = {.of = {SP_SET_F32(gelu)}};
    static const sp_kernel_set with_tanh = {.of = {SP_SET_F32(gelu_tanh)}};
    const sp_text text = sp__attribute_text(call->attributes, "approximate", "none");
    *out = sp__text_is(text, "tanh") ? &with_tanh : &exact;
    if (*out == &with_tanh || sp__text_is(text, "none")) return SP_OK;
    return sp__fail(SP_UNSUPPORTED, "approximate '%s' is not supported", sp__text_print(text).text);
}

sp_status sp__gelu_infer(sp_op_call *call)
{
    const sp_kernel_set *set;
    SP_TRY(gelu_kernels(call, &set));
    return sp__op_infer_same(call);
}

sp_status sp__gelu_lower(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_kernel_set *set;
    SP_TRY(gelu_kernels(call, &set));
    return lower_unary(call, lowering, set);
}

/* ---- parameters ---- */

static sp_status lower_function(const sp_op_call *call, sp_lowering *lowering,
                                const sp_kernel_set *set, double alpha, double beta)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_term x;
    SP_TRY(sp__emit_input(call, lowering, 0, &x));
    const sp_term y = sp__term_result(call, lowering);
    SP_TRY(sp__emit_function(lowering, set, &x, alpha, beta, &y));
    sp__allow_in_place(call, lowering, 0);
    return sp__emit_result(call, lowering, &y);
}

/* Attributes and their default values. */
#define LOWER_FUNCTION(name, alpha, alpha_default, beta, beta_default, ...)                        \
    sp_status sp__##name##_lower(const sp_op_call *call, sp_lowering *lowering)                    \
    {                                                                                              \
        static const sp_kernel_set set = {.of = {__VA_ARGS__}};                                    \
        return lower_function(call, lowering, &set,                                                \
                              (double)sp__attribute_float(call->attributes, alpha, alpha_default), \
                              (double)sp__attribute_float(call->attributes, beta, beta_default));  \
    }

LOWER_FUNCTION(leaky_relu, "alpha", 0.01f, "", 0, SP_SET_FLOATS(leaky_relu))
LOWER_FUNCTION(hard_sigmoid, "alpha", 0.2f, "beta", 0.5f, SP_SET_FLOATS(hard_sigmoid))
LOWER_FUNCTION(thresholded_relu, "alpha", 1, "", 0, SP_SET_FLOATS(thresholded_relu))
LOWER_FUNCTION(elu, "alpha", 1, "", 0, SP_SET_F32(elu))
LOWER_FUNCTION(selu, "alpha", 1.67326319217681884765625f, "gamma", 1.05070102214813232421875f,
               SP_SET_F32(selu))
LOWER_FUNCTION(celu, "alpha", 1, "", 0, SP_SET_F32(celu))

sp_status sp__is_nan_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set set = {.of = {SP_SET_FLOATS(is_nan)}};
    return lower_function(call, lowering, &set, 0, 0);
}

sp_status sp__is_inf_lower(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set set = {.of = {SP_SET_FLOATS(is_inf)}};
    const bool positive = sp__attribute_int(call->attributes, "detect_positive", 1) != 0;
    const bool negative = sp__attribute_int(call->attributes, "detect_negative", 1) != 0;
    return lower_function(call, lowering, &set, positive, negative);
}

/* ---- Clip ---- */

enum { INPUT_MIN = 1, INPUT_MAX = 2 };

sp_status sp__clip_infer(sp_op_call *call)
{
    for (uint32_t i = INPUT_MIN; i <= INPUT_MAX; i++) {
        if (!sp__op_has_input(call, i) || sp__shape_count(&call->inputs[i].shape) == 1) continue;
        return sp__fail(SP_MISMATCH, "the %s has shape %s; expected one number",
                        i == INPUT_MIN ? "min" : "max",
                        sp__shape_print(&call->inputs[i].shape).text);
    }
    return sp__op_infer_same(call);
}

static const sp_kernel_set clip_kernels = {.of = {SP_SET_FLOATS(clip)}};

/* The bound if it is known: one Clip kernel then gives the same as Max and Min. */
static bool known_bound(const sp_op_call *call, uint32_t index, float absent, float *out)
{
    *out = absent;
    if (!sp__op_has_input(call, index)) return true;
    if (call->inputs[index].data == NULL || call->inputs[index].dtype != SP_F32) return false;
    memcpy(out, call->inputs[index].data, sizeof(*out));
    return true;
}

/* Max with the lower bound, then Min with the upper one. */
static sp_status lower_bounds(const sp_op_call *call, sp_lowering *lowering)
{
    static const sp_kernel_set sets[] = {
        [INPUT_MIN] = {.of = {SP_SET_FLOATS(max), SP_SET_SIGNED(max), SP_SET_UNSIGNED(max)}},
        [INPUT_MAX] = {.of = {SP_SET_FLOATS(min), SP_SET_SIGNED(min), SP_SET_UNSIGNED(min)}}};
    sp_term x;
    SP_TRY(sp__emit_input(call, lowering, 0, &x));
    const sp_term y = sp__term_result(call, lowering);
    for (uint32_t i = INPUT_MIN; i <= INPUT_MAX; i++) {
        if (!sp__op_has_input(call, i)) continue;
        sp_term bound;
        SP_TRY(sp__emit_input(call, lowering, i, &bound));
        bound.shape.rank = 0; /* one number, whatever its rank */
        SP_TRY(sp__emit_binary(lowering, &sets[i], &x, &bound, &y));
        x = y;
    }
    sp__allow_in_place(call, lowering, 0);
    return sp__emit_result(call, lowering, &y);
}

sp_status sp__clip_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->version < 11) {
        const double low = (double)sp__attribute_float(call->attributes, "min", -3.402823466e38f);
        const double high = (double)sp__attribute_float(call->attributes, "max", 3.402823466e38f);
        return lower_function(call, lowering, &clip_kernels, low, high);
    }
    if (!sp__op_has_input(call, INPUT_MIN) && !sp__op_has_input(call, INPUT_MAX)) {
        sp__lower_alias(lowering, 0);
        return SP_OK;
    }
    if (call->outputs[0].bytes == 0) return SP_OK;
    float low, high;
    const bool has_low = known_bound(call, INPUT_MIN, -INFINITY, &low);
    const bool has_high = known_bound(call, INPUT_MAX, INFINITY, &high);
    if (!has_low || !has_high || call->inputs[0].dtype != SP_F32) {
        return lower_bounds(call, lowering);
    }
    return lower_function(call, lowering, &clip_kernels, (double)low, (double)high);
}
