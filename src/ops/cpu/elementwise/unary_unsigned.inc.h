/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of unsigned integers. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sign)(SP_ELEMENT x)
{
    return x != 0;
}

#define SP_NAME SP_OF(sign)
#include "ops/cpu/elementwise/unary.inc.h"

#undef SP_TYPE
