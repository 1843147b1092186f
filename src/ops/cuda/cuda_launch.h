/* SPDX-License-Identifier: Apache-2.0 */
/* The launch shape of each CUDA kernel, from its constants. The kernels use grid-stride loops, so
 * any number of elements can be launched. */
#ifndef SP_OPS_CUDA_CUDA_LAUNCH_H
#define SP_OPS_CUDA_CUDA_LAUNCH_H

#include "ops/cuda/cuda_kernels.h"

#define SP_CUDA_LAUNCH_LIST(X)                                                                     \
    X(pack)                                                                                        \
    X(depthwise)                                                                                   \
    X(pool)                                                                                        \
    X(binary)                                                                                      \
    X(flat)                                                                                        \
    X(bytes)                                                                                       \
    X(copy)                                                                                        \
    X(concat)                                                                                      \
    X(pad)                                                                                         \
    X(fill)

#define SP_CUDA_SHAPE_DECLARE(name)                                                                \
    void sp__cuda_shape_##name(const void *constants, sp_launch_shape *out);
SP_CUDA_LAUNCH_LIST(SP_CUDA_SHAPE_DECLARE)
#undef SP_CUDA_SHAPE_DECLARE

void sp__cuda_tiled_gemm(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
void sp__cuda_tiled_conv(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);

#endif
