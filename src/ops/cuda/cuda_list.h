/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that CUDA has, by program: X(kernel, constants, launch). The kernel has the constants
 * sp_CONSTANTS_constants, and its launch is sp__cuda_shape_LAUNCH (cuda_launch.h), for the tiled
 * kernels sp__cuda_tiled_LAUNCH. Macros only, for C and C++. */
#ifndef SP_OPS_CUDA_CUDA_LIST_H
#define SP_OPS_CUDA_CUDA_LIST_H

/* With dynamic shared memory. They are in the program `core`, as are the variants
 * (ops/cuda/arch/tiles.h). */
#define SP_CUDA_TILED_LIST(X)                                                                      \
    X(gemm_f32, gemm, gemm)                                                                        \
    X(conv_f32, conv, conv)

/* clang-format off */
#define SP_CUDA_ARITHMETIC(X, type)                                                                \
    X(add_##type, binary, binary) X(sub_##type, binary, binary)                                    \
    X(mul_##type, binary, binary) X(div_##type, binary, binary)

#define SP_CUDA_CORE_LIST(X)                                                                       \
    X(gemm_pack_f32, gemm_pack, pack)                                                              \
    X(conv_depthwise_f32, conv, depthwise)                                                         \
    X(max_pool_f32, pool, pool)                                                                    \
    SP_CUDA_ARITHMETIC(X, f32)                                                                     \
    SP_CUDA_ARITHMETIC(X, i32)                                                                     \
    SP_CUDA_ARITHMETIC(X, i64)                                                                     \
    X(relu_f32, flat, flat) X(sigmoid_f32, flat, flat) X(tanh_f32, flat, flat)                     \
    X(exp_f32, flat, flat)                                                                         \
    X(copy_bytes, flat, bytes)                                                                     \
    X(copy_strided, copy, copy)                                                                    \
    X(concat, concat, concat) X(split, concat, concat)                                             \
    X(pad, pad, pad)                                                                               \
    X(fill, fill, fill)
/* clang-format on */

#define SP_CUDA_CORE_KERNELS(X)                                                                    \
    SP_CUDA_TILED_LIST(X)                                                                          \
    SP_CUDA_CORE_LIST(X)

/* All programs: P(name, kernels). The number of a kernel in its program is its index. */
#define SP_CUDA_PROGRAM_LIST(P) P(core, SP_CUDA_CORE_KERNELS)

#define SP_CUDA_KERNEL_LIST(X) SP_CUDA_CORE_KERNELS(X)

#endif
