/* SPDX-License-Identifier: Apache-2.0 */
/* Conv. The choice of kernel depends on weights and attributes, never on the batch. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"

static sp_status conv_window(const sp_op_call *call, sp_window *out)
{
    const int64_t *kernel;
    SP_TRY(sp__window_kernel(call, &kernel));
    return sp__window_make(call, kernel, false, out);
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
        return sp__fail(SP_MISMATCH,
                        "%" PRId64
                        " groups do not fit an input of shape %s and weights of shape %s",
                        groups, sp__shape_print(x).text, sp__shape_print(w).text);
    }
    if (sp__op_has_input(call, 2)) {
        const sp_op_value *bias = &call->inputs[2];
        if (bias->shape.rank != 1 || bias->shape.dims[0] != w->dims[0]) {
            return sp__fail(SP_MISMATCH, "the bias has shape %s; expected [%" PRId64 "]",
                            sp__shape_print(&bias->shape).text, w->dims[0]);
        }
    }
    /* The bytes are bounded, so no product overflows. */
    if (w->dims[0] > 0) call->depth = sp__shape_count(w) / (uint64_t)w->dims[0];
    const sp_shape y = sp__window_shape(call, &window, w->dims[0]);
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

int64_t sp__conv_segment(int64_t taps)
{
    if (taps > SP_CONV_MAX_SEGMENT) return SP_CONV_MAX_SEGMENT;
    int64_t channels = SP_GEMM_SEGMENT;
    while (channels * taps > SP_CONV_MAX_SEGMENT) channels /= 2;
    return channels * taps + (SP_PLANTED(conv_segment_off_by_one) ? 1 : 0);
}

static sp_conv_3d_constants conv_constants(const sp_op_call *call, const sp_window *w)
{
    const sp_shape *weights = &call->inputs[1].shape;
    const int64_t groups = group_count(call);
    sp_conv_constants plane = {
        .groups = groups,
        .channels = weights->dims[1],
        .filters = weights->dims[0] / groups,
        SP_WINDOW_OVER_IMAGES(w),
        .has_bias = sp__op_has_input(call, 2),
        .segment = sp__conv_segment(w->kernel[0] * w->kernel[1] * w->kernel[2]),
    };
    sp_conv_3d_constants k = {
        .in_d = w->in[0],
        .out_d = w->out[0],
        .kernel_d = w->kernel[0],
        .stride_d = w->stride[0],
        .dilation_d = w->dilation[0],
        .pad_front = w->pad[0],
    };
    bool is_pointwise = true;
    for (int i = 0; i < 3; i++) {
        is_pointwise &= w->kernel[i] == 1 && w->stride[i] == 1 && w->in[i] == w->out[i];
    }
    if (is_pointwise) {
        /* As one long row, so blocks of outputs may span rows of the image. */
        plane.in_w *= plane.in_h * k.in_d;
        plane.out_w *= plane.out_h * k.out_d;
        plane.in_h = plane.out_h = k.in_d = k.out_d = 1;
    }
    k.plane = plane;
    return k;
}

/* No third dimension, or one of a single input and kernel element: the kernels for images
 * suffice. */
static bool is_flat(const sp_conv_3d_constants *k)
{
    return k->in_d == 1 && k->out_d == 1 && k->kernel_d == 1 && k->pad_front == 0;
}

/* One filter a channel; the input of a few outputs fits the kernel's memory. Several filters share
 * the gathered input in the general kernel. */
static bool is_depthwise(const sp_conv_constants *k)
{
    const int64_t rows = k->stride_h + (k->kernel_h - 1) * k->dilation_h;
    const int64_t columns = 16 * k->stride_w + (k->kernel_w - 1) * k->dilation_w;
    return k->channels == 1 && k->filters == 1 && rows <= SP_DEPTHWISE_INPUT &&
           columns <= SP_DEPTHWISE_INPUT && rows * columns <= SP_DEPTHWISE_INPUT;
}

static void bind_conv(sp_dispatch *dispatch, const sp_op_call *call)
{
    dispatch->multiply_adds = sp__shape_count(&call->outputs[0].shape) * call->depth;
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    if (sp__op_has_input(call, 2)) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
}

static sp_status lower_depthwise(const sp_op_call *call, sp_lowering *lowering,
                                 sp_conv_constants *k)
{
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_conv_depthwise_f32, k, sizeof(*k), &dispatch));
    bind_conv(dispatch, call);
    return SP_OK;
}

/* The kernel for volumes, or for types with one kernel for all convolutions. */
static sp_kernel_id general_kernel(sp_dtype dtype)
{
    switch (dtype) {
    case SP_F64:
        return SP_KERNEL_ID_conv_any_f64;
    case SP_F16:
        return SP_KERNEL_ID_conv_any_f16;
    case SP_BF16:
        return SP_KERNEL_ID_conv_any_bf16;
    default:
        return SP_KERNEL_ID_conv_3d_f32;
    }
}

/* ---- narrow convolutions (docs/decisions/0072) ---- */

void sp__conv_pack(const sp_op_call *call, uint32_t input, sp_pack *out)
{
    const sp_op_value *w = &call->inputs[1];
    if (input != 1 || w->bytes == 0 || !sp__may_be_narrow(call)) return;
    const int64_t filters = w->shape.dims[0], channels = w->shape.dims[1];
    const int64_t depth = (int64_t)sp__shape_count(&w->shape) / filters;
    *out = (sp_pack){.format = sp__pack_format_of(sp__narrow_kernels(call)->conv),
                     .matrix = {.depth = depth,
                                .columns = filters,
                                .depth_stride = depth / channels,
                                .column_stride = depth,
                                .block = channels,
                                .block_stride = 1,
                                .is_half = w->dtype != SP_F32}};
}

/* Emits the conversion of input 0 to f32, in a new scratch. */
static sp_status widen_input(const sp_op_call *call, sp_lowering *lowering)
{
    const sp_op_value *x = &call->inputs[0];
    const sp_cast_constants k = {.count = (int64_t)sp__shape_count(&x->shape), .to = SP_F32};
    const uint32_t wide = sp__lower_scratch(lowering, (uint64_t)k.count * sizeof(float));
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering,
                              x->dtype == SP_F16 ? SP_KERNEL_ID_cast_f16 : SP_KERNEL_ID_cast_bf16,
                              &k, sizeof(k), &dispatch));
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_scratch(dispatch, lowering, wide, true);
    return SP_OK;
}

static sp_status lower_narrow(const sp_op_call *call, sp_lowering *lowering, sp_conv_constants *k)
{
    const sp_narrow_kernels *kernels = sp__narrow_kernels(call);
    k->is_half = call->inputs[0].dtype != SP_F32;
    if (k->is_half) SP_TRY(widen_input(call, lowering));
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, kernels->conv, k, sizeof(*k), &dispatch));
    dispatch->multiply_adds = sp__shape_count(&call->outputs[0].shape) * call->depth;
    if (k->is_half) sp__lower_bind_scratch(dispatch, lowering, 0, false);
    else sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_packed(dispatch, call, lowering, 1, 0);
    if (k->has_bias) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}

sp_status sp__conv_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window window = {0};
    SP_TRY(conv_window(call, &window));
    sp_conv_3d_constants volume = conv_constants(call, &window);
    sp_conv_constants *k = &volume.plane;
    const int64_t images = call->inputs[0].shape.dims[0];
    const sp_dtype dtype = call->inputs[0].dtype;
    const bool is_image = dtype == SP_F32 && is_flat(&volume);
    k->planes = images * k->groups * k->filters;
    if (call->inputs[1].is_packed) return lower_narrow(call, lowering, k);
    if (is_image && is_depthwise(k)) return lower_depthwise(call, lowering, k);
    sp_dispatch *dispatch;
    if (is_image) {
        SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_conv_f32, k, sizeof(*k), &dispatch));
    } else {
        SP_TRY(sp__lower_dispatch(lowering, general_kernel(dtype), &volume, sizeof(volume),
                                  &dispatch));
    }
    bind_conv(dispatch, call);
    return SP_OK;
}
