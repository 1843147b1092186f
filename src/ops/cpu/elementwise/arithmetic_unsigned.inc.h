/* SPDX-License-Identifier: Apache-2.0 */
/* Division of unsigned integers; the other operations are those of signed integers. Parameter:
 * SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(div)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b == 0 ? 0 : (SP_ELEMENT)(a / b);
}

#define SP_NAME SP_OF(div)
#include "ops/cpu/elementwise/binary.inc.h"

#undef SP_TYPE
