/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons of floats. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(max)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(((b > a) | (b != b)) ? b : a);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(min)(SP_ELEMENT a, SP_ELEMENT b)
{
    return SP_OF(sp_canonical)(((b < a) | (b != b)) ? b : a);
}

#include "ops/cpu/elementwise/compare.inc.h"

#undef SP_TYPE
