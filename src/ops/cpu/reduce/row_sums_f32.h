/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a row of floats and of its squared distances from a number, in the order of lanes.h. */
#ifndef SP_OPS_CPU_REDUCE_ROW_SUMS_F32_H
#define SP_OPS_CPU_REDUCE_ROW_SUMS_F32_H

#include "ops/cpu/reduce/reduction.h"

#define SP_TYPE f32
#define SP_REDUCTION sum
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#define SP_REDUCTION square
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#include "ops/cpu/reduce/sums.inc.h"
#undef SP_TYPE

#endif
