/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of any set of dimensions, in the order of lanes.h. If the elements of one output are
 * contiguous, its lanes are computed together; otherwise several outputs are, with the same lanes
 * for each, so the layout of x affects no bit. */
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/arch/strided.h"

enum { COLUMNS = SP_LANE_COLUMNS };

/* The steps of each reduction and the initial value of its lanes. */
#define STEP(reduction, name, start)                                                               \
    [SP_REDUCE_##reduction] = {start, SP_OF(row_##name), SP_OF(columns_##name), SP_OF(tree_##name)}
#define ORDER_STEPS STEP(MAX, max, SP_WIDE_OF(sp_least)), STEP(MIN, min, SP_WIDE_OF(sp_most))
#define NUMBER_STEPS                                                                               \
    STEP(SUM, sum, 0), STEP(MEAN, sum, 0), STEP(PROD, prod, 1), STEP(SUM_SQUARE, square, 0),       \
        STEP(L1, size, 0)
#define FLOAT_STEPS                                                                                \
    NUMBER_STEPS, ORDER_STEPS, STEP(L2, square, 0), STEP(LOG_SUM, sum, 0),                         \
        STEP(LOG_SUM_EXP, exp, 0), STEP(VARIANCE, square, 0),                                      \
        STEP(FINITE_MAX, max, SP_WIDE_OF(sp_least))

#define SP_TYPE f32
#include "ops/cpu/reduce/reduce_float.inc.h"
#define SP_TYPE f64
#include "ops/cpu/reduce/reduce_float.inc.h"
#define SP_TYPE f16
#include "ops/cpu/reduce/reduce_half.inc.h"
#define SP_TYPE i32
#include "ops/cpu/reduce/reduce_integer.inc.h"
#define SP_TYPE i64
#include "ops/cpu/reduce/reduce_integer.inc.h"
#define SP_TYPE i8
#include "ops/cpu/reduce/reduce_byte.inc.h"
#define SP_TYPE u8
#include "ops/cpu/reduce/reduce_byte.inc.h"
