/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of f16, computed in f32; included after those of f32. Parameter: SP_TYPE. */
#define SP_REDUCTION sum
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION prod
#define SP_COMBINE sp_mul
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION square
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION size
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION max
#define SP_COMBINE sp_max
#include "ops/cpu/reduce/reduction_half.inc.h"
#define SP_REDUCTION min
#define SP_COMBINE sp_min
#include "ops/cpu/reduce/reduction_half.inc.h"
#include "ops/cpu/reduce/reduction_exp.inc.h"

#define SP_STEPS FLOAT_STEPS
#include "ops/cpu/reduce/reduce.inc.h"

#undef SP_TYPE
