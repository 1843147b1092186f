/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of integers. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(max)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b > a ? b : a;
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(min)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b < a ? b : a;
}

#include "ops/cpu/elementwise/compare.inc.h"

#undef SP_TYPE
