/* SPDX-License-Identifier: Apache-2.0 */
/* Views: other shapes, strides and offsets over the same elements. None reaches a byte that its
 * base layout did not reach, so nothing here needs the storage's size. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "tensor/collapse.h"
#include "tensor/layout.h"

/* Byte offset after `index` steps along `axis`; both inside the layout. */
static uint64_t offset_of(const sp_layout *layout, uint32_t axis, int64_t index)
{
    const int64_t bytes = (int64_t)sp_dtype_bytes(layout->dtype);
    return layout->offset + (uint64_t)(layout->strides[axis] * index * bytes);
}

sp_status sp__layout_permute(const sp_layout *layout, const int64_t *axes, uint32_t count,
                             sp_layout *out)
{
    const uint32_t rank = layout->shape.rank;
    if (count != rank) {
        return sp__fail(SP_MISMATCH, "%" PRIu32 " axes for a tensor of shape %s", count,
                        sp__shape_print(&layout->shape).text);
    }
    sp_layout view = *layout;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < rank; i++) {
        uint32_t from;
        SP_TRY(sp__shape_axis(&layout->shape, axes[i], &from));
        if ((seen & (1u << from)) != 0) {
            return sp__fail(SP_MISMATCH, "axis %" PRId64 " is repeated in a permutation", axes[i]);
        }
        seen |= 1u << from;
        view.shape.dims[i] = layout->shape.dims[from];
        view.strides[i] = layout->strides[from];
    }
    sp__layout_normalise(&view);
    *out = view;
    return SP_OK;
}

sp_status sp__layout_slice(const sp_layout *layout, int64_t axis, int64_t start, int64_t count,
                           int64_t step, sp_layout *out)
{
    uint32_t at;
    int64_t far, last;
    SP_TRY(sp__shape_axis(&layout->shape, axis, &at));
    if (step == 0) return sp__fail(SP_INVALID, "a slice with step 0: use sp_tensor_expand");
    const int64_t size = layout->shape.dims[at];
    const bool is_inside = count > 0 && start >= 0 && start < size &&
                           !__builtin_mul_overflow(count - 1, step, &far) &&
                           !__builtin_add_overflow(start, far, &last) && last >= 0 && last < size;
    if (!is_inside && (count != 0 || start < 0 || start > size)) {
        return sp__fail(SP_MISMATCH,
                        "a slice of %" PRId64 " elements from %" PRId64 " with step %" PRId64
                        " exceeds dimension %" PRIu32 " of shape %s",
                        count, start, step, at, sp__shape_print(&layout->shape).text);
    }
    sp_layout view = *layout;
    view.shape.dims[at] = count;
    if (sp__shape_count(&view.shape) > 0) {
        view.offset = offset_of(layout, at, start);
        /* With one element the stride has no meaning, and might overflow. */
        if (count > 1) view.strides[at] = layout->strides[at] * step;
    }
    sp__layout_normalise(&view);
    *out = view;
    return SP_OK;
}

static void drop_axis(sp_layout *view, uint32_t axis)
{
    view->shape.rank--;
    for (uint32_t i = axis; i < view->shape.rank; i++) {
        view->shape.dims[i] = view->shape.dims[i + 1];
        view->strides[i] = view->strides[i + 1];
    }
    view->shape.dims[view->shape.rank] = 0;
    view->strides[view->shape.rank] = 0;
    sp__layout_normalise(view);
}

sp_status sp__layout_select(const sp_layout *layout, int64_t axis, int64_t index, sp_layout *out)
{
    uint32_t at;
    SP_TRY(sp__shape_axis(&layout->shape, axis, &at));
    const int64_t size = layout->shape.dims[at];
    if (index < -size || index >= size) {
        return sp__fail(SP_MISMATCH,
                        "index %" PRId64 " is outside dimension %" PRIu32 " of shape %s", index, at,
                        sp__shape_print(&layout->shape).text);
    }
    sp_layout view;
    SP_TRY(sp__layout_slice(layout, axis, index < 0 ? index + size : index, 1, 1, &view));
    drop_axis(&view, at);
    *out = view;
    return SP_OK;
}

sp_status sp__layout_squeeze(const sp_layout *layout, int64_t axis, sp_layout *out)
{
    uint32_t at;
    SP_TRY(sp__shape_axis(&layout->shape, axis, &at));
    if (layout->shape.dims[at] != 1) {
        return sp__fail(SP_MISMATCH, "dimension %" PRIu32 " of shape %s is not 1", at,
                        sp__shape_print(&layout->shape).text);
    }
    sp_layout view = *layout;
    drop_axis(&view, at);
    *out = view;
    return SP_OK;
}

sp_status sp__layout_unsqueeze(const sp_layout *layout, int64_t axis, sp_layout *out)
{
    const uint32_t rank = layout->shape.rank;
    if (rank == SP_MAX_RANK) {
        return sp__fail(SP_MISMATCH, "a tensor has at most %d dimensions", SP_MAX_RANK);
    }
    if (axis < -(int64_t)rank - 1 || axis > (int64_t)rank) {
        return sp__fail(SP_MISMATCH, "new axis %" PRId64 " is outside shape %s", axis,
                        sp__shape_print(&layout->shape).text);
    }
    const uint32_t at = (uint32_t)(axis < 0 ? axis + rank + 1 : axis);
    sp_layout view = *layout;
    view.shape.rank++;
    for (uint32_t i = rank; i > at; i--) {
        view.shape.dims[i] = view.shape.dims[i - 1];
        view.strides[i] = view.strides[i - 1];
    }
    view.shape.dims[at] = 1;
    sp__layout_normalise(&view);
    *out = view;
    return SP_OK;
}

sp_status sp__layout_expand(const sp_layout *layout, const sp_shape *shape, sp_layout *out)
{
    uint64_t bytes;
    SP_TRY(sp__shape_bytes(shape, layout->dtype, &bytes));
    const uint32_t rank = layout->shape.rank;
    sp_layout view = {.dtype = layout->dtype, .shape = *shape, .offset = layout->offset};
    bool fits = shape->rank >= rank;
    for (uint32_t i = 0; fits && i < rank; i++) {
        const uint32_t to = shape->rank - rank + i;
        const int64_t size = layout->shape.dims[i];
        if (size == shape->dims[to]) view.strides[to] = layout->strides[i];
        else fits = size == 1; /* and its stride is 0 */
    }
    if (!fits) {
        return sp__fail(SP_MISMATCH, "shape %s cannot be expanded to %s",
                        sp__shape_print(&layout->shape).text, sp__shape_print(shape).text);
    }
    sp__layout_normalise(&view);
    *out = view;
    return SP_OK;
}

/* Fills in the dimension that is -1, and checks the count. */
static sp_status find_shape(const sp_layout *layout, const int64_t *dims, uint32_t rank,
                            sp_shape *out)
{
    int64_t asked[SP_MAX_RANK] = {0};
    uint32_t free_axis = rank;
    for (uint32_t i = 0; i < rank && rank <= SP_MAX_RANK; i++) {
        asked[i] = dims[i];
        if (dims[i] != -1 || free_axis != rank) continue;
        free_axis = i;
        asked[i] = 1;
    }
    uint64_t bytes;
    SP_TRY(sp__shape_make(asked, rank, out));
    const bool is_bounded = sp__shape_bytes(out, layout->dtype, &bytes) == SP_OK;
    const uint64_t count = sp__shape_count(&layout->shape);
    const uint64_t rest = is_bounded ? sp__shape_count(out) : 0;
    if (free_axis < rank && rest > 0 && count % rest == 0) {
        out->dims[free_axis] = (int64_t)(count / rest);
    }
    const bool is_known = free_axis == rank || rest > 0; /* next to a 0 any size would fit */
    if (is_bounded && is_known && sp__shape_count(out) == count) return SP_OK;
    if (free_axis < rank) out->dims[free_axis] = -1;
    return sp__fail(SP_MISMATCH, "shape %s cannot be reshaped to %s",
                    sp__shape_print(&layout->shape).text, sp__shape_print(out).text);
}

/* Splits the new dimensions, innermost first, off the runs of old dimensions with one even
 * stride. */
static bool fit_strides(const sp_layout *layout, sp_layout *view)
{
    int64_t dims[SP_MAX_RANK] = {0}, strides[SP_MAX_RANK] = {0}, same[SP_MAX_RANK];
    for (uint32_t i = 0; i < layout->shape.rank; i++) {
        dims[i] = layout->shape.dims[i];
        strides[i] = same[i] = layout->strides[i];
    }
    uint32_t run = sp__collapse(layout->shape.rank, dims, strides, same) - 1;
    for (uint32_t i = view->shape.rank; i-- > 0;) {
        const int64_t size = view->shape.dims[i];
        if (size == 1) continue;
        if (dims[run] == 1 && run > 0) run--;
        if (dims[run] % size != 0) return false;
        view->strides[i] = strides[run];
        strides[run] *= size;
        dims[run] /= size;
    }
    return true;
}

sp_status sp__layout_reshape(const sp_layout *layout, const int64_t *dims, uint32_t rank,
                             sp_layout *out)
{
    sp_layout view = {.dtype = layout->dtype, .offset = layout->offset};
    SP_TRY(find_shape(layout, dims, rank, &view.shape));
    if (sp__shape_count(&view.shape) > 0 && !fit_strides(layout, &view)) {
        return sp__fail(SP_MISMATCH,
                        "the strides of this tensor of shape %s have no view of shape %s: make it "
                        "contiguous first (sp_tensor_contiguous)",
                        sp__shape_print(&layout->shape).text, sp__shape_print(&view.shape).text);
    }
    sp__layout_normalise(&view);
    *out = view;
    return SP_OK;
}

sp_status sp__layout_view_as(const sp_layout *layout, sp_dtype dtype, sp_layout *out)
{
    if (sp_dtype_bytes(dtype) != sp_dtype_bytes(layout->dtype)) {
        return sp__fail(SP_MISMATCH, "elements of type %s cannot be viewed as %s, of another size",
                        sp_dtype_name(layout->dtype), sp_dtype_name(dtype));
    }
    *out = *layout;
    out->dtype = dtype;
    return SP_OK;
}
