/* SPDX-License-Identifier: Apache-2.0 */
/* All kernels and their constants, by family. Each family has its own header, with a list of
 * kernels and one of constants like those of kernel_constants.h. Which of them CUDA has:
 * ops/cuda/cuda_list.h. */
#ifndef SP_OPS_KERNEL_LIST_H
#define SP_OPS_KERNEL_LIST_H

#include "ops/blocked_constants.h"
#include "ops/elementwise_list.h"
#include "ops/fused_constants.h"
#include "ops/kernel_constants.h"
#include "ops/copy_constants.h"
#include "ops/reduce_constants.h"
#include "ops/strided_constants.h"

#define SP_KERNEL_LIST(X)                                                                          \
    SP_BASIC_KERNEL_LIST(X)                                                                        \
    SP_ELEMENTWISE_LIST(X)                                                                         \
    SP_MOVE_KERNEL_LIST(X)                                                                         \
    SP_REDUCE_KERNEL_LIST(X)                                                                       \
    SP_BLOCKED_KERNEL_LIST(X)                                                                      \
    SP_FUSED_KERNEL_LIST(X)                                                                        \
    SP_STRIDED_KERNEL_LIST(X)

#define SP_KERNEL_CONSTANTS_LIST(X)                                                                \
    SP_CONSTANTS_LIST(X)                                                                           \
    SP_ELEMENTWISE_CONSTANTS_LIST(X)                                                               \
    SP_MOVE_CONSTANTS_LIST(X)                                                                      \
    SP_REDUCE_CONSTANTS_LIST(X)                                                                    \
    SP_BLOCKED_CONSTANTS_LIST(X)                                                                   \
    SP_FUSED_CONSTANTS_LIST(X)                                                                     \
    SP_STRIDED_CONSTANTS_LIST(X)

#endif
