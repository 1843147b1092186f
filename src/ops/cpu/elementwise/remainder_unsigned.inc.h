/* SPDX-License-Identifier: Apache-2.0 */
/* Remainders of unsigned integers. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(mod)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b == 0 ? 0 : (SP_ELEMENT)(a % b);
}

#define SP_NAME SP_OF(mod)
#include "ops/cpu/elementwise/binary.inc.h"

#undef SP_TYPE
