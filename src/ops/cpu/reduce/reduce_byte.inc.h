/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of i8 and u8: max and min. Parameter: SP_TYPE. */
#include "ops/cpu/reduce/joins_integer.inc.h"
#include "ops/cpu/reduce/reductions_of_order.inc.h"

#define SP_STEPS ORDER_STEPS
#include "ops/cpu/reduce/reduce.inc.h"

#undef SP_TYPE
