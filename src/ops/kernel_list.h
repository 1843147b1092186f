/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels and the constants of all: one family after the other. CUDA's stand first, so that
 * their ids are also their places in the CUDA program. A family that only the CPU has is a header
 * of its own, with a list of kernels and one of constants like those of kernel_constants.h. */
#ifndef SP_OPS_KERNEL_LIST_H
#define SP_OPS_KERNEL_LIST_H

#include "ops/elementwise_list.h"
#include "ops/kernel_constants.h"
#include "ops/move_constants.h"
#include "ops/reduce_constants.h"

#define SP_KERNEL_LIST(X)                                                                          \
    SP_CUDA_KERNEL_LIST(X)                                                                         \
    SP_ELEMENTWISE_LIST(X)                                                                         \
    SP_MOVE_KERNEL_LIST(X)                                                                         \
    SP_REDUCE_KERNEL_LIST(X)

#define SP_KERNEL_CONSTANTS_LIST(X)                                                                \
    SP_CONSTANTS_LIST(X)                                                                           \
    SP_ELEMENTWISE_CONSTANTS_LIST(X)                                                               \
    SP_MOVE_CONSTANTS_LIST(X)                                                                      \
    SP_REDUCE_CONSTANTS_LIST(X)

#endif
