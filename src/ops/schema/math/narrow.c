/* SPDX-License-Identifier: Apache-2.0 */
/* What narrow products and convolutions share (docs/decisions/0072, 0089). */
#include "ops/ops.h"

/* The least rank of a convolution's weights: one dimension beside filters and channels; and its
 * least channels, if it is of f32: fewer are gathered from so many taps that the f32 kernels are
 * faster. */
enum { CONV_RANK = 3, CONV_CHANNELS = 16 };

#define KERNELS(type)                                                                              \
    {.product = SP_KERNEL_ID_gemm_narrow_##type,                                                   \
     .conv = SP_KERNEL_ID_conv_narrow_##type,                                                      \
     .of_packed = SP_KERNEL_ID_gemm_packed_##type}

const sp_narrow_kernels *sp__narrow_kernels(const sp_op_call *call)
{
    static const sp_narrow_kernels kernels[] = {[SP_PRECISION_TF32] = KERNELS(tf32),
                                                [SP_PRECISION_F16] = KERNELS(f16),
                                                [SP_PRECISION_BF16] = KERNELS(bf16)};
    switch (call->inputs[0].dtype) {
    case SP_F16:
        return &kernels[SP_PRECISION_F16];
    case SP_BF16:
        return &kernels[SP_PRECISION_BF16];
    default:
        return &kernels[call->precision];
    }
}

/* Convolutions of images, or of one dimension, in one group. */
static bool is_conv(const sp_op_call *call)
{
    const sp_shape *w = &call->inputs[1].shape;
    if (call->op->pack != sp__conv_pack || w->rank < CONV_RANK || w->rank > CONV_RANK + 1) {
        return false;
    }
    const bool is_deep = w->dims[1] >= CONV_CHANNELS || call->inputs[0].dtype != SP_F32;
    return is_deep && sp__attribute_int(call->attributes, "group", 1) == 1;
}

/* Elements of one dot product. With one the operands are rounded for nothing: positions of words by
 * frequencies, whose sines and cosines would be wrong. */
static int64_t depth_of(const sp_op_call *call)
{
    const sp_shape *b = &call->inputs[1].shape;
    const bool is_turned =
        call->op->pack == sp__gemm_pack && sp__attribute_int(call->attributes, "transB", 0) != 0;
    return b->dims[b->rank - (b->rank == 1 || is_turned ? 1 : 2)];
}

static bool is_product(const sp_op_call *call)
{
    return (call->op->pack == sp__gemm_pack || call->op->pack == sp__matmul_pack) &&
           call->inputs[1].shape.rank == 2 && depth_of(call) > 1;
}

sp_rounding sp__product_rounding(const sp_op_call *call)
{
    static const sp_rounding roundings[] = {[SP_PRECISION_DEFAULT] = SP_ROUNDING_NONE,
                                            [SP_PRECISION_TF32] = SP_ROUNDING_NONE,
                                            [SP_PRECISION_F16] = SP_ROUNDING_F16,
                                            [SP_PRECISION_BF16] = SP_ROUNDING_BF16};
    const bool is_matmul = call->op->pack == sp__matmul_pack;
    if (!is_matmul || call->inputs[0].dtype != SP_F32 || depth_of(call) == 1) {
        return SP_ROUNDING_NONE;
    }
    return roundings[call->precision];
}

bool sp__may_be_narrow(const sp_op_call *call)
{
    if (call->precision == SP_PRECISION_DEFAULT) return false;
    if (!is_product(call) && !is_conv(call)) return false;
    const sp_dtype dtype = call->inputs[0].dtype;
    return dtype == SP_F32 || dtype == SP_F16 || dtype == SP_BF16;
}
