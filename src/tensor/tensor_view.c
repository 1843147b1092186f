/* SPDX-License-Identifier: Apache-2.0 */
/* The views of the public API: each holds the tensor, makes the layout, and shares the storage. */
#include "tensor/tensor.h"

#include "base/error.h"

static sp_status begin_view(sp_tensor handle, sp_tensor *out, sp_rt_tensor **tensor)
{
    if (out == NULL)
        return sp__fail(SP_INVALID, "out is NULL: pass a pointer for the handle of the view");
    *out = (sp_tensor){0};
    return sp__tensor_find(handle, tensor);
}

static sp_status end_view(sp_rt_tensor *tensor, sp_status status, const sp_layout *layout,
                          sp_tensor *out)
{
    if (status == SP_OK) status = sp__tensor_share(tensor, layout, out);
    sp__tensor_drop(tensor);
    return status;
}

static sp_status fail_no_list(const char *what)
{
    return sp__fail(SP_INVALID, "the %s of the view is NULL", what);
}

sp_status sp_tensor_permute(sp_tensor handle, const int64_t *axes, uint32_t count, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = axes == NULL && count > 0
                                 ? fail_no_list("axes")
                                 : sp__layout_permute(&tensor->layout, axes, count, &view);
    return end_view(tensor, status, &view, out);
}

static sp_status layout_transpose(const sp_layout *layout, int64_t axis, int64_t other,
                                  sp_layout *out)
{
    uint32_t a, b;
    SP_TRY(sp__shape_axis(&layout->shape, axis, &a));
    SP_TRY(sp__shape_axis(&layout->shape, other, &b));
    int64_t axes[SP_MAX_RANK];
    for (uint32_t i = 0; i < layout->shape.rank; i++) axes[i] = i;
    axes[a] = b;
    axes[b] = a;
    return sp__layout_permute(layout, axes, layout->shape.rank, out);
}

sp_status sp_tensor_transpose(sp_tensor handle, int64_t axis, int64_t other_axis, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = layout_transpose(&tensor->layout, axis, other_axis, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_slice(sp_tensor handle, int64_t axis, int64_t start, int64_t count,
                          int64_t step, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = sp__layout_slice(&tensor->layout, axis, start, count, step, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_select(sp_tensor handle, int64_t axis, int64_t index, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = sp__layout_select(&tensor->layout, axis, index, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_reshape(sp_tensor handle, uint32_t rank, const int64_t *shape, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = shape == NULL && rank > 0
                                 ? fail_no_list("shape")
                                 : sp__layout_reshape(&tensor->layout, shape, rank, &view);
    return end_view(tensor, status, &view, out);
}

static sp_status layout_expand(const sp_layout *layout, uint32_t rank, const int64_t *dims,
                               sp_layout *out)
{
    sp_shape shape;
    if (dims == NULL && rank > 0) return fail_no_list("shape");
    SP_TRY(sp__shape_make(dims, rank, &shape));
    return sp__layout_expand(layout, &shape, out);
}

sp_status sp_tensor_expand(sp_tensor handle, uint32_t rank, const int64_t *shape, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = layout_expand(&tensor->layout, rank, shape, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_squeeze(sp_tensor handle, int64_t axis, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = sp__layout_squeeze(&tensor->layout, axis, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_unsqueeze(sp_tensor handle, int64_t axis, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = sp__layout_unsqueeze(&tensor->layout, axis, &view);
    return end_view(tensor, status, &view, out);
}

sp_status sp_tensor_view_as(sp_tensor handle, sp_dtype dtype, sp_tensor *out)
{
    sp_rt_tensor *tensor;
    sp_layout view;
    SP_TRY(begin_view(handle, out, &tensor));
    const sp_status status = sp__layout_view_as(&tensor->layout, dtype, &view);
    return end_view(tensor, status, &view, out);
}
