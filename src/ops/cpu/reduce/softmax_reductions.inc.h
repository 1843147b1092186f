/* SPDX-License-Identifier: Apache-2.0 */
/* The reductions of softmax. Parameter: SP_TYPE, which is computed in itself. */

#define SP_REDUCTION max
#define SP_COMBINE sp_max
#include "ops/cpu/reduce/reduction_any_order.inc.h"
#define SP_REDUCTION sum
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#include "ops/cpu/reduce/reduction_exp.inc.h"

#undef SP_TYPE
