/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction whose elements join lanes in order: row_, columns_ and tree_SP_REDUCTION of a type.
 * Its join is sp_join_SP_REDUCTION, its tree combines lanes by SP_COMBINE. Included by other
 * templates; parameters SP_REDUCTION and SP_COMBINE. */
#define NAME(name) SP_OF(SP_GLUE(name, SP_REDUCTION))
#define JOIN SP_WIDE_OF(SP_GLUE(sp_join, SP_REDUCTION))

/* Many elements of one output, contiguous in memory; the first joins lane `phase`. The lanes are
 * processed in halves, each of which compilers keep in a register. */
static __attribute__((unused)) void NAME(row)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x,
                                              int64_t n, SP_WIDE shift)
{
    int64_t i = 0;
    for (; i < n && (phase + i) % SP_LANES != 0; i++) {
        lanes[phase + i] = JOIN(lanes[phase + i], SP_LOAD(x[i]), shift);
    }
    SP_WIDE low[SP_LANES / 2], high[SP_LANES / 2];
    memcpy(low, lanes, sizeof(low));
    memcpy(high, lanes + SP_LANES / 2, sizeof(high));
    for (; i + SP_LANES <= n; i += SP_LANES) {
        const SP_ELEMENT *at = x + i;
        for (int64_t l = 0; l < SP_LANES / 2; l++) low[l] = JOIN(low[l], SP_LOAD(at[l]), shift);
        at += SP_LANES / 2;
        for (int64_t l = 0; l < SP_LANES / 2; l++) high[l] = JOIN(high[l], SP_LOAD(at[l]), shift);
    }
    memcpy(lanes, low, sizeof(low));
    memcpy(lanes + SP_LANES / 2, high, sizeof(high));
    for (int64_t l = 0; i < n; i++, l++) lanes[l] = JOIN(lanes[l], SP_LOAD(x[i]), shift);
}

#undef JOIN
#undef NAME
#include "ops/cpu/reduce/reduction_columns.inc.h"
