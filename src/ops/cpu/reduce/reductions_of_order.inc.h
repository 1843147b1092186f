/* SPDX-License-Identifier: Apache-2.0 */
/* Max and min of a type that is computed in itself. Included by other templates. */
#define SP_REDUCTION max
#define SP_COMBINE sp_max
#include "ops/cpu/reduce/reduction_any_order.inc.h"
#define SP_REDUCTION min
#define SP_COMBINE sp_min
#include "ops/cpu/reduce/reduction_any_order.inc.h"
