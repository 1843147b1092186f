/* SPDX-License-Identifier: Apache-2.0 */
/* Sliding windows of convolutions and pools over one or two spatial dimensions. One dimension is
 * treated as two of which the first has size 1. */
#ifndef SP_OPS_WINDOW_H
#define SP_OPS_WINDOW_H

#include "ops/op.h"

/* [0] is vertical, [1] horizontal. */
typedef struct sp_window {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* pad: before the first */
} sp_window;

/* Reads strides, dilations, pads and auto_pad of a call whose input 0 is [batch, channels, spatial
 * ...], and computes the output's sizes. `kernel` has one size per spatial dimension; `rounds_up`
 * is ceil_mode. Errors: SP_UNSUPPORTED (3 or more dimensions, negative pads), SP_MISMATCH. */
sp_status sp__window_make(const sp_op_call *call, const int64_t *kernel, bool rounds_up,
                          sp_window *out);

/* [batch, channels] and the window's outputs, of the rank of input 0. */
sp_shape sp__window_shape(const sp_op_call *call, const sp_window *window, int64_t channels);

#endif
