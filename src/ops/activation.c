/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on elements by kernel, and kernels by operation. */
#include "ops/activation.h"

#include <math.h>
#include <stddef.h>

/* Has the gate the bits of sp_hard_swishf? A low of -0 has other ones. */
static bool is_hard_swish(const sp_gate_constants *k)
{
    const bool is_low = k->low == 0 && !signbit(k->low);
    return k->addend == 3 && is_low && k->high == 6 && k->divisor == 6;
}

sp_activation sp__activation_of(sp_kernel_id kernel, const void *constants)
{
    switch (kernel) {
    case SP_KERNEL_ID_relu_f32:
        return SP_ACTIVATION_RELU;
    case SP_KERNEL_ID_sigmoid_f32:
        return SP_ACTIVATION_SIGMOID;
    case SP_KERNEL_ID_tanh_f32:
        return SP_ACTIVATION_TANH;
    case SP_KERNEL_ID_clip_gate_f32:
        return is_hard_swish(constants) ? SP_ACTIVATION_HARD_SWISH : SP_ACTIVATION_NONE;
    default:
        return SP_ACTIVATION_NONE;
    }
}

uint8_t *sp__activation_field(sp_kernel_id kernel, void *constants)
{
    switch (kernel) {
    case SP_KERNEL_ID_gemm_f32:
    case SP_KERNEL_ID_gemm_narrow_tf32:
    case SP_KERNEL_ID_gemm_narrow_f16:
    case SP_KERNEL_ID_gemm_narrow_bf16:
    case SP_KERNEL_ID_gemm_packed_tf32:
    case SP_KERNEL_ID_gemm_packed_f16:
    case SP_KERNEL_ID_gemm_packed_bf16:
        return &((sp_gemm_constants *)constants)->activation;
    case SP_KERNEL_ID_conv_f32:
    case SP_KERNEL_ID_conv_depthwise_f32:
    case SP_KERNEL_ID_conv_narrow_tf32:
    case SP_KERNEL_ID_conv_narrow_f16:
    case SP_KERNEL_ID_conv_narrow_bf16:
        return &((sp_conv_constants *)constants)->activation;
    case SP_KERNEL_ID_conv_3d_f32:
        return &((sp_conv_3d_constants *)constants)->plane.activation;
    case SP_KERNEL_ID_conv_transpose_f32:
        return &((sp_conv_transpose_constants *)constants)->activation;
    case SP_KERNEL_ID_batch_norm_f32:
        return &((sp_batch_norm_constants *)constants)->activation;
    case SP_KERNEL_ID_row_norm_f32:
        return &((sp_row_norm_constants *)constants)->activation;
    case SP_KERNEL_ID_add_f32:
    case SP_KERNEL_ID_sub_f32:
    case SP_KERNEL_ID_mul_f32:
    case SP_KERNEL_ID_div_f32:
        return &((sp_binary_constants *)constants)->activation;
    default:
        return NULL;
    }
}

uint8_t sp__element_op_of(sp_kernel_id kernel, bool is_reversed)
{
    switch (kernel) {
    case SP_KERNEL_ID_add_f32:
        return SP_ELEMENT_ADD;
    case SP_KERNEL_ID_sub_f32:
        return is_reversed ? SP_ELEMENT_SUB_FROM : SP_ELEMENT_SUB;
    case SP_KERNEL_ID_mul_f32:
        return SP_ELEMENT_MUL;
    case SP_KERNEL_ID_div_f32:
        return is_reversed ? SP_ELEMENT_DIV_INTO : SP_ELEMENT_DIV;
    default:
        return SP_ACTIVATION_NONE;
    }
}

sp_kernel_id sp__element_kernel(uint8_t op)
{
    switch (op) {
    case SP_ELEMENT_ADD:
        return SP_KERNEL_ID_add_f32;
    case SP_ELEMENT_SUB:
    case SP_ELEMENT_SUB_FROM:
        return SP_KERNEL_ID_sub_f32;
    case SP_ELEMENT_MUL:
        return SP_KERNEL_ID_mul_f32;
    case SP_ELEMENT_DIV:
    case SP_ELEMENT_DIV_INTO:
        return SP_KERNEL_ID_div_f32;
    case SP_ELEMENT_NORM:
        return SP_KERNEL_ID_batch_norm_f32;
    default: /* SP_ELEMENT_CLIP_GATE, SP_ACTIVATION_HARD_SWISH */
        return SP_KERNEL_ID_clip_gate_f32;
    }
}
