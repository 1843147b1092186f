/* SPDX-License-Identifier: Apache-2.0 */
/* Collapses dimensions of strided operands without changing the order of elements: dimensions of
 * size 1 are dropped, neighbours that every operand steps through evenly become one. Rows get
 * longer, loops fewer. */
#ifndef SP_TENSOR_COLLAPSE_H
#define SP_TENSOR_COLLAPSE_H

#include "tensor/shape.h"

/* In place; returns the new rank, at least 1. strides[i] are those of operand i. */
static inline uint32_t sp__collapse_all(uint32_t rank, int64_t *dims, int64_t *const *strides,
                                        uint32_t operands)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        bool is_even = kept > 0;
        for (uint32_t k = 0; k < operands && is_even; k++) {
            is_even = strides[k][kept - 1] == strides[k][i] * dims[i];
        }
        const int64_t outer = is_even ? dims[--kept] : 1;
        dims[kept] = outer * dims[i];
        for (uint32_t k = 0; k < operands; k++) strides[k][kept] = strides[k][i];
        kept++;
    }
    if (kept > 0) return kept;
    dims[0] = 1;
    for (uint32_t k = 0; k < operands; k++) strides[k][0] = 0;
    return 1;
}

static inline uint32_t sp__collapse(uint32_t rank, int64_t *dims, int64_t *a, int64_t *b)
{
    int64_t *const strides[] = {a, b};
    return sp__collapse_all(rank, dims, strides, 2);
}

#endif
