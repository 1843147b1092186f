/* SPDX-License-Identifier: Apache-2.0 */
/* The launch shape of each CUDA kernel, from its constants. The kernels use grid-stride loops, so
 * any number of elements can be launched. */
#ifndef SP_OPS_CUDA_CUDA_LAUNCH_H
#define SP_OPS_CUDA_CUDA_LAUNCH_H

#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/tile_choice.h"

#define SP_CUDA_LAUNCH_LIST(X)                                                                     \
    X(pack)                                                                                        \
    X(depthwise)                                                                                   \
    X(pool)                                                                                        \
    X(binary)                                                                                      \
    X(flat)                                                                                        \
    X(bytes)                                                                                       \
    X(copy)                                                                                        \
    X(concat)                                                                                      \
    X(rows)                                                                                        \
    X(one)                                                                                         \
    X(pad)                                                                                         \
    X(fill)                                                                                        \
    X(function)                                                                                    \
    X(gate)                                                                                        \
    X(select)                                                                                      \
    X(cast)                                                                                        \
    X(reduce)                                                                                      \
    X(axis)                                                                                        \
    X(softmax)                                                                                     \
    X(cumsum)                                                                                      \
    X(norm)                                                                                        \
    X(row_norm)                                                                                    \
    X(row_affine)                                                                                  \
    X(batch_norm)                                                                                  \
    X(blend)                                                                                       \
    X(standardize)                                                                                 \
    X(lrn)                                                                                         \
    X(gather)                                                                                      \
    X(gather_elements)                                                                             \
    X(gather_nd)                                                                                   \
    X(scatter_elements)                                                                            \
    X(scatter_nd)                                                                                  \
    X(one_hot)                                                                                     \
    X(range)                                                                                       \
    X(diagonal)                                                                                    \
    X(non_zero)                                                                                    \
    X(top_k)                                                                                       \
    X(look_up)                                                                                     \
    X(look_up_pack)                                                                                \
    X(resize)                                                                                      \
    X(grid_sample)                                                                                 \
    X(window)                                                                                      \
    X(conv_3d)                                                                                     \
    X(conv_transpose)                                                                              \
    X(narrow_pack_tf32)                                                                            \
    X(narrow_pack_f16)                                                                             \
    X(gemm_any)

#define SP_CUDA_SHAPE_DECLARE(name)                                                                \
    void sp__cuda_shape_##name(const void *constants, sp_launch_shape *out);
SP_CUDA_LAUNCH_LIST(SP_CUDA_SHAPE_DECLARE)
#undef SP_CUDA_SHAPE_DECLARE

/* Launches with a tile of the caller's; a convolution has squares if sp_cuda_conv_has_squares. */
void sp__cuda_launch_gemm(const sp_gemm_constants *k, const sp_cuda_tile *tile,
                          sp_launch_shape *out);
void sp__cuda_launch_conv(const sp_conv_constants *k, const sp_cuda_tile *tile,
                          sp_launch_shape *out);

/* Attention with rounded products, of blocks of so many warps; at once only where
 * sp_cuda_rounded_keys_at_once. */
void sp__cuda_launch_rounded_attention(const sp_attention_constants *k, int64_t warps,
                                       bool is_at_once, sp_launch_shape *out);

/* The tiles of narrow products, and of those with both operands packed, by their index in
 * SP_CUDA_NARROW_TILE_LIST and SP_CUDA_PACKED_TILE_LIST. */
#define SP_CUDA_NARROW_TILES 4
#define SP_CUDA_PACKED_TILES 3
#define SP_CUDA_NARROW_LAUNCH_LIST(X)                                                              \
    X(narrow_tf32)                                                                                 \
    X(narrow_f16)                                                                                  \
    X(narrow_bf16)                                                                                 \
    X(packed_tf32)                                                                                 \
    X(packed_f16)                                                                                  \
    X(packed_bf16)
#define SP_CUDA_NARROW_DECLARE(name)                                                               \
    void sp__cuda_launch_##name(const sp_gemm_constants *k, uint32_t tile, sp_launch_shape *out);  \
    void sp__cuda_tiled_##name(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
SP_CUDA_NARROW_LAUNCH_LIST(SP_CUDA_NARROW_DECLARE)
#undef SP_CUDA_NARROW_DECLARE

/* The last packed tile where warpgroups compute it: with so many columns, 128 or 192, and which of
 * them is expected to be faster. */
void sp__cuda_launch_groups(const sp_gemm_constants *k, int64_t columns, sp_launch_shape *out);
int64_t sp__cuda_group_columns(const sp_gemm_constants *k);

/* Of narrow convolutions: by the index in SP_CUDA_CONV_TILE_LIST. */
#define SP_CUDA_CONV_TILES 4
#define SP_CUDA_CONV_LAUNCH_LIST(X) X(conv_tf32) X(conv_f16) X(conv_bf16)
#define SP_CUDA_CONV_DECLARE(name)                                                                 \
    void sp__cuda_launch_##name(const sp_conv_constants *k, uint32_t tile, sp_launch_shape *out);  \
    void sp__cuda_tiled_##name(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
SP_CUDA_CONV_LAUNCH_LIST(SP_CUDA_CONV_DECLARE)
#undef SP_CUDA_CONV_DECLARE

void sp__cuda_tiled_gemm(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
void sp__cuda_tiled_conv(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
void sp__cuda_tiled_attention(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);
void sp__cuda_tiled_recurrent(const void *constants, uint32_t shared_bytes, sp_launch_shape *out);

#endif
