/* SPDX-License-Identifier: Apache-2.0 */
/* As reduction.inc.h, for a join that is commutative, associative and idempotent: any number of
 * lanes gives the same result. */
#define NAME(name) SP_OF(SP_GLUE(name, SP_REDUCTION))
#define JOIN SP_WIDE_OF(SP_GLUE(sp_join, SP_REDUCTION))

/* Joins all lanes to the first. Those without elements have what lane 0 began with. */
static SP_ALWAYS_INLINE void NAME(join_halves)(SP_WIDE *wide, SP_WIDE shift)
{
#pragma GCC unroll 6
    for (int64_t step = SP_LANE_COLUMNS / 2; step > 0; step /= 2) {
        SP_INDEPENDENT for (int64_t c = 0; c < step; c++)
        {
            wide[c] = JOIN(wide[c], wide[c + step], shift);
        }
    }
}

static __attribute__((unused)) void NAME(row)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x,
                                              int64_t n, SP_WIDE shift)
{
    SP_WIDE wide[SP_LANE_COLUMNS];
    int64_t i = 0;
    (void)phase;
    for (int64_t c = 0; c < SP_LANE_COLUMNS; c++) wide[c] = lanes[0];
    for (; i + SP_LANE_COLUMNS <= n; i += SP_LANE_COLUMNS) {
        for (int64_t c = 0; c < SP_LANE_COLUMNS; c++) {
            wide[c] = JOIN(wide[c], SP_LOAD(x[i + c]), shift);
        }
    }
    for (int64_t c = 0; c < n - i; c++) wide[c] = JOIN(wide[c], SP_LOAD(x[i + c]), shift);
    if (n < SP_LANES) {
        for (int64_t c = 1; c < n; c++) wide[0] = JOIN(wide[0], wide[c], shift);
    } else {
        NAME(join_halves)(wide, shift);
    }
    lanes[0] = wide[0];
}

#undef JOIN
#undef NAME
#include "ops/cpu/reduce/reduction_columns.inc.h"
