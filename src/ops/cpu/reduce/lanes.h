/* SPDX-License-Identifier: Apache-2.0 */
/* The order of every reduction (docs/decisions/0022-reductions.md). Element i of what is reduced,
 * in its logical order, joins lane i % 16; then lane l takes lane l + 8, l + 4, l + 2 and l + 1 in.
 * Lanes start from the reduction's neutral element, so those that no element has joined may be left
 * out of the tree.
 *
 * `width` reductions stand side by side: lane l of reduction c is lanes[l * width + c]. */
#ifndef SP_OPS_CPU_REDUCE_LANES_H
#define SP_OPS_CPU_REDUCE_LANES_H

#include "ops/cpu/arch/typed.h"

enum {
    SP_LANES = 16,
    SP_LANE_COLUMNS = 64 /* reductions that run side by side where elements are that far apart */
};

static SP_ALWAYS_INLINE float sp_add_f32(float a, float b)
{
    return a + b;
}

#define SP_TYPE f32
#define SP_TREE sp_lanes_sum_f32
#define SP_COMBINE sp_add
#include "ops/cpu/reduce/lanes_tree.inc.h"
#undef SP_TYPE

/* The larger one: NaN if one of them is, +0 above -0. Order does not matter to it. */
static SP_ALWAYS_INLINE float sp_max_f32(float a, float b)
{
    const float larger = b > a || b != b ? b : a;
    return a == b ? sp_float_from_bits(sp_float_bits(a) & sp_float_bits(b)) : larger;
}

/* The smaller one, likewise. */
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
