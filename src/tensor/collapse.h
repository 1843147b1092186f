/* SPDX-License-Identifier: Apache-2.0 */
/* Fewest dimensions that describe the same walk over two strided operands: dimensions of size 1
 * go, neighbours that both operands step through evenly become one. Rows get long, walks cheap. */
#ifndef SP_TENSOR_COLLAPSE_H
#define SP_TENSOR_COLLAPSE_H

#include "tensor/shape.h"

/* In place; the rank afterwards, at least 1. */
static inline uint32_t sp__collapse(uint32_t rank, int64_t *dims, int64_t *a, int64_t *b)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] == 1) continue;
        if (kept > 0 && a[kept - 1] == a[i] * dims[i] && b[kept - 1] == b[i] * dims[i]) {
            dims[kept - 1] *= dims[i];
            a[kept - 1] = a[i];
            b[kept - 1] = b[i];
            continue;
        }
        dims[kept] = dims[i];
        a[kept] = a[i];
        b[kept++] = b[i];
    }
    if (kept > 0) return kept;
    dims[0] = 1;
    a[0] = b[0] = 0;
    return 1;
}

#endif
