/* SPDX-License-Identifier: Apache-2.0 */
/* Making and querying layouts. The views are in layout_view.c. */
#include "tensor/layout.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"

/* More than any address, and small enough that sums of eight, and of strides, do not overflow. */
#define MAX_REACH ((uint64_t)1 << 56)

void sp__layout_normalise(sp_layout *layout)
{
    if (sp__shape_count(&layout->shape) == 0) {
        sp__shape_strides(&layout->shape, layout->strides);
        return;
    }
    int64_t next = 1;
    for (uint32_t i = layout->shape.rank; i-- > 0;) {
        if (layout->shape.dims[i] == 1) layout->strides[i] = next;
        next = layout->strides[i] * layout->shape.dims[i];
    }
}

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? 0 - (uint64_t)stride : (uint64_t)stride;
}

bool sp__layout_reach(const sp_layout *layout, sp_layout_reach *out)
{
    *out = (sp_layout_reach){0};
    if (sp__shape_count(&layout->shape) == 0) return true;
    const uint64_t element = sp_dtype_bytes(layout->dtype);
    sp_layout_reach reach = {.above = element};
    for (uint32_t i = 0; i < layout->shape.rank; i++) {
        const uint64_t steps = (uint64_t)layout->shape.dims[i] - 1;
        uint64_t far;
        if (!sp_size_mul(magnitude(layout->strides[i]), steps, &far)) return false;
        if (!sp_size_mul(far, element, &far) || far > MAX_REACH) return false;
        if (layout->strides[i] < 0) reach.below += far;
        else reach.above += far;
    }
    *out = reach;
    return reach.below <= MAX_REACH && reach.above <= MAX_REACH;
}

static sp_status check_reach(const sp_layout *layout, uint64_t storage_bytes)
{
    const uint64_t element = sp_dtype_bytes(layout->dtype);
    if (layout->offset % element != 0) {
        return sp__fail(SP_INVALID,
                        "offset %" PRIu64 " is not a multiple of the %" PRIu64 " bytes of a %s",
                        layout->offset, element, sp_dtype_name(layout->dtype));
    }
    sp_layout_reach reach;
    if (sp__layout_reach(layout, &reach) && layout->offset >= reach.below &&
        sp_size_in_range(layout->offset, reach.above, storage_bytes)) {
        return SP_OK;
    }
    return sp__fail(SP_INVALID,
                    "a %s tensor of shape %s at byte %" PRIu64
                    " with these strides exceeds its storage of %" PRIu64 " bytes",
                    sp_dtype_name(layout->dtype), sp__shape_print(&layout->shape).text,
                    layout->offset, storage_bytes);
}

sp_status sp__layout_init_contiguous(sp_layout *out, sp_dtype dtype, const sp_shape *shape)
{
    uint64_t bytes;
    if (sp_dtype_bytes(dtype) == 0) {
        return sp__fail(SP_INVALID, "%d is not an element type", (int)dtype);
    }
    SP_TRY(sp__shape_bytes(shape, dtype, &bytes));
    *out = (sp_layout){.dtype = dtype, .shape = *shape};
    sp__shape_strides(shape, out->strides);
    return SP_OK;
}

sp_status sp__layout_init(sp_layout *out, sp_dtype dtype, const sp_shape *shape,
                          const int64_t *strides, uint64_t offset, uint64_t storage_bytes)
{
    sp_layout layout;
    SP_TRY(sp__layout_init_contiguous(&layout, dtype, shape));
    layout.offset = offset;
    for (uint32_t i = 0; strides != NULL && i < shape->rank; i++) {
        if (shape->dims[i] > 1) layout.strides[i] = strides[i];
    }
    SP_TRY(check_reach(&layout, storage_bytes));
    sp__layout_normalise(&layout);
    *out = layout;
    return SP_OK;
}

bool sp__layout_is_contiguous(const sp_layout *layout)
{
    int64_t strides[SP_MAX_RANK];
    sp__shape_strides(&layout->shape, strides);
    return memcmp(strides, layout->strides, layout->shape.rank * sizeof strides[0]) == 0;
}

uint64_t sp__layout_bytes(const sp_layout *layout)
{
    return sp__shape_count(&layout->shape) * sp_dtype_bytes(layout->dtype);
}

bool sp__layout_overlaps_itself(const sp_layout *layout)
{
    if (sp__shape_count(&layout->shape) == 0) return false;
    /* From the smallest stride up, each stride must exceed all that the smaller ones reach. */
    uint32_t order[SP_MAX_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i < layout->shape.rank; i++) {
        if (layout->shape.dims[i] == 1) continue;
        uint32_t at = count++;
        const uint64_t stride = magnitude(layout->strides[i]);
        for (; at > 0 && magnitude(layout->strides[order[at - 1]]) > stride; at--) {
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
    uint64_t reach = 0;
    for (uint32_t k = 0; k < count; k++) {
        const uint64_t stride = magnitude(layout->strides[order[k]]);
        if (stride <= reach) return true;
        reach += stride * ((uint64_t)layout->shape.dims[order[k]] - 1);
    }
    return false;
}
