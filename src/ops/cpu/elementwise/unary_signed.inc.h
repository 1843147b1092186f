/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of signed integers: they wrap. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(neg)(SP_ELEMENT x)
{
    return (SP_ELEMENT)(0u - (SP_WRAPPING)x);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(abs)(SP_ELEMENT x)
{
    return x < 0 ? SP_OF(neg)(x) : x;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(relu)(SP_ELEMENT x)
{
    return x < 0 ? 0 : x;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sign)(SP_ELEMENT x)
{
    return (SP_ELEMENT)((x > 0) - (x < 0));
}

#define SP_NAME SP_OF(neg)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(abs)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(relu)
#include "ops/cpu/elementwise/unary.inc.h"
#define SP_NAME SP_OF(sign)
#include "ops/cpu/elementwise/unary.inc.h"

#undef SP_TYPE
