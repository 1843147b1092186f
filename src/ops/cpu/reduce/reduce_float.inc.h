/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of f32 and f64. Parameter: SP_TYPE. */
#include "ops/cpu/reduce/reductions_of_numbers.inc.h"
#include "ops/cpu/reduce/reductions_of_order.inc.h"
#include "ops/cpu/reduce/reduction_exp.inc.h"

static bool SP_OF(depends_on_order)(const sp_reduce_constants *k)
{
    return k->reduction != SP_REDUCE_MAX && k->reduction != SP_REDUCE_MIN &&
           k->reduction != SP_REDUCE_FINITE_MAX;
}

/* The output from its reduced lanes. */
static SP_ELEMENT SP_OF(finish)(const sp_reduce_constants *k, SP_ELEMENT sum, SP_ELEMENT shift)
{
    switch ((sp_reduction)k->reduction) {
    case SP_REDUCE_MEAN:
    case SP_REDUCE_VARIANCE:
        return sum / (SP_ELEMENT)k->extent;
    case SP_REDUCE_L2:
        return SP_OF(sp_sqrt)(sum);
    case SP_REDUCE_LOG_SUM:
        return SP_OF(sp_log)(sum);
    case SP_REDUCE_LOG_SUM_EXP:
        return SP_OF(sp_log)(sum) + shift;
    case SP_REDUCE_FINITE_MAX:
        return sum < SP_OF(sp_most) && sum > SP_OF(sp_least) ? sum : 0;
    default:
        return sum;
    }
}

#define SP_STEPS FLOAT_STEPS
#include "ops/cpu/reduce/reduce.inc.h"

#undef SP_TYPE
