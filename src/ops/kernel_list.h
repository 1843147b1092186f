/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all kernels: one family after the other, each in a header of its own. */
#ifndef SP_OPS_KERNEL_LIST_H
#define SP_OPS_KERNEL_LIST_H

#include "ops/kernel_constants.h"
#include "ops/move_constants.h"

#define SP_KERNEL_LIST(X)                                                                          \
    SP_CUDA_KERNEL_LIST(X)                                                                         \
    SP_MOVE_KERNEL_LIST(X)

#endif
