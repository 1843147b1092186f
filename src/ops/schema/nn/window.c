/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and padding of sliding windows, as ONNX defines them. */
#include "ops/schema/nn/window.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"
#include "base/size.h"
#include "ops/ops.h"

/* Larger numbers are refused, so products of two cannot overflow. */
#define MAX_SIZE INT64_C(0x7fffffff)

typedef enum auto_pad { PAD_EXPLICIT, PAD_SAME_UPPER, PAD_SAME_LOWER, PAD_VALID } auto_pad;

static sp_status read_auto_pad(const sp_op_call *call, auto_pad *out)
{
    const sp_text text = sp__attribute_text(call->attributes, "auto_pad", "NOTSET");
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    for (uint32_t i = 0; i < SP_COUNT_OF(names); i++) {
        *out = (auto_pad)i;
        if (sp__text_is(text, names[i])) return SP_OK;
    }
    return sp__fail(SP_CORRUPT, "unknown auto_pad '%s'", sp__text_print(text).text);
}

static sp_status check_size(const char *what, int64_t size, int64_t min)
{
    if (size >= min && size <= MAX_SIZE) return SP_OK;
    return sp__fail(size < 0 && min == 0 ? SP_UNSUPPORTED : SP_MISMATCH,
                    "a %s of %" PRId64 " is not supported", what, size);
}

static sp_status check_sizes(const sp_window *w, uint32_t axis)
{
    SP_TRY(check_size("input size", w->in[axis], 0));
    SP_TRY(check_size("kernel size", w->kernel[axis], 1));
    SP_TRY(check_size("stride", w->stride[axis], 1));
    SP_TRY(check_size("dilation", w->dilation[axis], 1));
    SP_TRY(check_size("pad", w->pad[axis], 0));
    return check_size("pad", w->end[axis], 0);
}

/* Sets output size and padding of one dimension. */
static sp_status slide_axis(sp_window *w, uint32_t axis, auto_pad mode, bool rounds_up)
{
    SP_TRY(check_sizes(w, axis));
    const int64_t in = w->in[axis], stride = w->stride[axis];
    const int64_t reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
        w->out[axis] = (in + stride - 1) / stride;
        const int64_t total = (w->out[axis] - 1) * stride + reach - in;
        const int64_t pad = total > 0 ? total : 0;
        w->pad[axis] = mode == PAD_SAME_UPPER ? pad / 2 : pad - pad / 2;
        w->end[axis] = pad - w->pad[axis];
        return SP_OK;
    }
    if (mode == PAD_VALID) w->pad[axis] = w->end[axis] = 0;
    const int64_t room = in + w->pad[axis] + w->end[axis] - reach;
    /* If rounded up, the last window may extend beyond the padded input by less than a stride. */
    if (rounds_up ? room <= -stride : room < 0) {
        return sp__fail(SP_MISMATCH, "a window of %" PRId64 " does not fit an input of %" PRId64,
                        reach, in + w->pad[axis] + w->end[axis]);
    }
    w->out[axis] = (room + (rounds_up ? stride - 1 : 0)) / stride + 1;
    /* A window that would start after the input is not counted. */
    if (rounds_up && (w->out[axis] - 1) * stride >= in + w->pad[axis]) w->out[axis]--;
    return SP_OK;
}

/* Reads the call's attributes; `first` is the first dimension that is present. */
static sp_status read_window(const sp_op_call *call, const int64_t *kernel, sp_window *out,
                             uint32_t *first, auto_pad *mode)
{
    const sp_shape *x = &call->inputs[0].shape;
    if (x->rank < 3 || x->rank > 5) {
        return sp__fail(SP_UNSUPPORTED,
                        "the input has shape %s; 1 to 3 spatial dimensions are supported",
                        sp__shape_print(x).text);
    }
    const uint32_t spatial = x->rank - 2;
    *first = 3 - spatial;
    SP_TRY(read_auto_pad(call, mode));
    int64_t pads[6];
    sp_window w = {.in = {1, 1, 1},
                   .out = {1, 1, 1},
                   .kernel = {1, 1, 1},
                   .stride = {1, 1, 1},
                   .dilation = {1, 1, 1}};
    SP_TRY(sp__attribute_ints(call->attributes, "strides", spatial, 1, w.stride + *first));
    SP_TRY(sp__attribute_ints(call->attributes, "dilations", spatial, 1, w.dilation + *first));
    SP_TRY(sp__attribute_ints(call->attributes, "pads", 2 * spatial, 0, pads));
    for (uint32_t i = 0; i < spatial; i++) {
        w.in[*first + i] = x->dims[2 + i];
        w.kernel[*first + i] = kernel[i];
        w.pad[*first + i] = pads[i];
        w.end[*first + i] = pads[spatial + i];
    }
    *out = w;
    return SP_OK;
}

sp_status sp__window_make(const sp_op_call *call, const int64_t *kernel, bool rounds_up,
                          sp_window *out)
{
    sp_window w = {0};
    uint32_t first = 0;
    auto_pad mode = PAD_EXPLICIT;
    SP_TRY(read_window(call, kernel, &w, &first, &mode));
    for (uint32_t axis = first; axis < 3; axis++) SP_TRY(slide_axis(&w, axis, mode, rounds_up));
    *out = w;
    return SP_OK;
}

/* One dimension of a transposed convolution. `wanted` is output_shape, 0 without it; `extra` is
 * output_padding. Padding is removed from the output. */
static sp_status slide_axis_transposed(sp_window *w, uint32_t axis, auto_pad mode, int64_t wanted,
                                       int64_t extra)
{
    SP_TRY(check_sizes(w, axis));
    SP_TRY(check_size("output padding", extra, 0));
    SP_TRY(check_size("output size", wanted, 0));
    const bool is_same = mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER;
    const int64_t reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    const int64_t whole = (w->in[axis] - 1) * w->stride[axis] + reach + extra;
    if (mode == PAD_VALID) w->pad[axis] = w->end[axis] = 0;
    if (wanted == 0 && !is_same) {
        w->out[axis] = whole - w->pad[axis] - w->end[axis];
        if (w->out[axis] >= 0) return SP_OK;
        return sp__fail(SP_MISMATCH,
                        "pads of %" PRId64 " and %" PRId64 " exceed an output of %" PRId64,
                        w->pad[axis], w->end[axis], whole);
    }
    w->out[axis] = wanted > 0 ? wanted : w->in[axis] * w->stride[axis];
    SP_TRY(check_size("output size", w->out[axis], 0));
    const int64_t cut = whole > w->out[axis] ? whole - w->out[axis] : 0;
    w->pad[axis] = mode == PAD_SAME_UPPER ? cut / 2 : cut - cut / 2;
    return SP_OK;
}

sp_status sp__window_make_transposed(const sp_op_call *call, const int64_t *kernel, sp_window *out)
{
    sp_window w = {0};
    uint32_t first = 0;
    auto_pad mode = PAD_EXPLICIT;
    SP_TRY(read_window(call, kernel, &w, &first, &mode));
    int64_t wanted[3] = {0}, extra[3] = {0};
    SP_TRY(sp__attribute_ints(call->attributes, "output_shape", 3 - first, 0, wanted + first));
    SP_TRY(sp__attribute_ints(call->attributes, "output_padding", 3 - first, 0, extra + first));
    for (uint32_t axis = first; axis < 3; axis++) {
        SP_TRY(slide_axis_transposed(&w, axis, mode, wanted[axis], extra[axis]));
    }
    *out = w;
    return SP_OK;
}

sp_shape sp__window_shape(const sp_op_call *call, const sp_window *window, int64_t channels)
{
    const sp_shape *x = &call->inputs[0].shape;
    sp_shape shape = {.rank = x->rank, .dims = {x->dims[0], channels}};
    for (uint32_t i = 2; i < x->rank; i++) shape.dims[i] = window->out[i + 3 - x->rank];
    return shape;
}

sp_status sp__window_kernel(const sp_op_call *call, const int64_t **out)
{
    const sp_shape *x = &call->inputs[0].shape, *w = &call->inputs[1].shape;
    if (x->rank < 3 || w->rank != x->rank) {
        return sp__fail(SP_MISMATCH, "an input of shape %s does not fit weights of shape %s",
                        sp__shape_print(x).text, sp__shape_print(w).text);
    }
    int64_t given[SP_MAX_RANK];
    SP_TRY(sp__attribute_ints(call->attributes, "kernel_shape", w->rank - 2, 0, given));
    for (uint32_t i = 2; i < w->rank; i++) {
        if (given[i - 2] != 0 && given[i - 2] != w->dims[i]) {
            return sp__fail(SP_MISMATCH, "kernel_shape does not match weights of shape %s",
                            sp__shape_print(w).text);
        }
    }
    *out = w->dims + 2;
    return SP_OK;
}

sp_window_constants sp__window_constants(const sp_window *window)
{
    sp_window_constants k = {0};
    for (int i = 0; i < 3; i++) {
        k.in[i] = window->in[i];
        k.out[i] = window->out[i];
        k.kernel[i] = window->kernel[i];
        k.stride[i] = window->stride[i];
        k.dilation[i] = window->dilation[i];
        k.pad[i] = window->pad[i];
        k.end[i] = window->end[i];
    }
    return k;
}
