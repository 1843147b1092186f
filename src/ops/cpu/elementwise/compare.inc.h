/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels max, min, less and less_or_equal. Included by other templates. */

static SP_ALWAYS_INLINE uint8_t SP_OF(less)(SP_ELEMENT a, SP_ELEMENT b)
{
    return a < b;
}

static SP_ALWAYS_INLINE uint8_t SP_OF(less_or_equal)(SP_ELEMENT a, SP_ELEMENT b)
{
    return a <= b;
}

#define SP_NAME SP_OF(max)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(min)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(less)
#include "ops/cpu/elementwise/binary_test.inc.h"
#define SP_NAME SP_OF(less_or_equal)
#include "ops/cpu/elementwise/binary_test.inc.h"
