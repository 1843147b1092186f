/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of integer reductions; sums and products wrap. Included by other templates. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_add)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((SP_WRAPPING)a + (SP_WRAPPING)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_mul)(SP_ELEMENT a, SP_ELEMENT b)
{
    return (SP_ELEMENT)((SP_WRAPPING)a * (SP_WRAPPING)b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_max)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b > a ? b : a;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_min)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b < a ? b : a;
}

#include "ops/cpu/reduce/joins.inc.h"
#include "ops/cpu/reduce/levels.inc.h"

/* Sums and products that wrap are the same in any order. */
static bool SP_OF(depends_on_order)(const sp_reduce_constants *k)
{
    (void)k;
    return false;
}

/* A mean is rounded towards 0. */
static SP_ELEMENT SP_OF(finish)(const sp_reduce_constants *k, SP_ELEMENT sum, SP_ELEMENT shift)
{
    (void)shift;
    return k->reduction == SP_REDUCE_MEAN ? (SP_ELEMENT)(sum / k->extent) : sum;
}
