/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of one type. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE uint8_t SP_OF(equal)(SP_ELEMENT a, SP_ELEMENT b)
{
    return a == b;
}

#define SP_NAME SP_OF(equal)
#include "ops/cpu/elementwise/binary_test.inc.h"

#undef SP_TYPE
