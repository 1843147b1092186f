/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction of f16, in f32. Included by other templates; parameters SP_REDUCTION and
 * SP_COMBINE. */
#define SP_MAP sp_map
#define SP_BASE SP_REDUCTION
#include "ops/cpu/reduce/reduction_mapped.inc.h"
