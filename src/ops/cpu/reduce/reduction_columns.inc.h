/* SPDX-License-Identifier: Apache-2.0 */
/* The columns and tree of each reduction: `width` contiguous outputs, each of `n` elements with
 * stride `stride`. Included by other templates at their end. */
#define NAME(name) SP_OF(SP_GLUE(name, SP_REDUCTION))
#define JOIN SP_WIDE_OF(SP_GLUE(sp_join, SP_REDUCTION))

static SP_ALWAYS_INLINE void NAME(some_columns)(SP_WIDE *lanes, int64_t phase, const SP_ELEMENT *x,
                                                int64_t stride, int64_t n, const int64_t width,
                                                const SP_WIDE *shift)
{
    for (int64_t i = 0; i < n; i++) {
        SP_WIDE *acc = lanes + (phase + i) % SP_LANES * SP_LANE_COLUMNS;
        const SP_ELEMENT *from = x + i * stride;
        SP_INDEPENDENT for (int64_t c = 0; c < width; c++)
        {
            acc[c] = JOIN(acc[c], SP_LOAD(from[c]), shift[c]);
        }
    }
}
static __attribute__((unused)) void NAME(columns)(SP_WIDE *lanes, int64_t phase,
                                                  const SP_ELEMENT *x, int64_t stride, int64_t n,
                                                  int64_t width, const SP_WIDE *shift)
{
    if (width == SP_LANE_COLUMNS) {
        NAME(some_columns)(lanes, phase, x, stride, n, SP_LANE_COLUMNS, shift);
    } else {
        NAME(some_columns)(lanes, phase, x, stride, n, width, shift);
    }
}

#define SP_TREE NAME(any_tree)
#include "ops/cpu/reduce/lanes_tree.inc.h"

static __attribute__((unused)) void NAME(tree)(SP_WIDE *lanes, int64_t width, int64_t extent)
{
    if (width == 1) NAME(any_tree)(lanes, 1, extent);
    else NAME(any_tree)(lanes, SP_LANE_COLUMNS, extent);
}

#undef JOIN
#undef NAME
#undef SP_REDUCTION
