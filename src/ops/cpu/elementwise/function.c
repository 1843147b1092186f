/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one element with parameters. A NaN gives the canonical NaN; compositions are
 * computed as written, each operation rounded. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/float_functions.h"

#define SP_TYPE f32
#include "ops/cpu/elementwise/function_float.inc.h"
#define SP_TYPE f64
#include "ops/cpu/elementwise/function_float.inc.h"

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

#define SP_TYPE f32
#define SP_RESULT float
#define SP_NAME elu_f32
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME selu_f32
#include "ops/cpu/elementwise/function.inc.h"
#define SP_NAME celu_f32
#include "ops/cpu/elementwise/function.inc.h"
#undef SP_RESULT
#undef SP_TYPE
