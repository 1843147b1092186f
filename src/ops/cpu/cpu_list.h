/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of the CPU, by family: X(kernel, tiling). The kernel's body is SP_KERNEL(kernel), its
 * tiling sp__tiling_TILING (ops/cpu/tiling.h). Macros only. */
#ifndef SP_OPS_CPU_CPU_LIST_H
#define SP_OPS_CPU_CPU_LIST_H

/* clang-format off */
#define SP_CPU_GEMM_KERNELS(X)                                                                     \
    X(gemm_f32, gemm) X(gemm_strided_f32, gemm)                                                    \
    X(gemm_narrow_tf32, gemm) X(gemm_narrow_f16, gemm) X(gemm_narrow_bf16, gemm)                   \
    X(gemm_packed_tf32, gemm) X(gemm_packed_f16, gemm) X(gemm_packed_bf16, gemm)                   \
    X(gemm_pack_f32, one)                                                                          \
    X(narrow_pack_tf32, one) X(narrow_pack_f16, one) X(narrow_pack_bf16, one)                      \
    X(gemm_any_f64, gemm_any) X(gemm_any_f16, gemm_any) X(gemm_any_bf16, gemm_any)                 \
    X(gemm_any_i32, gemm_any) X(gemm_any_i64, gemm_any)                                            \
    X(gemm_any_u32, gemm_any) X(gemm_any_u64, gemm_any)                                            \
    X(attention_f32, attention)                                                                    \
    X(look_up_f32, look_up) X(look_up_pack_f32, one)

#define SP_CPU_CONV_KERNELS(X)                                                                     \
    X(conv_f32, conv) X(conv_depthwise_f32, depthwise)                                             \
    X(conv_narrow_tf32, conv) X(conv_narrow_f16, conv) X(conv_narrow_bf16, conv)                   \
    X(conv_3d_f32, conv_3d) X(conv_any_f64, conv_3d)                                               \
    X(conv_any_f16, conv_3d) X(conv_any_bf16, conv_3d)                                             \
    X(conv_transpose_f32, conv_transpose)                                                          \
    X(max_pool_f32, max_pool) X(average_pool_f32, average_pool)                                    \
    X(max_pool_any_f32, max_pool_any) X(max_pool_any_f64, max_pool_any)                            \
    X(max_pool_any_u8, max_pool_any) X(max_pool_any_i8, max_pool_any)

#define SP_CPU_BLOCKED_KERNELS(X)                                                                  \
    X(conv_blocked_f32, conv_blocked) X(conv_pool_blocked_f32, conv_pool)                          \
    X(depthwise_blocked_f32, depthwise_blocked) X(conv_rows_f32, conv_rows)                        \
    X(max_pool_blocked_f32, pool_blocked) X(average_pool_blocked_f32, pool_blocked)                \
    X(mean_blocked_f32, mean_blocked)                                                              \
    X(norm_blocked_f32, norm_blocked)                                                              \
    X(channel_op_f32, channel_op) X(channel_chain_f32, channel_chain)                              \
    X(channels_block, channels) X(channels_unblock, channels)                                      \
    X(channels_move, channels_move) X(channels_pack_f32, one)

/* ---- elementwise ---- */

#define SP_CPU_ARITHMETIC(X, type)                                                                 \
    X(add_##type, binary) X(sub_##type, binary) X(mul_##type, binary) X(div_##type, binary)

#define SP_CPU_OF_FLOAT(X, type)                                                                   \
    SP_CPU_ARITHMETIC(X, type)                                                                     \
    X(max_##type, binary) X(min_##type, binary) X(fmod_##type, binary) X(prelu_##type, binary)     \
    X(pow_##type, binary_evaluated)                                                                \
    X(equal_##type, binary) X(less_##type, binary) X(less_or_equal_##type, binary)                 \
    X(relu_##type, flat) X(neg_##type, flat) X(abs_##type, flat) X(sign_##type, flat)              \
    X(sqrt_##type, flat) X(reciprocal_##type, flat)                                                \
    X(ceil_##type, flat) X(floor_##type, flat) X(round_##type, flat)                               \
    X(softsign_##type, flat) X(hard_swish_##type, flat)                                            \
    X(exp_##type, evaluated) X(log_##type, evaluated)                                              \
    X(leaky_relu_##type, flat) X(hard_sigmoid_##type, flat) X(thresholded_relu_##type, flat)       \
    X(clip_##type, flat) X(divide_##type, flat) X(is_nan_##type, flat) X(is_inf_##type, flat)      \
    X(cast_##type, flat)

#define SP_CPU_OF_INTEGER(X, type)                                                                 \
    X(div_##type, binary) X(max_##type, binary) X(min_##type, binary) X(mod_##type, binary)        \
    X(less_##type, binary) X(less_or_equal_##type, binary)                                         \
    X(sign_##type, flat) X(cast_##type, flat)

/* add, sub, mul and equal have the signed name. */
#define SP_CPU_OF_SIGNED(X, type)                                                                  \
    SP_CPU_OF_INTEGER(X, type)                                                                     \
    X(add_##type, binary) X(sub_##type, binary) X(mul_##type, binary)                              \
    X(fmod_##type, binary) X(equal_##type, binary)                                                 \
    X(neg_##type, flat) X(abs_##type, flat) X(relu_##type, flat)

#define SP_CPU_ELEMENTWISE_KERNELS(X)                                                              \
    SP_CPU_OF_FLOAT(X, f32) SP_CPU_OF_FLOAT(X, f64)                                                \
    SP_CPU_OF_SIGNED(X, i8) SP_CPU_OF_SIGNED(X, i16)                                               \
    SP_CPU_OF_SIGNED(X, i32) SP_CPU_OF_SIGNED(X, i64)                                              \
    SP_CPU_OF_INTEGER(X, u8) SP_CPU_OF_INTEGER(X, u16)                                             \
    SP_CPU_OF_INTEGER(X, u32) SP_CPU_OF_INTEGER(X, u64)                                            \
    X(pow_i64, binary_evaluated) X(pow_u64, binary_evaluated)                                      \
    X(prelu_i32, binary) X(prelu_i64, binary)                                                      \
    X(and_bool, binary) X(or_bool, binary) X(xor_bool, binary) X(equal_bool, binary)               \
    X(not_bool, flat)                                                                              \
    X(cast_f16, flat) X(cast_bf16, flat) X(cast_bool, flat)                                        \
    X(where_8, select) X(where_16, select) X(where_32, select) X(where_64, select)                 \
    X(sigmoid_f32, evaluated) X(tanh_f32, evaluated) X(erf_f32, evaluated)                         \
    X(softplus_f32, evaluated) X(mish_f32, evaluated)                                              \
    X(gelu_f32, evaluated) X(gelu_tanh_f32, evaluated)                                             \
    X(elu_f32, evaluated) X(selu_f32, evaluated) X(celu_f32, evaluated)                            \
    X(sin_f32, evaluated) X(cos_f32, evaluated) X(tan_f32, evaluated)                              \
    X(asin_f32, evaluated) X(acos_f32, evaluated) X(atan_f32, evaluated)                           \
    X(sinh_f32, evaluated) X(cosh_f32, evaluated)                                                  \
    X(asinh_f32, evaluated) X(acosh_f32, evaluated) X(atanh_f32, evaluated)                        \
    X(erf_gate_f32, evaluated) X(clip_gate_f32, flat) X(hard_sigmoid_gate_f32, flat)               \
    X(softplus_gate_f32, evaluated) X(tanh_gate_f32, evaluated)                                    \
    X(row_affine_f32, row_affine)

/* ---- the others ---- */

#define SP_CPU_REDUCE_KERNELS(X)                                                                   \
    X(reduce_f32, reduce) X(reduce_f64, reduce) X(reduce_f16, reduce)                              \
    X(reduce_i32, reduce) X(reduce_i64, reduce) X(reduce_i8, reduce) X(reduce_u8, reduce)          \
    X(arg_f32, axis) X(arg_f64, axis) X(arg_i32, axis) X(arg_i64, axis)                            \
    X(arg_i8, axis) X(arg_u8, axis) X(hardmax_f32, axis) X(lp_norm_f32, axis)                      \
    X(cumsum_f32, axis) X(cumsum_f64, axis) X(cumsum_i32, axis) X(cumsum_i64, axis)                \
    X(softmax_f32, softmax) X(softmax_f64, softmax) X(softmax_f16, softmax)                        \
    X(batch_norm_f32, batch_norm) X(blend_f32, one) X(norm_f32, norm)                              \
    X(row_norm_f32, row_norm) X(lrn_f32, lrn) X(standardize_f32, binary)

#define SP_CPU_LAYOUT_KERNELS(X)                                                                   \
    X(copy_bytes, bytes) X(copy_strided, copy) X(concat, concat) X(split, concat)                  \
    X(move_rows, rows) X(signal_done, one)                                                         \
    X(pad, pad) X(fill, fill)                                                                      \
    X(gather, gather) X(gather_elements, gather_elements) X(gather_nd, gather_nd)                  \
    X(scatter_elements, scatter_elements) X(scatter_nd, scatter_nd)                                \
    X(one_hot, one_hot) X(range, range) X(trilu, diagonal) X(eye, diagonal)                        \
    X(non_zero, one) X(top_k, top_k)                                                               \
    X(resize_nearest, resize_nearest) X(resize_f32, resize) X(resize_f64, resize)                  \
    X(grid_sample_f32, grid_sample)

#define SP_CPU_RECURRENT_KERNELS(X)                                                                \
    X(lstm_f32, recurrent) X(gru_f32, recurrent) X(rnn_f32, recurrent)
/* clang-format on */

/* Each kernel of SP_KERNEL_LIST once. */
#define SP_CPU_KERNEL_LIST(X)                                                                      \
    SP_CPU_GEMM_KERNELS(X)                                                                         \
    SP_CPU_CONV_KERNELS(X)                                                                         \
    SP_CPU_BLOCKED_KERNELS(X)                                                                      \
    SP_CPU_ELEMENTWISE_KERNELS(X)                                                                  \
    SP_CPU_REDUCE_KERNELS(X)                                                                       \
    SP_CPU_LAYOUT_KERNELS(X)                                                                       \
    SP_CPU_RECURRENT_KERNELS(X)

#endif
