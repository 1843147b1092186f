/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels add, sub, mul and div. Included by other templates. */
#define SP_NAME SP_OF(add)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(sub)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(mul)
#include "ops/cpu/elementwise/binary.inc.h"
#define SP_NAME SP_OF(div)
#include "ops/cpu/elementwise/binary.inc.h"
