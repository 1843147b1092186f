/* SPDX-License-Identifier: Apache-2.0 */
/* Views: which elements of a value a kernel reads or writes, in the order of some dimensions.
 * Element [i0, i1, ...] is number
 *
 *     first + i0 * strides[0] + i1 * strides[1] + ...
 *
 * of the value. A copy that one kernel makes by strides and another one reads by strides is a view
 * of a view: composed, the second reads what the first read. */
#ifndef SP_PLAN_PLAN_VIEW_H
#define SP_PLAN_PLAN_VIEW_H

#include "plan/plan_build.h"

/* A copy has SP_KERNEL_RANK dimensions; a product its batch, rows, columns and depth. */
#define SP_VIEW_RANK (SP_KERNEL_RANK + 3)

typedef struct sp_view {
    uint32_t rank; /* at least 1 */
    int64_t first;
    int64_t dims[SP_VIEW_RANK], strides[SP_VIEW_RANK];
} sp_view;

/* Number of elements. */
int64_t sp__view_count(const sp_view *view);

/* What a copy_strided reads, and what it writes. */
sp_view sp__view_of_copy(const sp_copy_constants *k, bool is_write);

/* Does it have the elements of a value in their order? */
bool sp__view_is_plain(const sp_view *view);

/* The view `order` is of the elements of `of`, in the order of its dimensions. Of `count` of them,
 * `stride` apart, the number that are evenly apart in `of` too: all, or a divisor. 0: none. */
int64_t sp__view_even(const sp_view *of, int64_t count, int64_t stride);

/* Makes of `view`, which is of the elements of `of` in their order, the view of what `of` is a view
 * of. False, and `view` is unchanged, if it has no strides. */
bool sp__view_compose(const sp_view *of, sp_view *view);

/* Makes two dimensions of one: the inner one has `inner` elements, a divisor. */
void sp__view_split(sp_view *view, uint32_t dim, int64_t inner);

/* Composes one of the views, all of the same dimensions, after as many splits as that takes, to at
 * most SP_KERNEL_RANK dimensions. The others are split likewise. False: they may have been split.
 */
bool sp__view_compose_split(const sp_view *of, sp_view *const *views, uint32_t count,
                            uint32_t which);

/* The view that finds in a copy what `view` finds in the original: element [i] of the result's
 * order is where the copy, in the order of `view`, has element number i of the original. False
 * unless `view` has each element of the original once. */
bool sp__view_invert(const sp_view *view, sp_view *out);

/* Rows of neighbouring elements, of which row r begins at r / block * outer + r % block * inner. */
typedef struct sp_view_rows {
    int64_t block, outer, inner;
} sp_view_rows;

/* The rows of `extent` elements; false if the view is of no such rows, from the first element on,
 * or they have more than two strides. */
bool sp__view_find_rows(const sp_view *view, int64_t extent, sp_view_rows *out);

#endif
