/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of f32 that applies an activation to its results. Included by other templates; parameter
 * SP_NAME, both the kernel and the function. */
#define SP_RESULT SP_ELEMENT
#define SP_FINISH(k, y, n) sp_activate((k)->activation, y, 1, 0, n)
#include "ops/cpu/elementwise/binary_row.inc.h"
#include "ops/cpu/elementwise/binary_kernel.inc.h"
