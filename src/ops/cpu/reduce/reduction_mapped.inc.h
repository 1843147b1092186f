/* SPDX-License-Identifier: Apache-2.0 */
/* As reduction.inc.h: the elements of a row are mapped by SP_MAP, a block at a time, and join lanes
 * as in the reduction SP_BASE of the wide type. Additional parameters SP_MAP and SP_BASE. */
#define NAME(name) SP_OF(SP_GLUE(name, SP_REDUCTION))

static __attribute__((unused)) void NAME(row)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x,
                                              int64_t n, SP_WIDE shift)
{
    SP_WIDE mapped[SP_LANE_COLUMNS];
    for (int64_t i = 0; i < n; i += SP_LANE_COLUMNS) {
        const int64_t count = n - i < SP_LANE_COLUMNS ? n - i : SP_LANE_COLUMNS;
        for (int64_t c = 0; c < count; c++) mapped[c] = SP_OF(SP_MAP)(x[i + c], shift);
        SP_WIDE_OF(SP_GLUE(row, SP_BASE))(lanes, (phase + i) % SP_LANES, mapped, count, shift);
    }
}

#undef NAME
#undef SP_BASE
#undef SP_MAP
#include "ops/cpu/reduce/reduction_columns.inc.h"
