/* SPDX-License-Identifier: Apache-2.0 */
/* Remainders of signed integers. Parameter: SP_TYPE. */

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(fmod)(SP_ELEMENT a, SP_ELEMENT b)
{
    return b == 0 || b == -1 ? 0 : (SP_ELEMENT)(a % b);
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(mod)(SP_ELEMENT a, SP_ELEMENT b)
{
    const SP_ELEMENT rest = SP_OF(fmod)(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? (SP_ELEMENT)(rest + b) : rest;
}

#define SP_NAME SP_OF(fmod)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(mod)
#include "ops/cpu/elementwise/binary.inc.h"

#undef SP_TYPE
