/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates of the nonzero elements, one column each. */
#include "ops/schema/index/non_zero.h"

#include "ops/cpu/arch/isa.h"

sp_status SP_KERNEL(non_zero)(const sp_tile *tile)
{
    const sp_non_zero_constants *k = tile->constants;
    int64_t *y = tile->bindings[1];
    int64_t column = 0;
    for (int64_t i = 0; i < k->count && column < k->found; i++) {
        if (!sp_is_non_zero(k, tile->bindings[0], i)) continue;
        int64_t rest = i;
        for (uint32_t d = k->rank; d-- > 0; rest /= k->dims[d]) {
            y[d * k->found + column] = rest % k->dims[d];
        }
        column++;
    }
    return SP_OK;
}
