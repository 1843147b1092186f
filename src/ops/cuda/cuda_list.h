/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that CUDA has, by program: X(kernel, constants, launch). The kernel has the constants
 * sp_CONSTANTS_constants, and its launch is sp__cuda_shape_LAUNCH (cuda_launch.h), for the tiled
 * kernels sp__cuda_tiled_LAUNCH. Macros only, for C and C++. */
#ifndef SP_OPS_CUDA_CUDA_LIST_H
#define SP_OPS_CUDA_CUDA_LIST_H

/* With dynamic shared memory, as attention; these are in the program `core`, as are the variants
 * (ops/cuda/arch/tiles.h). */
#define SP_CUDA_TILED_LIST(X)                                                                      \
    X(gemm_f32, gemm, gemm)                                                                        \
    X(conv_f32, conv, conv)

/* clang-format off */
#define SP_CUDA_ARITHMETIC(X, type)                                                                \
    X(add_##type, binary, binary) X(sub_##type, binary, binary)                                    \
    X(mul_##type, binary, binary) X(div_##type, binary, binary)

#define SP_CUDA_CORE_LIST(X)                                                                       \
    X(gemm_pack_f32, pack, pack)                                                                   \
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
    X(move_rows, rows, rows)                                                                       \
    X(signal_done, flat, one)                                                                      \
    X(pad, pad, pad)                                                                               \
    X(fill, fill, fill)

/* What both float types have. */
#define SP_CUDA_OF_FLOAT(X, type)                                                                  \
    X(neg_##type, flat, flat) X(abs_##type, flat, flat) X(sign_##type, flat, flat)                 \
    X(sqrt_##type, flat, flat) X(reciprocal_##type, flat, flat) X(ceil_##type, flat, flat)         \
    X(floor_##type, flat, flat) X(round_##type, flat, flat) X(log_##type, flat, flat)              \
    X(softsign_##type, flat, flat) X(hard_swish_##type, flat, flat)                                \
    X(leaky_relu_##type, function, function) X(hard_sigmoid_##type, function, function)            \
    X(thresholded_relu_##type, function, function) X(clip_##type, function, function)              \
    X(divide_##type, function, function)                                                           \
    X(is_nan_##type, function, function) X(is_inf_##type, function, function)                      \
    X(max_##type, binary, binary) X(min_##type, binary, binary) X(prelu_##type, binary, binary)    \
    X(pow_##type, binary, binary) X(fmod_##type, binary, binary)                                   \
    X(equal_##type, binary, binary) X(less_##type, binary, binary)                                 \
    X(less_or_equal_##type, binary, binary)

#define SP_CUDA_MATH_KERNELS(X)                                                                    \
    SP_CUDA_OF_FLOAT(X, f32)                                                                       \
    X(erf_f32, flat, flat) X(softplus_f32, flat, flat) X(mish_f32, flat, flat)                     \
    X(gelu_f32, flat, flat) X(gelu_tanh_f32, flat, flat)                                           \
    X(elu_f32, function, function) X(selu_f32, function, function)                                 \
    X(celu_f32, function, function)                                                                \
    X(and_bool, binary, binary) X(or_bool, binary, binary) X(xor_bool, binary, binary)             \
    X(equal_bool, binary, binary) X(not_bool, flat, flat)                                          \
    X(where_8, select, select) X(where_16, select, select) X(where_32, select, select)             \
    X(where_64, select, select)                                                                    \
    X(erf_gate_f32, gate, gate) X(clip_gate_f32, gate, gate)                                       \
    X(hard_sigmoid_gate_f32, gate, gate) X(softplus_gate_f32, gate, gate)                          \
    X(tanh_gate_f32, gate, gate)

#define SP_CUDA_TRIG_KERNELS(X)                                                                    \
    X(sin_f32, flat, flat) X(cos_f32, flat, flat) X(tan_f32, flat, flat)                           \
    X(asin_f32, flat, flat) X(acos_f32, flat, flat) X(atan_f32, flat, flat)                        \
    X(sinh_f32, flat, flat) X(cosh_f32, flat, flat) X(asinh_f32, flat, flat)                       \
    X(acosh_f32, flat, flat) X(atanh_f32, flat, flat)

#define SP_CUDA_DOUBLE_KERNELS(X)                                                                  \
    SP_CUDA_OF_FLOAT(X, f64)                                                                       \
    SP_CUDA_ARITHMETIC(X, f64)                                                                     \
    X(exp_f64, flat, flat) X(relu_f64, flat, flat)

#define SP_CUDA_OF_INTEGER(X, type)                                                                \
    X(max_##type, binary, binary) X(min_##type, binary, binary) X(mod_##type, binary, binary)      \
    X(less_##type, binary, binary) X(less_or_equal_##type, binary, binary)                         \
    X(sign_##type, flat, flat)

#define SP_CUDA_OF_SIGNED(X, type)                                                                 \
    SP_CUDA_OF_INTEGER(X, type)                                                                    \
    X(fmod_##type, binary, binary) X(equal_##type, binary, binary)                                 \
    X(neg_##type, flat, flat) X(abs_##type, flat, flat) X(relu_##type, flat, flat)

#define SP_CUDA_OF_UNSIGNED(X, type)                                                               \
    SP_CUDA_OF_INTEGER(X, type)                                                                    \
    X(div_##type, binary, binary)

#define SP_CUDA_INTEGER_KERNELS(X)                                                                 \
    SP_CUDA_OF_SIGNED(X, i8) SP_CUDA_OF_SIGNED(X, i16)                                             \
    SP_CUDA_OF_SIGNED(X, i32) SP_CUDA_OF_SIGNED(X, i64)                                            \
    SP_CUDA_OF_UNSIGNED(X, u8) SP_CUDA_OF_UNSIGNED(X, u16)                                         \
    SP_CUDA_OF_UNSIGNED(X, u32) SP_CUDA_OF_UNSIGNED(X, u64)                                        \
    SP_CUDA_ARITHMETIC(X, i8) SP_CUDA_ARITHMETIC(X, i16)                                           \
    X(pow_i64, binary, binary) X(pow_u64, binary, binary)                                          \
    X(prelu_i32, binary, binary) X(prelu_i64, binary, binary)

#define SP_CUDA_CAST_KERNELS(X)                                                                    \
    X(cast_f32, cast, cast) X(cast_f64, cast, cast) X(cast_f16, cast, cast)                        \
    X(cast_bf16, cast, cast) X(cast_i8, cast, cast) X(cast_i16, cast, cast)                        \
    X(cast_i32, cast, cast) X(cast_i64, cast, cast) X(cast_u8, cast, cast)                         \
    X(cast_u16, cast, cast) X(cast_u32, cast, cast) X(cast_u64, cast, cast)                        \
    X(cast_bool, cast, cast)

#define SP_CUDA_REDUCE_KERNELS(X)                                                                  \
    X(reduce_f32, reduce, reduce) X(reduce_f64, reduce, reduce) X(reduce_f16, reduce, reduce)      \
    X(reduce_i32, reduce, reduce) X(reduce_i64, reduce, reduce) X(reduce_i8, reduce, reduce)       \
    X(reduce_u8, reduce, reduce)                                                                   \
    X(arg_f32, axis, axis) X(arg_f64, axis, axis) X(arg_i32, axis, axis) X(arg_i64, axis, axis)    \
    X(arg_i8, axis, axis) X(arg_u8, axis, axis) X(hardmax_f32, axis, axis)                         \
    X(cumsum_f32, axis, cumsum) X(cumsum_f64, axis, cumsum) X(cumsum_i32, axis, cumsum)            \
    X(cumsum_i64, axis, cumsum)

#define SP_CUDA_NORM_KERNELS(X)                                                                    \
    X(softmax_f32, axis, softmax) X(softmax_f64, axis, axis) X(softmax_f16, axis, axis)               \
    X(lp_norm_f32, axis, axis)                                                                     \
    X(norm_f32, norm, norm)                                                                        \
    X(row_norm_f32, row_norm, row_norm)                                                            \
    X(row_affine_f32, row_affine, row_affine)                                                      \
    X(batch_norm_f32, batch_norm, batch_norm)                                                      \
    X(blend_f32, blend, blend)                                                                     \
    X(standardize_f32, binary, standardize)                                                        \
    X(lrn_f32, lrn, lrn)

#define SP_CUDA_MOVE_KERNELS(X)                                                                    \
    X(gather, gather, gather) X(gather_elements, gather_elements, gather_elements)                 \
    X(gather_nd, gather_nd, gather_nd)                                                             \
    X(scatter_elements, scatter_elements, scatter_elements)                                        \
    X(scatter_nd, scatter_nd, scatter_nd)                                                          \
    X(one_hot, one_hot, one_hot) X(range, range, range)                                            \
    X(trilu, diagonal, diagonal) X(eye, diagonal, diagonal)                                        \
    X(non_zero, non_zero, non_zero)                                                                \
    X(top_k, top_k, top_k)                                                                         \
    X(look_up_f32, look_up, look_up)                                                               \
    X(look_up_pack_f32, pack, look_up_pack)                                                        \
    X(resize_nearest, resize, resize) X(resize_f32, resize, resize) X(resize_f64, resize, resize)   \
    X(grid_sample_f32, grid_sample, grid_sample)

#define SP_CUDA_WINDOW_KERNELS(X)                                                                  \
    X(average_pool_f32, window, window)                                                            \
    X(max_pool_any_f32, window, window) X(max_pool_any_f64, window, window)                        \
    X(max_pool_any_u8, window, window) X(max_pool_any_i8, window, window)                          \
    X(conv_3d_f32, conv_3d, conv_3d) X(conv_any_f64, conv_3d, conv_3d)                             \
    X(conv_any_f16, conv_3d, conv_3d) X(conv_any_bf16, conv_3d, conv_3d)                           \
    X(conv_transpose_f32, conv_transpose, conv_transpose)

#define SP_CUDA_PRODUCT_KERNELS(X)                                                                 \
    X(gemm_any_f64, gemm_any, gemm_any) X(gemm_any_f16, gemm_any, gemm_any)                        \
    X(gemm_any_bf16, gemm_any, gemm_any) X(gemm_any_i32, gemm_any, gemm_any)                       \
    X(gemm_any_i64, gemm_any, gemm_any) X(gemm_any_u32, gemm_any, gemm_any)                        \
    X(gemm_any_u64, gemm_any, gemm_any)

/* With dynamic shared memory, but for the packings. */
#define SP_CUDA_NARROW_LIST(X)                                                                     \
    X(gemm_narrow_tf32, gemm, narrow_tf32) X(gemm_narrow_f16, gemm, narrow_f16)                    \
    X(gemm_narrow_bf16, gemm, narrow_bf16)                                                         \
    X(gemm_packed_tf32, gemm, packed_tf32) X(gemm_packed_f16, gemm, packed_f16)                    \
    X(gemm_packed_bf16, gemm, packed_bf16)                                                         \
    X(conv_narrow_tf32, conv, conv_tf32) X(conv_narrow_f16, conv, conv_f16)                        \
    X(conv_narrow_bf16, conv, conv_bf16)
#define SP_CUDA_NARROW_PACK_LIST(X)                                                                \
    X(narrow_pack_tf32, pack, narrow_pack_tf32) X(narrow_pack_f16, pack, narrow_pack_f16)          \
    X(narrow_pack_bf16, pack, narrow_pack_f16)

#define SP_CUDA_RECURRENT_KERNELS(X)                                                               \
    X(lstm_f32, recurrent, recurrent) X(gru_f32, recurrent, recurrent)                             \
    X(rnn_f32, recurrent, recurrent)

/* With dynamic shared memory. */
#define SP_CUDA_ATTENTION_KERNELS(X)                                                               \
    X(attention_f32, attention, attention)
/* clang-format on */

#define SP_CUDA_CORE_KERNELS(X)                                                                    \
    SP_CUDA_TILED_LIST(X)                                                                          \
    SP_CUDA_CORE_LIST(X)

#define SP_CUDA_TENSOR_KERNELS(X)                                                                  \
    SP_CUDA_NARROW_LIST(X)                                                                         \
    SP_CUDA_NARROW_PACK_LIST(X)

/* Those that report: X(kernel). */
#define SP_CUDA_REPORTING_LIST(X)                                                                  \
    X(gather)                                                                                      \
    X(gather_elements)                                                                             \
    X(gather_nd)                                                                                   \
    X(scatter_elements)                                                                            \
    X(scatter_nd)                                                                                  \
    X(lstm_f32)                                                                                    \
    X(gru_f32)                                                                                     \
    X(rnn_f32)

/* All programs: P(name, kernels). The number of a kernel in its program is its index. */
#define SP_CUDA_PROGRAM_LIST(P)                                                                    \
    P(core, SP_CUDA_CORE_KERNELS)                                                                  \
    P(math, SP_CUDA_MATH_KERNELS)                                                                  \
    P(trig, SP_CUDA_TRIG_KERNELS)                                                                  \
    P(double, SP_CUDA_DOUBLE_KERNELS)                                                              \
    P(integer, SP_CUDA_INTEGER_KERNELS)                                                            \
    P(cast, SP_CUDA_CAST_KERNELS)                                                                  \
    P(reduce, SP_CUDA_REDUCE_KERNELS)                                                              \
    P(norm, SP_CUDA_NORM_KERNELS)                                                                  \
    P(move, SP_CUDA_MOVE_KERNELS)                                                                  \
    P(window, SP_CUDA_WINDOW_KERNELS)                                                              \
    P(product, SP_CUDA_PRODUCT_KERNELS)                                                            \
    P(tensor, SP_CUDA_TENSOR_KERNELS)                                                              \
    P(recurrent, SP_CUDA_RECURRENT_KERNELS)                                                        \
    P(attention, SP_CUDA_ATTENTION_KERNELS)

#define SP_CUDA_KERNEL_LIST(X)                                                                     \
    SP_CUDA_CORE_KERNELS(X)                                                                        \
    SP_CUDA_MATH_KERNELS(X)                                                                        \
    SP_CUDA_TRIG_KERNELS(X)                                                                        \
    SP_CUDA_DOUBLE_KERNELS(X)                                                                      \
    SP_CUDA_INTEGER_KERNELS(X)                                                                     \
    SP_CUDA_CAST_KERNELS(X)                                                                        \
    SP_CUDA_REDUCE_KERNELS(X)                                                                      \
    SP_CUDA_NORM_KERNELS(X)                                                                        \
    SP_CUDA_MOVE_KERNELS(X)                                                                        \
    SP_CUDA_WINDOW_KERNELS(X)                                                                      \
    SP_CUDA_PRODUCT_KERNELS(X)                                                                     \
    SP_CUDA_TENSOR_KERNELS(X)                                                                      \
    SP_CUDA_RECURRENT_KERNELS(X)                                                                   \
    SP_CUDA_ATTENTION_KERNELS(X)

#endif
