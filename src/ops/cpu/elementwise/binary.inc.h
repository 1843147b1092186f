/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a function of two elements with a result of the same type. Included by other
 * templates; parameter SP_NAME, both the kernel and the function. */
#define SP_RESULT SP_ELEMENT
#define SP_FINISH(k, y, n) ((void)0)
#include "ops/cpu/elementwise/binary_row.inc.h"
#include "ops/cpu/elementwise/binary_kernel.inc.h"
