/* SPDX-License-Identifier: Apache-2.0 */
/* Grids of launches. */
#ifndef SP_OPS_CUDA_GRID_H
#define SP_OPS_CUDA_GRID_H

#include "ops/cuda/cuda_launch.h"

/* The grid limit of every GPU along x; along y and z it is SP_CUDA_MAX_OUTER_BLOCKS. */
#define SP_CUDA_MAX_BLOCKS INT64_C(0x7fffffff)

static inline uint32_t sp__cuda_clamp_blocks(int64_t count, int64_t limit)
{
    return (uint32_t)(count < limit ? count : limit);
}

static inline void sp__cuda_set_grid(int64_t x, int64_t y, int64_t z, sp_launch_shape *out)
{
    *out = (sp_launch_shape){.grid = {sp__cuda_clamp_blocks(x, SP_CUDA_MAX_BLOCKS),
                                      sp__cuda_clamp_blocks(y, SP_CUDA_MAX_OUTER_BLOCKS),
                                      sp__cuda_clamp_blocks(z, SP_CUDA_MAX_OUTER_BLOCKS)},
                             .block = {SP_CUDA_THREADS, 1, 1}};
}

static inline void sp__cuda_set_threads(int64_t threads, sp_launch_shape *out)
{
    sp__cuda_set_grid(sp_cuda_tiles(threads, SP_CUDA_THREADS), 1, 1, out);
}

#endif
