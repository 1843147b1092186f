/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and padding of sliding windows, as ONNX defines them. */
#include "ops/window.h"

#include <inttypes.h>

#include "base/error.h"
#include "base/macros.h"

/* Larger numbers are refused, so that products of two stay far from 2^63. */
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
    return sp__fail(SP_CORRUPT, "auto_pad is '%s'", sp__text_print(text).text);
}

static sp_status check_size(const char *what, int64_t size, int64_t min)
{
    if (size >= min && size <= MAX_SIZE) return SP_OK;
    return sp__fail(size < 0 && min == 0 ? SP_UNSUPPORTED : SP_MISMATCH,
                    "a %s of %" PRId64 " is not supported", what, size);
}

/* One dimension; `end` is the explicit padding behind the input. */
static sp_status slide(sp_window *w, int axis, int64_t end, auto_pad mode, bool rounds_up)
{
    SP_TRY(check_size("input size", w->in[axis], 0));
    SP_TRY(check_size("kernel size", w->kernel[axis], 1));
    SP_TRY(check_size("stride", w->stride[axis], 1));
    SP_TRY(check_size("dilation", w->dilation[axis], 1));
    SP_TRY(check_size("pad", w->pad[axis], 0));
    SP_TRY(check_size("pad", end, 0));
    const int64_t in = w->in[axis], stride = w->stride[axis];
    const int64_t reach = (w->kernel[axis] - 1) * w->dilation[axis] + 1;
    if (mode == PAD_SAME_UPPER || mode == PAD_SAME_LOWER) {
        w->out[axis] = (in + stride - 1) / stride;
        const int64_t total = (w->out[axis] - 1) * stride + reach - in;
        const int64_t pad = total > 0 ? total : 0;
        w->pad[axis] = mode == PAD_SAME_UPPER ? pad / 2 : pad - pad / 2;
        return SP_OK;
    }
    if (mode == PAD_VALID) w->pad[axis] = end = 0;
    const int64_t room = in + w->pad[axis] + end - reach;
    if (room < 0) {
        return sp__fail(SP_MISMATCH, "a window of %" PRId64 " over an input of %" PRId64, reach,
                        in + w->pad[axis] + end);
    }
    w->out[axis] = (rounds_up ? (room + stride - 1) / stride : room / stride) + 1;
    /* A window that would start behind the input does not count. */
    if (rounds_up && (w->out[axis] - 1) * stride >= in + w->pad[axis]) w->out[axis]--;
    return SP_OK;
}

sp_status sp__window_make(const sp_op_call *call, const int64_t *kernel, bool rounds_up,
                          sp_window *out)
{
    const sp_shape *x = &call->inputs[0].shape;
    if (x->rank != 3 && x->rank != 4) {
        return sp__fail(SP_UNSUPPORTED,
                        "an input of shape %s: 1 or 2 spatial dimensions are "
                        "supported",
                        sp__shape_print(x).text);
    }
    const uint32_t spatial = x->rank - 2, first = 2 - spatial;
    auto_pad mode;
    SP_TRY(read_auto_pad(call, &mode));
    int64_t pads[4];
    sp_window w = {.in = {1, 1}, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    SP_TRY(sp__attribute_ints(call->attributes, "strides", spatial, 1, w.stride + first));
    SP_TRY(sp__attribute_ints(call->attributes, "dilations", spatial, 1, w.dilation + first));
    SP_TRY(sp__attribute_ints(call->attributes, "pads", 2 * spatial, 0, pads));
    w.out[0] = 1;
    for (uint32_t i = 0; i < spatial; i++) {
        w.in[first + i] = x->dims[2 + i];
        w.kernel[first + i] = kernel[i];
        w.pad[first + i] = pads[i];
        SP_TRY(slide(&w, (int)(first + i), pads[spatial + i], mode, rounds_up));
    }
    *out = w;
    return SP_OK;
}

sp_shape sp__window_shape(const sp_op_call *call, const sp_window *window, int64_t channels)
{
    const sp_shape *x = &call->inputs[0].shape;
    sp_shape shape = {.rank = x->rank, .dims = {x->dims[0], channels}};
    for (uint32_t i = 2; i < x->rank; i++) shape.dims[i] = window->out[i + 2 - x->rank];
    return shape;
}
