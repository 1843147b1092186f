/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of exponentials, based on the reduction `sum`, which must be defined. Included by other
 * templates. */
#define SP_REDUCTION exp
#define SP_COMBINE sp_add
#define SP_MAP sp_map_exp
#define SP_BASE sum
#include "ops/cpu/reduce/reduction_mapped.inc.h"
