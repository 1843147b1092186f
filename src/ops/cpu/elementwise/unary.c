/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = f(x[i]); x and y may be one memory. A NaN gives the canonical NaN, whatever the function.
 * Compositions are computed as written, each operation rounded. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/float_functions.h"

static SP_ALWAYS_INLINE double sp_copysign(double size, double sign)
{
    return sp_double_from_bits((sp_double_bits(size) & 0x7fffffffffffffffu) |
                               (sp_double_bits(sign) & 0x8000000000000000u));
}

/* `whole` is where floats have no fraction any more: adding it rounds to an integer, half to even.
 */
#define ALGEBRAIC(suffix, type, canonical, size_of, with_sign, root, whole)                        \
    static SP_ALWAYS_INLINE type neg_##suffix(type x)                                              \
    {                                                                                              \
        return canonical(-x);                                                                      \
    }                                                                                              \
    static SP_ALWAYS_INLINE type abs_##suffix(type x)                                              \
    {                                                                                              \
        return canonical(size_of(x));                                                              \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sign_##suffix(type x)                                             \
    {                                                                                              \
        const type sign = x > 0 ? (type)1 : x < 0 ? (type) - 1 : (type)0;                          \
        return canonical(x == x ? sign : x);                                                       \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sqrt_##suffix(type x)                                             \
    {                                                                                              \
        return canonical(root(x));                                                                 \
    }                                                                                              \
    static SP_ALWAYS_INLINE type reciprocal_##suffix(type x)                                       \
    {                                                                                              \
        return canonical((type)1 / x);                                                             \
    }                                                                                              \
    static SP_ALWAYS_INLINE type round_##suffix(type x)                                            \
    {                                                                                              \
        const type size = size_of(x), rounded = (size + (whole)) - (whole);                        \
        return canonical(with_sign(size < (whole) ? rounded : size, x));                           \
    }                                                                                              \
    static SP_ALWAYS_INLINE type floor_##suffix(type x)                                            \
    {                                                                                              \
        const type near = round_##suffix(x);                                                       \
        return canonical(with_sign(near > x ? near - 1 : near, x));                                \
    }                                                                                              \
    static SP_ALWAYS_INLINE type ceil_##suffix(type x)                                             \
    {                                                                                              \
        const type near = round_##suffix(x);                                                       \
        return canonical(with_sign(near < x ? near + 1 : near, x));                                \
    }                                                                                              \
    static SP_ALWAYS_INLINE type hard_swish_##suffix(type x)                                       \
    {                                                                                              \
        type gate = x * ((type)1 / 6) + (type)0.5;                                                 \
        gate = gate < 0 ? 0 : gate;                                                                \
        return canonical(x * (gate > 1 ? 1 : gate));                                               \
    }                                                                                              \
    SP_UNARY_KERNEL(neg_##suffix, neg_##suffix, type)                                              \
    SP_UNARY_KERNEL(abs_##suffix, abs_##suffix, type)                                              \
    SP_UNARY_KERNEL(sign_##suffix, sign_##suffix, type)                                            \
    SP_UNARY_KERNEL(sqrt_##suffix, sqrt_##suffix, type)                                            \
    SP_UNARY_KERNEL(reciprocal_##suffix, reciprocal_##suffix, type)                                \
    SP_UNARY_KERNEL(round_##suffix, round_##suffix, type)                                          \
    SP_UNARY_KERNEL(floor_##suffix, floor_##suffix, type)                                          \
    SP_UNARY_KERNEL(ceil_##suffix, ceil_##suffix, type)                                            \
    SP_UNARY_KERNEL(softsign_##suffix, sp_softsign_##suffix, type)                                 \
    SP_UNARY_KERNEL(hard_swish_##suffix, hard_swish_##suffix, type)

ALGEBRAIC(f32, float, sp_canonical, sp_absf, sp_copysignf, __builtin_sqrtf, 8388608.0f)
ALGEBRAIC(f64, double, sp_canonical_f64, sp_abs, sp_copysign, __builtin_sqrt, 4503599627370496.0)

/* ---- functions ---- */

/* x * tanh(log(1 + e^x)), without the logarithm: tanh(log u) = (u^2 - 1) / (u^2 + 1). */
static SP_ALWAYS_INLINE float mish(float x)
{
    const float e = sp_expf(x > 20.0f ? 20.0f : x);
    const float n = e * (e + 2.0f);
    return x > 20.0f ? x : x * (n / (n + 2.0f));
}

static SP_ALWAYS_INLINE float gelu(float x)
{
    return 0.5f * x * (1.0f + sp_erff(x * 0.707106781f));
}

static SP_ALWAYS_INLINE float gelu_tanh(float x)
{
    const float inner = 0.797884561f * (x + 0.044715f * (x * x * x));
    return 0.5f * x * (1.0f + sp_tanhf(inner));
}

#define FUNCTION_F32(name, function)                                                               \
    static SP_ALWAYS_INLINE float name##_f32(float x)                                              \
    {                                                                                              \
        return sp_canonical(function(x));                                                          \
    }                                                                                              \
    SP_UNARY_KERNEL(name##_f32, name##_f32, float)

FUNCTION_F32(relu, sp_reluf)
FUNCTION_F32(sigmoid, sp_sigmoidf)
FUNCTION_F32(tanh, sp_tanhf)
FUNCTION_F32(exp, sp_expf)
FUNCTION_F32(log, sp_logf)
FUNCTION_F32(erf, sp_erff)
FUNCTION_F32(softplus, sp_softplusf)
FUNCTION_F32(mish, mish)
FUNCTION_F32(gelu, gelu)
FUNCTION_F32(gelu_tanh, gelu_tanh)

/* As sp_reluf. */
static SP_ALWAYS_INLINE double relu_f64(double x)
{
    return sp_canonical_f64(x <= 0 ? 0 : x);
}
SP_UNARY_KERNEL(relu_f64, relu_f64, double)
SP_UNARY_KERNEL(exp_f64, sp_exp, double)
SP_UNARY_KERNEL(log_f64, sp_log, double)

/* ---- integers: they wrap ---- */

#define SIGNED_KERNELS(suffix, type, unsigned_type)                                                \
    static SP_ALWAYS_INLINE type neg_##suffix(type x)                                              \
    {                                                                                              \
        return (type)(0u - (unsigned_type)x);                                                      \
    }                                                                                              \
    static SP_ALWAYS_INLINE type abs_##suffix(type x)                                              \
    {                                                                                              \
        return x < 0 ? neg_##suffix(x) : x;                                                        \
    }                                                                                              \
    static SP_ALWAYS_INLINE type relu_##suffix(type x)                                             \
    {                                                                                              \
        return x < 0 ? 0 : x;                                                                      \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sign_##suffix(type x)                                             \
    {                                                                                              \
        return (type)((x > 0) - (x < 0));                                                          \
    }                                                                                              \
    SP_UNARY_KERNEL(neg_##suffix, neg_##suffix, type)                                              \
    SP_UNARY_KERNEL(abs_##suffix, abs_##suffix, type)                                              \
    SP_UNARY_KERNEL(relu_##suffix, relu_##suffix, type)                                            \
    SP_UNARY_KERNEL(sign_##suffix, sign_##suffix, type)

#define UNSIGNED_KERNEL(suffix, type)                                                              \
    static SP_ALWAYS_INLINE type sign_##suffix(type x)                                             \
    {                                                                                              \
        return x != 0;                                                                             \
    }                                                                                              \
    SP_UNARY_KERNEL(sign_##suffix, sign_##suffix, type)

SIGNED_KERNELS(i8, int8_t, uint8_t)
SIGNED_KERNELS(i16, int16_t, uint16_t)
SIGNED_KERNELS(i32, int32_t, uint32_t)
SIGNED_KERNELS(i64, int64_t, uint64_t)
UNSIGNED_KERNEL(u8, uint8_t)
UNSIGNED_KERNEL(u16, uint16_t)
UNSIGNED_KERNEL(u32, uint32_t)
UNSIGNED_KERNEL(u64, uint64_t)

static SP_ALWAYS_INLINE uint8_t not_bool(uint8_t x)
{
    return x == 0;
}
SP_UNARY_KERNEL(not_bool, not_bool, uint8_t)
