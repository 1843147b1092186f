/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of signed integers. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(add)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((SP_WRAPPING)a + (SP_WRAPPING)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sub)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((SP_WRAPPING)a - (SP_WRAPPING)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(mul)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((SP_WRAPPING)a * (SP_WRAPPING)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(div)(SP_ELEMENT a, SP_ELEMENT b)
{
    if (b == 0) return 0;
    return b == -1 ? SP_OF(sub)(0, a) : (SP_ELEMENT)(a / b);
}

#include "ops/cpu/elementwise/arithmetic.inc.h"

#undef SP_TYPE
