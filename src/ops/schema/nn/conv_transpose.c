/* SPDX-License-Identifier: Apache-2.0 */
/* ConvTranspose. */
#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "ops/ops.h"
#include "ops/schema/nn/window.h"

static sp_status transpose_window(const sp_op_call *call, sp_window *out)
{
    const int64_t *kernel;
    SP_TRY(sp__window_kernel(call, &kernel));
    return sp__window_make_transposed(call, kernel, out);
}

static int64_t group_count(const sp_op_call *call)
{
    return sp__attribute_int(call->attributes, "group", 1);
}

/* Weights are [channels, filters of a group, kernel ...]. */
sp_status sp__conv_transpose_infer(sp_op_call *call)
{
    sp_window window = {0};
    SP_TRY(transpose_window(call, &window));
    const sp_shape *x = &call->inputs[0].shape, *w = &call->inputs[1].shape;
    const int64_t groups = group_count(call);
    if (groups < 1 || x->dims[1] % groups != 0 || x->dims[1] != w->dims[0]) {
        return sp__fail(SP_MISMATCH,
                        "%" PRId64
                        " groups do not fit an input of shape %s and weights of shape %s",
                        groups, sp__shape_print(x).text, sp__shape_print(w).text);
    }
    if (w->dims[1] > INT32_MAX || groups > INT32_MAX) {
        return sp__fail(SP_EXHAUSTED, "%" PRId64 " groups of %" PRId64 " filters are too many",
                        groups, w->dims[1]);
    }
    const int64_t filters = w->dims[1] * groups;
    if (sp__op_has_input(call, 2)) {
        const sp_op_value *bias = &call->inputs[2];
        if (bias->shape.rank != 1 || bias->shape.dims[0] != filters) {
            return sp__fail(SP_MISMATCH, "the bias has shape %s; expected [%" PRId64 "]",
                            sp__shape_print(&bias->shape).text, filters);
        }
    }
    if (filters > 0) call->depth = sp__shape_count(w) / (uint64_t)w->dims[1] / (uint64_t)groups;
    const sp_shape y = sp__window_shape(call, &window, filters);
    sp__op_set_output(call, 0, call->inputs[0].dtype, &y);
    return SP_OK;
}

sp_status sp__conv_transpose_lower(const sp_op_call *call, sp_lowering *lowering)
{
    if (call->outputs[0].bytes == 0) return SP_OK;
    sp_window window = {0};
    SP_TRY(transpose_window(call, &window));
    const sp_shape *x = &call->inputs[0].shape, *w = &call->inputs[1].shape;
    sp_conv_transpose_constants k = {.window = sp__window_constants(&window),
                                     .groups = group_count(call),
                                     .filters = w->dims[1],
                                     .has_bias = sp__op_has_input(call, 2)};
    k.channels = x->dims[1] / k.groups;
    k.window.planes = x->dims[0] * k.groups * k.filters;
    const int64_t taps = window.kernel[0] * window.kernel[1] * window.kernel[2];
    k.segment = sp__conv_segment(taps);
    sp_dispatch *dispatch;
    SP_TRY(sp__lower_dispatch(lowering, SP_KERNEL_ID_conv_transpose_f32, &k, sizeof(k), &dispatch));
    /* Each input element times the taps of all filters of its group. */
    dispatch->multiply_adds = sp__shape_count(x) * (uint64_t)(k.filters * taps);
    sp__lower_bind_input(dispatch, call, 0);
    sp__lower_bind_input(dispatch, call, 1);
    if (k.has_bias) sp__lower_bind_input(dispatch, call, 2);
    sp__lower_bind_output(dispatch, call, 0);
    return SP_OK;
}
