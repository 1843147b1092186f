/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows of convolutions and pools over one to three spatial dimensions. Absent ones come
 * first and have size 1. */
#ifndef SP_OPS_SCHEMA_NN_WINDOW_H
#define SP_OPS_SCHEMA_NN_WINDOW_H

#include "ops/lowering.h"

/* [0] is depth, [1] vertical, [2] horizontal. */
typedef struct sp_window {
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3];
    int64_t pad[3], end[3]; /* before the first element, after the last */
} sp_window;

/* The fields of a window over images, in an initialiser of any kernel's constants. */
#define SP_WINDOW_OVER_IMAGES(window)                                                              \
    .in_h = (window)->in[1], .in_w = (window)->in[2], .out_h = (window)->out[1],                   \
    .out_w = (window)->out[2], .kernel_h = (window)->kernel[1], .kernel_w = (window)->kernel[2],   \
    .stride_h = (window)->stride[1], .stride_w = (window)->stride[2],                              \
    .dilation_h = (window)->dilation[1], .dilation_w = (window)->dilation[2],                      \
    .pad_top = (window)->pad[1], .pad_left = (window)->pad[2]

/* Reads strides, dilations, pads and auto_pad of a call whose input 0 is [batch, channels, spatial
 * ...], and computes the output's sizes. `kernel` has one size per spatial dimension; `rounds_up`
 * is ceil_mode. Errors: SP_UNSUPPORTED (4 or more dimensions, negative pads), SP_MISMATCH. */
sp_status sp__window_make(const sp_op_call *call, const int64_t *kernel, bool rounds_up,
                          sp_window *out);

/* The same for windows that a transposed convolution slides over its output; reads output_padding
 * and output_shape, too. `end` is not set. */
sp_status sp__window_make_transposed(const sp_op_call *call, const int64_t *kernel, sp_window *out);

/* [batch, channels] and the window's outputs, of the rank of input 0. */
sp_shape sp__window_shape(const sp_op_call *call, const sp_window *window, int64_t channels);

/* The kernel's sizes, from the shape of the weights (input 1); kernel_shape, if given, must be
 * equal. */
sp_status sp__window_kernel(const sp_op_call *call, const int64_t **out);

/* The window in a kernel's constants; planes are left 0. */
sp_window_constants sp__window_constants(const sp_window *window);

/* Steps of a chain of a convolution whose kernel has so many taps, at least 1 (decision 0002). */
int64_t sp__conv_segment(int64_t taps);

#endif
