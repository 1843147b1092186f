/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the registry's rows, by family; referenced only by registry.c. */
#ifndef SP_OPS_OPS_H
#define SP_OPS_OPS_H

#include "ops/lowering.h"
#include "ops/rows.h"
#include "tensor/layout.h"

/* schema/math/binary.c */
sp_status sp__binary_infer(sp_op_call *call);
sp_status sp__comparison_infer(sp_op_call *call);
sp_status sp__variadic_infer(sp_op_call *call);
sp_status sp__prelu_infer(sp_op_call *call);
sp_status sp__add_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sub_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__mul_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__div_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__equal_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__less_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__less_or_equal_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__greater_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__greater_or_equal_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__and_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__or_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__xor_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__mod_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__prelu_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__prelu_rows(const sp_rows_call *call);
sp_status sp__pow_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__max_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__min_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sum_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__mean_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/math/unary.c */
sp_status sp__predicate_infer(sp_op_call *call);
sp_status sp__gelu_infer(sp_op_call *call);
sp_status sp__clip_infer(sp_op_call *call);
sp_status sp__relu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__neg_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sign_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sqrt_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reciprocal_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__ceil_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__floor_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__round_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__softsign_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__hard_swish_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__not_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__exp_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__log_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sigmoid_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__tanh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__erf_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sin_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__cos_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__tan_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__asin_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__acos_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__atan_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__sinh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__cosh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__asinh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__acosh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__atanh_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__softplus_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__mish_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__abs_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__gelu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__leaky_relu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__hard_sigmoid_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__thresholded_relu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__elu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__selu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__celu_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__is_nan_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__is_inf_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__clip_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/math/select.c */
sp_status sp__where_infer(sp_op_call *call);
sp_status sp__expand_infer(sp_op_call *call);
sp_status sp__cast_infer(sp_op_call *call);
sp_status sp__cast_like_infer(sp_op_call *call);
sp_status sp__dropout_infer(sp_op_call *call);
sp_status sp__where_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__expand_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__cast_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__dropout_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__expand_rows(const sp_rows_call *call);
const char *sp__cast_like_rows(const sp_rows_call *call);

/* schema/math/einsum.c */
sp_status sp__einsum_infer(sp_op_call *call);
sp_status sp__einsum_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__einsum_rows(const sp_rows_call *call);

/* schema/math/gemm.c */
sp_status sp__gemm_infer(sp_op_call *call);
sp_status sp__gemm_lower(const sp_op_call *call, sp_lowering *lowering);
void sp__gemm_pack(const sp_op_call *call, uint32_t input, sp_pack *out);
sp_status sp__matmul_infer(sp_op_call *call);
sp_status sp__matmul_lower(const sp_op_call *call, sp_lowering *lowering);
void sp__matmul_pack(const sp_op_call *call, uint32_t input, sp_pack *out);
/* The kernel of a type other than f32, 0 of one that has none. */
sp_kernel_id sp__gemm_any_kernel(sp_dtype dtype);
/* Products of the batch. */
static inline int64_t sp__gemm_batch(const sp_gemm_constants *k)
{
    int64_t batch = 1;
    for (uint32_t i = 0; i < k->batch_rank; i++) batch *= k->batch_dims[i];
    return batch;
}
const char *sp__gemm_rows(const sp_rows_call *call);
const char *sp__matmul_rows(const sp_rows_call *call);

/* schema/nn/conv.c */
sp_status sp__conv_infer(sp_op_call *call);
sp_status sp__conv_lower(const sp_op_call *call, sp_lowering *lowering);
void sp__conv_pack(const sp_op_call *call, uint32_t input, sp_pack *out);

/* schema/math/narrow.c: products on tensor cores (docs/decisions/0072) */
typedef struct sp_narrow_kernels {
    sp_kernel_id product, conv;
    sp_kernel_id of_packed; /* the product, where the left operand is packed too */
} sp_narrow_kernels;
/* Is the call a product or convolution that is narrow, if its weights are constant? */
bool sp__may_be_narrow(const sp_op_call *call);
/* Of such a call: the kernels of the type of its operands, which is that of a file's f16 and bf16.
 */
const sp_narrow_kernels *sp__narrow_kernels(const sp_op_call *call);
/* To what a MatMul rounds its operands where its right one is no packed constant, with which it is
 * narrow (docs/decisions/0089). */
sp_rounding sp__product_rounding(const sp_op_call *call);

/* schema/nn/conv_transpose.c */
sp_status sp__conv_transpose_infer(sp_op_call *call);
sp_status sp__conv_transpose_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/nn/pool.c */
sp_status sp__pool_infer(sp_op_call *call);
sp_status sp__max_pool_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__max_pool_rows(const sp_rows_call *call);
sp_status sp__average_pool_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__global_pool_infer(sp_op_call *call);
sp_status sp__global_average_pool_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__global_max_pool_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/nn/grid_sample.c */
sp_status sp__grid_sample_infer(sp_op_call *call);
sp_status sp__grid_sample_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__grid_sample_rows(const sp_rows_call *call);

/* schema/nn/norm.c */
sp_status sp__batch_norm_infer(sp_op_call *call);
sp_status sp__batch_norm_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__layer_norm_infer(sp_op_call *call);
sp_status sp__layer_norm_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__instance_norm_infer(sp_op_call *call);
sp_status sp__instance_norm_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__group_norm_infer(sp_op_call *call);
sp_status sp__group_norm_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__batch_norm_rows(const sp_rows_call *call);
const char *sp__layer_norm_rows(const sp_rows_call *call);

/* schema/nn/softmax.c */
sp_status sp__softmax_infer(sp_op_call *call);
sp_status sp__softmax_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__log_softmax_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__softmax_rows(const sp_rows_call *call);

/* schema/reduce/reduce.c */
sp_status sp__reduce_infer(sp_op_call *call);
sp_status sp__reduce_mean_infer(sp_op_call *call);
sp_status sp__reduce_sum_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_mean_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_max_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_min_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_prod_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_sum_square_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_l1_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_l2_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_log_sum_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__reduce_log_sum_exp_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__reduce_rows(const sp_rows_call *call);

/* schema/reduce/axis.c */
sp_status sp__arg_infer(sp_op_call *call);
sp_status sp__arg_max_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__arg_min_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__hardmax_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__cumsum_infer(sp_op_call *call);
sp_status sp__cumsum_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__lp_norm_infer(sp_op_call *call);
sp_status sp__lp_norm_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__lrn_infer(sp_op_call *call);
sp_status sp__lrn_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__mvn_infer(sp_op_call *call);
sp_status sp__mvn_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__cumsum_rows(const sp_rows_call *call);
const char *sp__lp_norm_rows(const sp_rows_call *call);
const char *sp__arg_rows(const sp_rows_call *call);
const char *sp__mvn_rows(const sp_rows_call *call);

/* schema/layout/copy.c */
sp_status sp__concat_infer(sp_op_call *call);
sp_status sp__concat_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__split_infer(sp_op_call *call);
sp_status sp__split_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__transpose_infer(sp_op_call *call);
sp_status sp__transpose_lower(const sp_op_call *call, sp_lowering *lowering);
/* Output 0 has the elements of this view of input 0, whose shape may be another one, in their
 * order: a strided copy, or an alias if they are all of the input's in its order. */
sp_status sp__lower_view(const sp_op_call *call, sp_lowering *lowering, const sp_layout *view);
/* The same by strides, for more dimensions than a layout has: the caller sets rank, dims, x and y
 * (strides) and the first indices in `k`; the rest is set here. */
sp_status sp__lower_strided_copy(const sp_op_call *call, sp_lowering *lowering,
                                 sp_copy_constants *k);
const char *sp__transpose_rows(const sp_rows_call *call);
const char *sp__split_rows(const sp_rows_call *call);
const char *sp__concat_rows(const sp_rows_call *call);

/* schema/layout/slice.c */
sp_status sp__slice_infer(sp_op_call *call);
sp_status sp__slice_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__slice_rows(const sp_rows_call *call);

/* schema/index/gather.c */
sp_status sp__gather_infer(sp_op_call *call);
sp_status sp__gather_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__gather_elements_infer(sp_op_call *call);
sp_status sp__gather_elements_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__gather_nd_infer(sp_op_call *call);
sp_status sp__gather_nd_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__one_hot_infer(sp_op_call *call);
sp_status sp__one_hot_lower(const sp_op_call *call, sp_lowering *lowering);
/* Errors: SP_MISMATCH unless input 1 has the rank of input 0 and is not larger in any dimension but
 * `axis`. */
sp_status sp__elements_shapes(const sp_op_call *call, uint32_t axis);
const char *sp__gather_rows(const sp_rows_call *call);
const char *sp__gather_elements_rows(const sp_rows_call *call);
const char *sp__gather_nd_rows(const sp_rows_call *call);
const char *sp__one_hot_rows(const sp_rows_call *call);

/* schema/index/scatter.c */
sp_status sp__scatter_elements_infer(sp_op_call *call);
sp_status sp__scatter_elements_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__scatter_nd_infer(sp_op_call *call);
sp_status sp__scatter_nd_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__scatter_elements_rows(const sp_rows_call *call);
const char *sp__scatter_nd_rows(const sp_rows_call *call);

/* schema/index/non_zero.c */
sp_status sp__non_zero_infer(sp_op_call *call);
sp_status sp__non_zero_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/layout/range.c */
sp_status sp__range_infer(sp_op_call *call);
sp_status sp__range_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/layout/rearrange.c */
sp_status sp__tile_infer(sp_op_call *call);
sp_status sp__tile_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__tile_rows(const sp_rows_call *call);
sp_status sp__depth_to_space_infer(sp_op_call *call);
sp_status sp__depth_to_space_lower(const sp_op_call *call, sp_lowering *lowering);
sp_status sp__space_to_depth_infer(sp_op_call *call);
sp_status sp__space_to_depth_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/layout/diagonal.c */
sp_status sp__trilu_infer(sp_op_call *call);
sp_status sp__trilu_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__trilu_rows(const sp_rows_call *call);
sp_status sp__eye_like_infer(sp_op_call *call);
sp_status sp__eye_like_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/index/top_k.c */
sp_status sp__top_k_infer(sp_op_call *call);
sp_status sp__top_k_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__top_k_rows(const sp_rows_call *call);

/* schema/nn/resize.c */
sp_status sp__resize_infer(sp_op_call *call);
sp_status sp__resize_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__resize_rows(const sp_rows_call *call);

/* schema/recurrent/recurrent.c: LSTM, GRU and RNN */
sp_status sp__recurrent_infer(sp_op_call *call);
sp_status sp__recurrent_lower(const sp_op_call *call, sp_lowering *lowering);
void sp__recurrent_pack(const sp_op_call *call, uint32_t input, sp_pack *out);
const char *sp__recurrent_rows(const sp_rows_call *call);

/* schema/layout/pad.c */
sp_status sp__pad_infer(sp_op_call *call);
sp_status sp__pad_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__pad_rows(const sp_rows_call *call);

/* schema/layout/view.c */
sp_status sp__reshape_infer(sp_op_call *call);
sp_status sp__flatten_infer(sp_op_call *call);
sp_status sp__squeeze_infer(sp_op_call *call);
sp_status sp__unsqueeze_infer(sp_op_call *call);
sp_status sp__view_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/control/if.c */
sp_status sp__if_infer(sp_op_call *call);
sp_status sp__if_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__if_rows(const sp_rows_call *call);

/* schema/control/loop.c: Loop and Scan, which are computed only in runs of a model */
sp_status sp__loop_infer(sp_op_call *call);
sp_status sp__loop_lower(const sp_op_call *call, sp_lowering *lowering);

/* schema/layout/constant.c: their outputs are known from the shape rule, or filled. */
sp_status sp__constant_infer(sp_op_call *call);
sp_status sp__shape_infer(sp_op_call *call);
sp_status sp__size_infer(sp_op_call *call);
sp_status sp__constant_of_shape_infer(sp_op_call *call);
sp_status sp__constant_of_shape_lower(const sp_op_call *call, sp_lowering *lowering);
const char *sp__constant_of_shape_rows(const sp_rows_call *call);
sp_status sp__known_lower(const sp_op_call *call, sp_lowering *lowering);

#endif
