/* SPDX-License-Identifier: Apache-2.0 */
/* How the CPU cuts dispatches into tiles, from their constants alone (sp_tiling_fn). Plans and
 * lowerings know kernels and sizes of operands; tiles are the table's, which may have others for
 * another instruction set (docs/decisions/0077-tilings.md). Which kernel has which: cpu_list.h. */
#ifndef SP_OPS_CPU_TILING_H
#define SP_OPS_CPU_TILING_H

#include "device/kernel.h"
#include "ops/kernel_list.h"

/* Elements of a tile for kernels of about one operation per element, and for those that evaluate a
 * function: about 20 microseconds on one core. */
#define SP_TILE_ELEMENTS 65536
#define SP_TILE_EVALUATIONS 32768
/* Multiply-adds of a tile. */
#define SP_TILE_PRODUCTS 1048576

/* Tilings by name: X(name, constants), for constants sp_CONSTANTS_constants. `flat` and `evaluated`
 * have any constants that begin with those of sp_flat_constants. */
#define SP_CPU_TILING_LIST(X)                                                                      \
    X(gemm, gemm)                                                                                  \
    X(gemm_any, gemm_any)                                                                          \
    X(attention, attention)                                                                        \
    X(look_up, look_up)                                                                            \
    X(conv, conv)                                                                                  \
    X(depthwise, conv)                                                                             \
    X(conv_3d, conv_3d)                                                                            \
    X(conv_transpose, conv_transpose)                                                              \
    X(max_pool, pool)                                                                              \
    X(max_pool_any, window)                                                                        \
    X(average_pool, window)                                                                        \
    X(conv_blocked, blocked)                                                                       \
    X(conv_pool, conv_pool)                                                                        \
    X(conv_rows, blocked)                                                                          \
    X(depthwise_blocked, blocked)                                                                  \
    X(pool_blocked, blocked)                                                                       \
    X(mean_blocked, channels)                                                                      \
    X(norm_blocked, norm_blocked)                                                                  \
    X(channel_op, channel_op)                                                                      \
    X(channel_chain, channel_chain)                                                                \
    X(channels, channels)                                                                          \
    X(channels_move, channels_move)                                                                \
    X(flat, flat)                                                                                  \
    X(evaluated, flat)                                                                             \
    X(bytes, flat)                                                                                 \
    X(binary, binary)                                                                              \
    X(binary_evaluated, binary)                                                                    \
    X(select, select)                                                                              \
    X(row_affine, row_affine)                                                                      \
    X(reduce, reduce)                                                                              \
    X(axis, axis)                                                                                  \
    X(softmax, axis)                                                                               \
    X(batch_norm, batch_norm)                                                                      \
    X(norm, norm)                                                                                  \
    X(row_norm, row_norm)                                                                          \
    X(lrn, lrn)                                                                                    \
    X(copy, copy)                                                                                  \
    X(concat, concat)                                                                              \
    X(rows, rows)                                                                                  \
    X(pad, pad)                                                                                    \
    X(fill, fill)                                                                                  \
    X(gather, gather)                                                                              \
    X(gather_elements, gather_elements)                                                            \
    X(gather_nd, gather_nd)                                                                        \
    X(scatter_elements, scatter_elements)                                                          \
    X(scatter_nd, scatter_nd)                                                                      \
    X(one_hot, one_hot)                                                                            \
    X(range, range)                                                                                \
    X(diagonal, diagonal)                                                                          \
    X(top_k, top_k)                                                                                \
    X(resize_nearest, resize)                                                                      \
    X(resize, resize)                                                                              \
    X(grid_sample, grid_sample)                                                                    \
    X(recurrent, recurrent)

#define SP_TILING_DECLARE(name, constants)                                                         \
    void sp__tiling_##name(const void *constants, sp_tiling *out);
SP_CPU_TILING_LIST(SP_TILING_DECLARE)
SP_TILING_DECLARE(one, any) /* one tile */
#undef SP_TILING_DECLARE

/* ---- for tilings ---- */

#define SP_TILING_ONE ((sp_tiling){.grid = {1, 1, 1}, .size = {1, 1, 1}})

/* A number that needs more bits becomes UINT32_MAX, which no grid may have (sp__op_lower). */
static inline uint32_t sp_tiling_number(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

/* Tiles of `size` units, at least 1, cover `count`; one tile covers none. */
static inline void sp_tiling_cover(sp_tiling *out, uint32_t dimension, int64_t count, int64_t size)
{
    const uint32_t per_tile = sp_tiling_number((uint64_t)size);
    const uint64_t tiles = count == 0 ? 1 : ((uint64_t)count - 1) / per_tile + 1;
    out->size[dimension] = per_tile;
    out->grid[dimension] = sp_tiling_number(tiles);
}

/* A tile for each of `count` units. */
static inline void sp_tiling_each(sp_tiling *out, uint32_t dimension, int64_t count)
{
    out->size[dimension] = 1;
    out->grid[dimension] = sp_tiling_number((uint64_t)count);
}

/* A grid of one dimension. */
static inline void sp_tiling_line(sp_tiling *out, int64_t count, int64_t size)
{
    *out = SP_TILING_ONE;
    sp_tiling_cover(out, 0, count, size);
}

/* Units of `each` elements that have about `all` elements; at least 1. */
static inline int64_t sp_tiling_share(int64_t all, int64_t each)
{
    return each < all ? all / (each > 0 ? each : 1) : 1;
}

/* Units of a * b * cost multiply-adds per tile; at least 1. */
static inline int64_t sp_tiling_products(int64_t cost, int64_t a, int64_t b)
{
    uint64_t work;
    const bool fits = !__builtin_mul_overflow((uint64_t)a, (uint64_t)b, &work) &&
                      !__builtin_mul_overflow(work, (uint64_t)cost, &work);
    if (!fits || work >= SP_TILE_PRODUCTS) return 1;
    return (int64_t)(SP_TILE_PRODUCTS / (work > 0 ? work : 1));
}

#endif
