/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one element with parameters. A NaN gives the canonical NaN; compositions are
 * computed as written, each operation rounded. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/float_functions.h"

#define FLOAT_KERNELS(suffix, type, canonical, infinity)                                           \
    /* As Max with alpha, then Min with beta. */                                                   \
    static SP_ALWAYS_INLINE type clip_##suffix(type x, type alpha, type beta)                      \
    {                                                                                              \
        const type above = ((alpha > x) | (alpha != alpha)) ? alpha : x;                           \
        return canonical(((beta < above) | (beta != beta)) ? beta : above);                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type divide_##suffix(type x, type alpha, type beta)                    \
    {                                                                                              \
        (void)beta;                                                                                \
        return canonical(x / alpha);                                                               \
    }                                                                                              \
    static SP_ALWAYS_INLINE uint8_t is_nan_##suffix(type x, type alpha, type beta)                 \
    {                                                                                              \
        (void)alpha, (void)beta;                                                                   \
        return x != x;                                                                             \
    }                                                                                              \
    /* alpha: does +inf count; beta: does -inf? */                                                 \
    static SP_ALWAYS_INLINE uint8_t is_inf_##suffix(type x, type alpha, type beta)                 \
    {                                                                                              \
        return ((x == (infinity)) & (alpha != 0)) | ((x == -(infinity)) & (beta != 0));            \
    }                                                                                              \
    SP_FUNCTION_KERNEL(leaky_relu_##suffix, sp_leaky_relu_##suffix, type, type)                    \
    SP_FUNCTION_KERNEL(hard_sigmoid_##suffix, sp_hard_sigmoid_##suffix, type, type)                \
    SP_FUNCTION_KERNEL(thresholded_relu_##suffix, sp_thresholded_relu_##suffix, type, type)        \
    SP_FUNCTION_KERNEL(clip_##suffix, clip_##suffix, type, type)                                   \
    SP_FUNCTION_KERNEL(divide_##suffix, divide_##suffix, type, type)                               \
    SP_FUNCTION_KERNEL(is_nan_##suffix, is_nan_##suffix, type, uint8_t)                            \
    SP_FUNCTION_KERNEL(is_inf_##suffix, is_inf_##suffix, type, uint8_t)

FLOAT_KERNELS(f32, float, sp_canonical, SP_INFINITY_F32)
FLOAT_KERNELS(f64, double, sp_canonical_f64, SP_INFINITY_F64)

static SP_ALWAYS_INLINE float elu_f32(float x, float alpha, float beta)
{
    (void)beta;
    return sp_canonical(x < 0 ? alpha * sp_expm1f(x) : x);
}

/* beta is ONNX's gamma. */
static SP_ALWAYS_INLINE float selu_f32(float x, float alpha, float beta)
{
    return sp_canonical(beta * (x < 0 ? alpha * sp_expm1f(x) : x));
}

static SP_ALWAYS_INLINE float celu_f32(float x, float alpha, float beta)
{
    (void)beta;
    return sp_canonical(x < 0 ? alpha * sp_expm1f(x / alpha) : x);
}

SP_FUNCTION_KERNEL(elu_f32, elu_f32, float, float)
SP_FUNCTION_KERNEL(selu_f32, selu_f32, float, float)
SP_FUNCTION_KERNEL(celu_f32, celu_f32, float, float)
