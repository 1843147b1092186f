/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise kernels of f64. */

SP_FLOAT_KERNELS(f64, sp_f64, double)
SP_FLOAT_UNARY(exp_f64, sp_f64, double, sp_exp)
SP_FLOAT_BINARY(fmod_f64, sp_f64, double, sp_fmod)

SP_CUDA_FUNCTION sp_f64 sp_relu(sp_f64 x)
{
    return x <= 0 ? sp_f64(0) : x;
}

SP_CUDA_FUNCTION sp_f64 sp_power(sp_f64 x, sp_f64 y)
{
    return y == 2 ? x * x : sp_pow(x, y);
}

SP_FLOAT_UNARY(relu_f64, sp_f64, double, sp_relu)
SP_FLOAT_BINARY(pow_f64, sp_f64, double, sp_power)
SP_FLOAT_BINARY(add_f64, sp_f64, double, operator+)
SP_FLOAT_BINARY(sub_f64, sp_f64, double, operator-)
SP_FLOAT_BINARY(mul_f64, sp_f64, double, operator*)
SP_FLOAT_BINARY(div_f64, sp_f64, double, operator/)
