/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax: m = max(x), e = exp(x - m), s = sum(e) in the order of lanes.h, y = e / s; LogSoftmax:
 * (x - m) - log(s). The same rounded steps as those of the ops ReduceMax, Sub, Exp, ReduceSum, Div
 * and Log. y may be the memory of x. */
#include "ops/cpu/reduce/reduction.h"
#include "ops/cpu/reduce/rows.h"
#include "ops/cpu/reduce/softmax_row_f32.h"

enum { COLUMNS = SP_LANE_COLUMNS, ALL_LANES = SP_LANES * COLUMNS };

#define SP_TYPE f32
#include "ops/cpu/reduce/softmax_reductions.inc.h"
#define SP_TYPE f64
#include "ops/cpu/reduce/softmax_reductions.inc.h"

#define SP_TYPE f16
#define SP_REDUCTION max
#define SP_COMBINE sp_max
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION sum
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction_half.inc.h"
#include "ops/cpu/reduce/reduction_exp.inc.h"
#undef SP_TYPE

#define SP_TYPE f32
#define SP_SOFTMAX_ROW sp_softmax_row_f32
#include "ops/cpu/reduce/softmax.inc.h"
#define SP_TYPE f64
#include "ops/cpu/reduce/softmax.inc.h"
#define SP_TYPE f16
#include "ops/cpu/reduce/softmax.inc.h"
