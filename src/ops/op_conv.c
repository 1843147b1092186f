/* SPDX-License-Identifier: Apache-2.0 */
/* Conv and MaxPool. Which kernel a convolution gets depends on its weights and attributes, never on
 * the batch. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/ops.h"
#include "ops/window.h"

static sp_status conv_window(const sp_op_call *call, sp_window *out)
{
    const sp_shape *x = &call->inputs[0].shape, *w = &call->inputs[1].shape;
    if (x->rank < 3 || w->rank != x->rank) {
        return sp__fail(SP_MISMATCH, "input of shape %s, weights of shape %s",
                        sp__shape_print(x).text, sp__shape_print(w).text);
    }
    int64_t given[SP_MAX_RANK];
    SP_TRY(sp__attribute_ints(call->attributes, "kernel_shape", w->rank - 2, 0, given));
    for (uint32_t i = 2; i < w->rank; i++) {
        if (given[i - 2] != 0 && given[i - 2] != w->dims[i]) {
            return sp__fail(SP_MISMATCH, "kernel_shape does not fit weights of shape %s",
                            sp__shape_print(w).text);
        }
    }
    return sp__window_make(call, w->dims + 2, false, out);
}

static int64_t group_count(const sp_op_call *call)
{
    return sp__attribute_int(call->attributes, "group", 1);
}

sp_status sp__conv_infer(sp_op_call *call)
{
    sp_window window = {0};
    SP_TRY(conv_window(call, &window));
    const sp_shape *x = &call->inputs[0].shape, *w = &call->inputs[1].shape;
    const int64_t groups = group_count(call);
    const bool is_whole = groups > 0 && x->dims[1] % groups == 0 && w->dims[0] % groups == 0;
    if (!is_whole || x->dims[1] / groups != w->dims[1]) {
        return sp__fail(SP_MISMATCH, "%" PRId64 " groups of input shape %s and weights of shape %s",
                        groups, sp__shape_print(x).text, sp__shape_print(w).text);
    }
    if (sp__op_has_input(call, 2)) {
        const sp_op_value *bias = &call->inputs[2];
        if (bias->shape.rank != 1 || bias->shape.dims[0] != w->dims[0]) {
            return sp__fail(SP_MISMATCH, "bias of shape %s for %" PRId64 " filters",
                            sp__shape_print(&bias->shape).text, w->dims[0]);
        }
    }
    SP_TRY(sp__op_same_types(call));
    /* Bytes that are known to be few, so no product wraps. */
    if (w->dims[0] > 0) call->depth = sp__shape_count(w) / (uint64_t)w->dims[0];
    const sp_shape y = sp__window_shape(call, &window, w->dims[0]);
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

static sp_conv_constants conv_constants(const sp_op_call *call, const sp_window *w)
{
    const sp_shape *weights = &call->inputs[1].shape;
    const int64_t groups = group_count(call);
    sp_conv_constants k = {
        .groups = groups,
        .channels = weights->dims[1],
        .filters = weights->dims[0] / groups,
        .in_h = w->in[0],
        .in_w = w->in[1],
        .out_h = w->out[0],
        .out_w = w->out[1],
        .kernel_h = w->kernel[0],
        .kernel_w = w->kernel[1],
        .stride_h = w->stride[0],
        .stride_w = w->stride[1],
        .dilation_h = w->dilation[0],
        .dilation_w = w->dilation[1],
        .pad_top = w->pad[0],
        .pad_left = w->pad[1],
        .has_bias = sp__op_has_input(call, 2),
    };
    const bool is_pointwise = k.kernel_h * k.kernel_w == 1 && k.stride_h * k.stride_w == 1;
    if (is_pointwise && k.in_h == k.out_h && k.in_w == k.out_w) {
        /* One long row: a block of outputs never ends at the edge of the image. */
        k.in_w *= k.in_h;
        k.out_w *= k.out_h;
        k.in_h = k.out_h = 1;
    }
    return k;
}

static bool is_depthwise(const sp_conv_constants *k)
{
    const int64_t reach = (SP_DEPTHWISE_COLUMNS - 1) + (k->kernel_w - 1) * k->dilation_w + 1;
    return k->channels == 1 && reach <= SP_DEPTHWISE_ROW;
}

static void bind_conv(sp_dispatch *dispatch, const sp_op_call *call)
{
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    if (sp__op_has_input(call, 2)) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
}

/* How many units of a * b * cost multiply-adds make a tile. */
static int64_t units_of_tile(int64_t cost, int64_t a, int64_t b)
{
    uint64_t work;
    const bool fits =
        sp_size_mul((uint64_t)a, (uint64_t)b, &work) && sp_size_mul(work, (uint64_t)cost, &work);
    if (!fits || work >= SP_TILE_PRODUCTS) return 1;
    return (int64_t)(SP_TILE_PRODUCTS / (work > 0 ? work : 1));
}

sp_status sp__conv_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window window = {0};
    SP_TRY(conv_window(call, &window));
    sp_conv_constants k = conv_constants(call, &window);
    const int64_t images = call->inputs[0].shape.dims[0];
    sp_dispatch *dispatch;
    if (is_depthwise(&k)) {
        /* A multiply-add costs about four times as much as in the general kernel. */
        k.planes = images * k.groups * k.filters;
        k.tile_planes = units_of_tile(4, k.kernel_h * k.kernel_w, k.out_h * k.out_w);
        SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_conv_depthwise_f32, &k, sizeof(k),
                                  &dispatch));
        bind_conv(dispatch, call);
        return sp__lower_cover(dispatch, k.planes, k.tile_planes);
    }
    const int64_t taps = k.channels * k.kernel_h * k.kernel_w;
    k.tile_pixels = units_of_tile(SP_CONV_PIXELS, k.filters, taps) * SP_CONV_PIXELS;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_conv_f32, &k, sizeof(k), &dispatch));
    bind_conv(dispatch, call);
    const uint64_t pixels = (uint64_t)(k.out_h * k.out_w);
    return sp__lower_grid(dispatch, sp__lower_tiles(pixels, (uint64_t)k.tile_pixels),
                          (uint64_t)k.groups, (uint64_t)images);
}

static sp_status pool_window(const sp_op_call *call, sp_window *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    const sp_attribute *kernel = sp__attribute_find(call->attributes, "kernel_shape");
    if (x->rank < 3 || kernel->count != x->rank - 2) {
        return sp__fail(SP_MISMATCH, "a window of %" PRIu32 " dimensions over shape %s",
                        kernel->count, sp__shape_print(x).text);
    }
    const bool rounds_up = sp__attribute_int(call->attributes, "ceil_mode", 0) != 0;
    return sp__window_make(call, kernel->as.ints, rounds_up, out);
}

sp_status sp__max_pool_infer(sp_op_call *call)
{
    sp_window window = {0};
    SP_TRY(pool_window(call, &window));
    if (!sp_size_mul((uint64_t)window.kernel[0], (uint64_t)window.kernel[1], &call->depth)) {
        return sp__fail(SP_UNSUPPORTED, "a window of %" PRId64 " x %" PRId64, window.kernel[0],
                        window.kernel[1]);
    }
    const sp_shape y = sp__window_shape(call, &window, call->inputs[0].shape.dims[1]);
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__max_pool_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window w = {0};
    SP_TRY(pool_window(call, &w));
    sp_pool_constants k = {
        .planes = call->inputs[0].shape.dims[0] * call->inputs[0].shape.dims[1],
        .in_h = w.in[0],
        .in_w = w.in[1],
        .out_h = w.out[0],
        .out_w = w.out[1],
        .kernel_h = w.kernel[0],
        .kernel_w = w.kernel[1],
        .stride_h = w.stride[0],
        .stride_w = w.stride[1],
        .dilation_h = w.dilation[0],
        .dilation_w = w.dilation[1],
        .pad_top = w.pad[0],
        .pad_left = w.pad[1],
    };
    /* About 1 ns for a tap and a few for each window. */
    k.tile_planes = units_of_tile(32, k.kernel_h * k.kernel_w + 4, k.out_h * k.out_w);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_max_pool_f32, &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_output(dispatch, call, 0);
    return sp__lower_cover(dispatch, k.planes, k.tile_planes);
}
