/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = f(x[i]); x and y may be one memory. For all functions a NaN gives the canonical NaN.
 * Compositions are computed as written, each operation rounded. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/float_functions.h"

static SP_ALWAYS_INLINE double sp_copysign_f64(double size, double sign)
{
    return sp_double_from_bits((sp_double_bits(size) & 0x7fffffffffffffffu) |
                               (sp_double_bits(sign) & 0x8000000000000000u));
}

#define SP_TYPE f32
#define SP_WHOLE 8388608.0f
#include "ops/cpu/elementwise/unary_float.inc.h"
#define SP_TYPE f64
#define SP_WHOLE 4503599627370496.0
#include "ops/cpu/elementwise/unary_float.inc.h"

/* ---- functions ---- */

static SP_ALWAYS_INLINE float relu_f32(float x)
{
    return sp_canonical(sp_reluf(x));
}

static SP_ALWAYS_INLINE float sigmoid_f32(float x)
{
    return sp_canonical(sp_sigmoidf(x));
}

static SP_ALWAYS_INLINE float tanh_f32(float x)
{
    return sp_canonical(sp_tanhf(x));
}

static SP_ALWAYS_INLINE float exp_f32(float x)
{
    return sp_canonical(sp_expf(x));
}

static SP_ALWAYS_INLINE float log_f32(float x)
{
    return sp_canonical(sp_logf(x));
}

static SP_ALWAYS_INLINE float erf_f32(float x)
{
    return sp_canonical(sp_erff(x));
}

static SP_ALWAYS_INLINE float softplus_f32(float x)
{
    return sp_canonical(sp_softplusf(x));
}

/* x * tanh(log(1 + e^x)), without the logarithm: tanh(log u) = (u^2 - 1) / (u^2 + 1). */
static SP_ALWAYS_INLINE float mish_f32(float x)
{
    const float e = sp_expf(x > 20.0f ? 20.0f : x);
    const float n = e * (e + 2.0f);
    return sp_canonical(x > 20.0f ? x : x * (n / (n + 2.0f)));
}

static SP_ALWAYS_INLINE float gelu_f32(float x)
{
    return sp_canonical(0.5f * x * (1.0f + sp_erff(x * 0.707106781f)));
}

static SP_ALWAYS_INLINE float gelu_tanh_f32(float x)
{
    const float inner = 0.797884561f * (x + 0.044715f * (x * x * x));
    return sp_canonical(0.5f * x * (1.0f + sp_tanhf(inner)));
}

#define SP_TYPE f32
#define SP_NAME relu_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME sigmoid_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME tanh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME exp_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME log_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME erf_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME softplus_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME mish_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME gelu_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME gelu_tanh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#undef SP_TYPE

/* As sp_reluf. */
static SP_ALWAYS_INLINE double relu_f64(double x)
{
    return sp_canonical_f64(x <= 0 ? 0 : x);
}

static SP_ALWAYS_INLINE double exp_f64(double x)
{
    return sp_exp(x);
}

static SP_ALWAYS_INLINE double log_f64(double x)
{
    return sp_log(x);
}

#define SP_TYPE f64
#define SP_NAME relu_f64
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME exp_f64
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME log_f64
#include "ops/cpu/elementwise/unary.inc.h"
#undef SP_TYPE

/* ---- integers and bools ---- */

#define SP_TEXT "ops/cpu/elementwise/unary_signed.inc.h"
#include "ops/cpu/arch/each_signed.inc.h"
#define SP_TEXT "ops/cpu/elementwise/unary_unsigned.inc.h"
#include "ops/cpu/arch/each_unsigned.inc.h"

static SP_ALWAYS_INLINE uint8_t not_bool(uint8_t x)
{
    return x == 0;
}

#define SP_TYPE u8
#define SP_NAME not_bool
#include "ops/cpu/elementwise/unary.inc.h"
#undef SP_TYPE
