/* SPDX-License-Identifier: Apache-2.0 */
/* y[i] = f(x[i]) for trigonometric and hyperbolic functions and their inverses; x and y may be one
 * memory. A NaN gives the canonical NaN. */
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"
#include "ops/math/pow_f32.h"
#include "ops/math/trig_f32.h"

#define SP_TRIG(name)                                                                              \
    static SP_ALWAYS_INLINE float name##_f32(float x)                                              \
    {                                                                                              \
        return sp_canonical(sp_##name##f(x));                                                      \
    }

SP_TRIG(sin)
SP_TRIG(cos)
SP_TRIG(tan)
SP_TRIG(asin)
SP_TRIG(acos)
SP_TRIG(atan)
SP_TRIG(sinh)
SP_TRIG(cosh)
SP_TRIG(asinh)
SP_TRIG(acosh)
SP_TRIG(atanh)

#define SP_TYPE f32
#define SP_NAME sin_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME cos_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME tan_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME asin_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME acos_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME atan_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME sinh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME cosh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME asinh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME acosh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME atanh_f32
#include "ops/cpu/elementwise/unary.inc.h"
#undef SP_TYPE
