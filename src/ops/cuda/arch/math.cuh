/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of numbers of either type under one name, and activations. */

SP_CUDA_FUNCTION sp_f32 sp_abs(sp_f32 x)
{
    return sp_absf(x);
}
SP_CUDA_FUNCTION sp_f64 sp_abs(sp_f64 x)
{
    return sp_double_from_bits(sp_double_bits(x) & 0x7fffffffffffffffu);
}
SP_CUDA_FUNCTION sp_f32 sp_copysign(sp_f32 size, sp_f32 sign)
{
    return sp_copysignf(size, sign);
}
SP_CUDA_FUNCTION sp_f64 sp_copysign(sp_f64 size, sp_f64 sign)
{
    return sp_double_from_bits((sp_double_bits(size) & 0x7fffffffffffffffu) |
                               (sp_double_bits(sign) & 0x8000000000000000u));
}
SP_CUDA_FUNCTION sp_f32 sp_exp(sp_f32 x)
{
    return sp_expf(x);
}
SP_CUDA_FUNCTION sp_f32 sp_log(sp_f32 x)
{
    return sp_logf(x);
}

/* What the kernel of the activation stores for x; x itself for none. All threads of a launch take
 * the same branch. */
SP_CUDA_FUNCTION float sp_activate(uint8_t activation, float x)
{
    if (activation == SP_ACTIVATION_RELU) return sp_store(sp_reluf(x));
    if (activation == SP_ACTIVATION_SIGMOID) return sp_store(sp_sigmoidf(x));
    if (activation == SP_ACTIVATION_TANH) return sp_store(sp_tanhf(x));
    if (activation == SP_ACTIVATION_SILU) return sp_store(sp_siluf(x));
    if (activation == SP_ACTIVATION_HARD_SWISH) return sp_store(sp_hard_swishf(x));
    return x;
}
