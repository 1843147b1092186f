/* SPDX-License-Identifier: Apache-2.0 */
/* Iteration over the rows of a tensor of any rank in order, with the offsets of up to two operands
 * with their own strides. A row is the last dimension. */
#ifndef SP_OPS_CPU_ARCH_STRIDED_H
#define SP_OPS_CPU_ARCH_STRIDED_H

#include "ops/cpu/arch/isa.h"

typedef struct sp_walk {
    uint32_t rank; /* without the last dimension */
    const int64_t *dims, *a_strides, *b_strides;
    int64_t at[SP_MAX_RANK];
    int64_t a, b; /* offsets of the current row */
} sp_walk;

/* Starts at row number `row`. `rank` includes the last dimension; b_strides may be a_strides. */
static inline void sp_walk_init(sp_walk *walk, uint32_t rank, const int64_t *dims,
                                const int64_t *a_strides, const int64_t *b_strides, int64_t row)
{
    *walk =
        (sp_walk){.rank = rank - 1, .dims = dims, .a_strides = a_strides, .b_strides = b_strides};
    for (uint32_t i = walk->rank; i-- > 0;) {
        walk->at[i] = row % dims[i];
        row /= dims[i];
        walk->a += walk->at[i] * a_strides[i];
        walk->b += walk->at[i] * b_strides[i];
    }
}

/* Advances to the next row; after the last row to the first. */
static inline void sp_walk_next(sp_walk *walk)
{
    for (uint32_t i = walk->rank; i-- > 0;) {
        walk->a += walk->a_strides[i];
        walk->b += walk->b_strides[i];
        if (++walk->at[i] < walk->dims[i]) return;
        walk->at[i] = 0;
        walk->a -= walk->dims[i] * walk->a_strides[i];
        walk->b -= walk->dims[i] * walk->b_strides[i];
    }
}

#endif
