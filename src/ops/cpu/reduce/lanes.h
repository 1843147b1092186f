/* SPDX-License-Identifier: Apache-2.0 */
/* The order of every reduction (docs/decisions/0022-reductions.md). Element i of what is reduced,
 * in its logical order, joins lane i % 16; then lane l takes lane l + 8, l + 4, l + 2 and l + 1 in.
 * Lanes start from the reduction's neutral element, so those that no element has joined may be left
 * out of the tree.
 *
 * `width` reductions stand side by side: lane l of reduction c is lanes[l * width + c]. */
#ifndef SP_OPS_CPU_REDUCE_LANES_H
#define SP_OPS_CPU_REDUCE_LANES_H

#include "ops/cpu/arch/isa.h"

enum {
    SP_LANES = 16,
    SP_LANE_COLUMNS = 64 /* reductions that run side by side where elements are that far apart */
};

/* Defines name(lanes, width, extent): afterwards lanes[c] is reduction c of `extent` elements. */
#define SP_LANES_TREE(name, type, combine)                                                         \
    static SP_ALWAYS_INLINE void name(type *lanes, int64_t width, int64_t extent)                  \
    {                                                                                              \
        for (int64_t step = SP_LANES / 2; step > 0; step /= 2) {                                   \
            for (int64_t l = 0; l < step && l + step < extent; l++) {                              \
                type *to = lanes + l * width;                                                      \
                const type *from = to + step * width;                                              \
                SP_INDEPENDENT for (int64_t c = 0; c < width; c++) to[c] =                         \
                    combine(to[c], from[c]);                                                       \
            }                                                                                      \
        }                                                                                          \
    }

static SP_ALWAYS_INLINE float sp_add_f32(float a, float b)
{
    return a + b;
}

SP_LANES_TREE(sp_lanes_sum_f32, float, sp_add_f32)

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

SP_LANES_TREE(sp_lanes_max_f32, float, sp_max_f32)

#endif
