/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and products of a type that is computed in itself. Included by other templates. */
#define SP_REDUCTION sum
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#define SP_REDUCTION prod
#define SP_COMBINE sp_mul
#include "ops/cpu/reduce/reduction.inc.h"
#define SP_REDUCTION square
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
#define SP_REDUCTION size
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/reduction.inc.h"
