/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of i32 and i64. Parameter: SP_TYPE. */
#include "ops/cpu/reduce/joins_integer.inc.h"

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_square)(SP_ELEMENT lane, SP_ELEMENT x,
                                                         SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_add)(lane, SP_OF(sp_mul)(x, x));
}

static SP_ALWAYS_INLINE SP_ELEMENT SP_OF(sp_join_size)(SP_ELEMENT lane, SP_ELEMENT x,
                                                       SP_ELEMENT shift)
{
    (void)shift;
    return SP_OF(sp_add)(lane, x < 0 ? SP_OF(sp_mul)(x, (SP_ELEMENT)-1) : x);
}

#include "ops/cpu/reduce/reductions_of_numbers.inc.h"
#include "ops/cpu/reduce/reductions_of_order.inc.h"

#define SP_STEPS NUMBER_STEPS, ORDER_STEPS
#include "ops/cpu/reduce/reduce.inc.h"

#undef SP_TYPE
