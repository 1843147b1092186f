/* SPDX-License-Identifier: Apache-2.0 */
/* Algebraic functions of f32 and f64. Parameters: SP_TYPE; SP_WHOLE, from which on floats have no
 * fraction: adding it rounds to an integer, half to even. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(neg)(SP_ELEMENT x)
{
    return SP_OF(sp_canonical)(-x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(abs)(SP_ELEMENT x)
{
    return SP_OF(sp_canonical)(SP_OF(sp_abs)(x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sign)(SP_ELEMENT x)
{
    const SP_ELEMENT sign = x > 0 ? (SP_ELEMENT)1 : x < 0 ? (SP_ELEMENT)-1 : (SP_ELEMENT)0;
    return SP_OF(sp_canonical)(x == x ? sign : x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sqrt)(SP_ELEMENT x)
{
    return SP_OF(sp_canonical)(SP_OF(sp_sqrt)(x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(reciprocal)(SP_ELEMENT x)
{
    return SP_OF(sp_canonical)((SP_ELEMENT)1 / x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(round)(SP_ELEMENT x)
{
    const SP_ELEMENT size = SP_OF(sp_abs)(x), rounded = (size + SP_WHOLE) - SP_WHOLE;
    return SP_OF(sp_canonical)(SP_OF(sp_copysign)(size < SP_WHOLE ? rounded : size, x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(floor)(SP_ELEMENT x)
{
    const SP_ELEMENT near = SP_OF(round)(x);
    return SP_OF(sp_canonical)(SP_OF(sp_copysign)(near > x ? near - 1 : near, x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(ceil)(SP_ELEMENT x)
{
    const SP_ELEMENT near = SP_OF(round)(x);
    return SP_OF(sp_canonical)(SP_OF(sp_copysign)(near < x ? near + 1 : near, x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(hard_swish)(SP_ELEMENT x)
{
    SP_ELEMENT gate = x * ((SP_ELEMENT)1 / 6) + (SP_ELEMENT)0.5;
    gate = gate < 0 ? 0 : gate;
    return SP_OF(sp_canonical)(x * (gate > 1 ? 1 : gate));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(softsign)(SP_ELEMENT x)
{
    return SP_OF(sp_softsign)(x);
}

#define SP_NAME SP_OF(neg)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(abs)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(sign)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(sqrt)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(reciprocal)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(round)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(floor)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(ceil)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(softsign)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(hard_swish)
#include "ops/cpu/elementwise/unary.inc.h"

#undef SP_WHOLE
#undef SP_TYPE
