/* SPDX-License-Identifier: Apache-2.0 */
/* The order of every reduction (docs/decisions/0022-reductions.md). Element i of a reduction, in
 * logical order, joins lane i % 16; then lanes l + 8, l + 4, l + 2 and l + 1 are combined into lane
 * l in turn. Lanes start with the reduction's neutral element, so lanes without elements may be
 * left out of this tree.
 *
 * That is a block, of SP_REDUCTION_BLOCK elements at most. The results of several blocks are in
 * turn the elements of a sum or product in this order, cut in the same way (levels.inc.h). Maxima
 * and minima, and reductions of integers, do not depend on any order and are not cut.
 *
 * `width` reductions are computed together: lane l of reduction c is lanes[l * width + c]. */
#ifndef SP_OPS_CPU_REDUCE_LANES_H
#define SP_OPS_CPU_REDUCE_LANES_H

#include "base/macros.h"
#include "ops/cpu/arch/typed.h"

enum {
    SP_LANES = 16,
    SP_LANE_COLUMNS = 64,         /* most reductions that are computed together */
    SP_LEVEL_LANES = 4 * SP_LANES /* of all levels: 4,096^4 exceeds SP_MAX_TENSOR_BYTES */
};

#define SP_REDUCTION_BLOCK (SP_PLANTED(block_off_by_one) ? 4095 : 4096)
#define SP_LEVELS SP_WIDE_OF(sp_levels) /* in templates, as SP_WIDE */

static SP_ALWAYS_INLINE float sp_add_f32(float a, float b)
{
    return a + b;
}

static SP_ALWAYS_INLINE float sp_mul_f32(float a, float b)
{
    return a * b;
}

#define SP_TYPE f32
#define SP_TREE sp_lanes_sum_f32
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/lanes_tree.inc.h"
#include "ops/cpu/reduce/levels.inc.h"
#undef SP_TYPE

/* The larger operand: NaN if one of them is NaN, +0 above -0. Commutative and associative. */
static SP_ALWAYS_INLINE float sp_max_f32(float a, float b)
{
    const float larger = b > a || b != b ? b : a;
    return a == b ? sp_float_from_bits(sp_float_bits(a) & sp_float_bits(b)) : larger;
}

/* The smaller operand, likewise. */
static SP_ALWAYS_INLINE float sp_min_f32(float a, float b)
{
    const float smaller = b < a || b != b ? b : a;
    return a == b ? sp_float_from_bits(sp_float_bits(a) | sp_float_bits(b)) : smaller;
}

#define SP_TYPE f32
#define SP_TREE sp_lanes_max_f32
#define SP_COMBINE sp_max
#include "ops/cpu/reduce/lanes_tree.inc.h"
#undef SP_TYPE

#endif
