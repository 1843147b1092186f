/* SPDX-License-Identifier: Apache-2.0 */
/* The lanes of lanes.h in vectors: element i of a row joins element i % SP_VECTOR of vector
 * i / SP_VECTOR % SP_LANE_VECTORS. */
#ifndef SP_OPS_CPU_REDUCE_LANE_VECTORS_H
#define SP_OPS_CPU_REDUCE_LANE_VECTORS_H

#include "ops/cpu/arch/vector_parts.h"
#include "ops/cpu/reduce/lanes.h"

enum { SP_LANE_VECTORS = SP_LANES / SP_VECTOR };

/* The tree of a sum over all lanes: those without elements are +0, and change nothing. */
static SP_ALWAYS_INLINE float sp_lane_vectors_sum(sp_vector lanes[SP_LANE_VECTORS])
{
#pragma GCC unroll 2
    for (int step = SP_LANE_VECTORS / 2; step > 0; step /= 2) {
#pragma GCC unroll 2
        for (int v = 0; v < step; v++) lanes[v] += lanes[v + step];
    }
    return sp_vector_tree_sum(lanes[0]);
}

#endif
