/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SP_OPS_CPU_CONV_CONV_PIXELS_H
#define SP_OPS_CPU_CONV_CONV_PIXELS_H

/* Outputs that the general convolution computes together. */
#define SP_CONV_PIXELS 32

#endif
