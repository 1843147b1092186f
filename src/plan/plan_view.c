/* SPDX-License-Identifier: Apache-2.0 */
/* Composition of views. The number of an element of a view has a digit for each of its dimensions;
 * a stride through these numbers is even as long as it changes one digit, and no sum of strides
 * carries into the next one. */
#include "plan/plan_view.h"

#include <string.h>

#include "base/assert.h"
#include "base/macros.h"

int64_t sp__view_count(const sp_view *view)
{
    int64_t count = 1;
    for (uint32_t i = 0; i < view->rank; i++) count *= view->dims[i];
    return count;
}

sp_view sp__view_of_copy(const sp_copy_constants *k, bool is_write)
{
    sp_view view = {.rank = k->rank, .first = is_write ? k->y_first : k->x_first};
    memcpy(view.dims, k->dims, k->rank * sizeof *view.dims);
    memcpy(view.strides, is_write ? k->y : k->x, k->rank * sizeof *view.strides);
    return view;
}

bool sp__view_is_plain(const sp_view *view)
{
    int64_t stride = 1;
    for (uint32_t i = view->rank; i-- > 0; stride *= view->dims[i]) {
        if (view->dims[i] != 1 && view->strides[i] != stride) return false;
    }
    return view->first == 0;
}

/* The dimension of `of` whose digit a stride changes, and by how much; false if it changes more
 * than one. 0 < stride < count. */
static bool find_digit(const sp_view *of, int64_t stride, uint32_t *dim, int64_t *step)
{
    int64_t weight = 1;
    for (uint32_t i = of->rank; i-- > 0; weight *= of->dims[i]) {
        if (stride >= weight * of->dims[i]) continue;
        *dim = i;
        *step = stride / weight;
        return stride % weight == 0;
    }
    return false;
}

int64_t sp__view_even(const sp_view *of, int64_t count, int64_t stride)
{
    uint32_t dim;
    int64_t step;
    if (count < 2 || stride == 0) return count;
    if (stride < 0 || !find_digit(of, stride, &dim, &step)) return 0;
    if ((count - 1) * step < of->dims[dim]) return count;
    if (of->dims[dim] % step != 0) return 0;
    const int64_t inner = of->dims[dim] / step;
    return count % inner == 0 ? inner : 0;
}

bool sp__view_compose(const sp_view *of, sp_view *view)
{
    int64_t digits[SP_VIEW_RANK]; /* of the first element; then of the last one */
    int64_t left = view->first;
    sp_view out = *view;
    if (left < 0 || left >= sp__view_count(of)) return false;
    out.first = of->first;
    for (uint32_t i = of->rank; i-- > 0; left /= of->dims[i]) {
        digits[i] = left % of->dims[i];
        out.first += digits[i] * of->strides[i];
    }
    for (uint32_t i = 0; i < view->rank; i++) {
        const int64_t count = view->dims[i];
        uint32_t dim;
        int64_t step;
        out.strides[i] = 0;
        if (count < 2 || view->strides[i] == 0) continue;
        if (sp__view_even(of, count, view->strides[i]) != count) return false;
        if (!find_digit(of, view->strides[i], &dim, &step)) return false;
        out.strides[i] = of->strides[dim] * step;
        digits[dim] += (count - 1) * step;
    }
    for (uint32_t i = 0; i < of->rank; i++) {
        if (digits[i] >= of->dims[i] && !SP_PLANTED(view_carries)) return false;
    }
    *view = out;
    return true;
}

void sp__view_split(sp_view *view, uint32_t dim, int64_t inner)
{
    SP_ASSERT(view->rank < SP_VIEW_RANK);
    for (uint32_t i = view->rank++; i > dim; i--) {
        view->dims[i] = view->dims[i - 1];
        view->strides[i] = view->strides[i - 1];
    }
    view->dims[dim + 1] = inner;
    view->dims[dim] /= inner;
    view->strides[dim] *= inner;
}

bool sp__view_compose_split(const sp_view *of, sp_view *const *views, uint32_t count,
                            uint32_t which)
{
    uint32_t i = 0;
    while (i < views[which]->rank) {
        const int64_t dim = views[which]->dims[i];
        const int64_t inner = sp__view_even(of, dim, views[which]->strides[i]);
        if (inner == dim) {
            i++;
            continue;
        }
        if (inner == 0 || views[which]->rank >= SP_KERNEL_RANK) return false;
        for (uint32_t k = 0; k < count; k++) sp__view_split(views[k], i, inner);
    }
    return sp__view_compose(of, views[which]);
}

bool sp__view_invert(const sp_view *view, sp_view *out)
{
    int64_t weight = 1, stride = 1;
    sp_view found = {.rank = view->rank};
    uint32_t order[SP_VIEW_RANK];
    if (view->first != 0) return false;
    for (uint32_t i = 0; i < view->rank; i++) {
        uint32_t at = i; /* larger strides first */
        for (; at > 0 && view->strides[order[at - 1]] < view->strides[i]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    for (uint32_t i = view->rank; i-- > 0; stride *= view->dims[order[i]]) {
        if (view->dims[order[i]] != 1 && view->strides[order[i]] != stride) return false;
        found.dims[i] = view->dims[order[i]];
    }
    for (uint32_t dim = view->rank; dim-- > 0; weight *= view->dims[dim]) {
        for (uint32_t i = 0; i < view->rank; i++) {
            if (order[i] == dim) found.strides[i] = weight;
        }
    }
    *out = found;
    return true;
}

/* ---- rows ---- */

/* Dimensions of rows, outermost first. */
typedef struct row_dims {
    uint32_t rank;
    int64_t dims[SP_VIEW_RANK + 1], strides[SP_VIEW_RANK + 1];
} row_dims;

/* Puts a dimension inside of the others, as part of the last one if that goes on with it. */
static void dims_append(row_dims *rows, int64_t count, int64_t stride)
{
    if (count == 1) return;
    const uint32_t last = rows->rank - 1;
    if (rows->rank > 0 && rows->strides[last] == count * stride) {
        rows->dims[last] *= count;
        rows->strides[last] = stride;
        return;
    }
    rows->dims[rows->rank] = count;
    rows->strides[rows->rank++] = stride;
}

bool sp__view_find_rows(const sp_view *view, int64_t extent, sp_view_rows *out)
{
    const uint32_t last = view->rank - 1;
    if (view->first != 0 || view->strides[last] != 1 || view->dims[last] % extent != 0)
        return false;
    row_dims rows = {0};
    for (uint32_t i = 0; i < last; i++) dims_append(&rows, view->dims[i], view->strides[i]);
    dims_append(&rows, view->dims[last] / extent, extent);
    if (rows.rank > 2) return false;
    const uint32_t inner = rows.rank - 1;
    *out = (sp_view_rows){.block = rows.rank > 0 ? rows.dims[inner] : 1,
                          .outer = rows.rank > 1 ? rows.strides[0] : 0,
                          .inner = rows.rank > 0 ? rows.strides[inner] : 0};
    return true;
}
