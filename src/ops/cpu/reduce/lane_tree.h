/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of lanes.h, for reductions that are the elements of vectors. */
#ifndef SP_OPS_CPU_REDUCE_LANE_TREE_H
#define SP_OPS_CPU_REDUCE_LANE_TREE_H

#include "ops/cpu/reduce/lanes.h"

/* The sums of the lanes, of which the first `used` have elements; the others are not read. It is a
 * constant after inlining where it is below SP_LANES. */
static SP_ALWAYS_INLINE sp_vector sp_lane_tree_sum(const int64_t used, sp_vector lanes[SP_LANES])
{
#pragma GCC unroll 4
    for (int64_t half = SP_LANES / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
        for (int64_t l = 0; l < half; l++) {
            if (l + half < used) lanes[l] += lanes[l + half];
        }
    }
    return lanes[0];
}

#endif
