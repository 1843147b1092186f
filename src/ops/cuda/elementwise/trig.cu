/* SPDX-License-Identifier: Apache-2.0 */
/* Trigonometric and hyperbolic functions of f32 and their inverses. */

SP_FLOAT_UNARY(sin_f32, sp_f32, float, sp_sinf)
SP_FLOAT_UNARY(cos_f32, sp_f32, float, sp_cosf)
SP_FLOAT_UNARY(tan_f32, sp_f32, float, sp_tanf)
SP_FLOAT_UNARY(asin_f32, sp_f32, float, sp_asinf)
SP_FLOAT_UNARY(acos_f32, sp_f32, float, sp_acosf)
SP_FLOAT_UNARY(atan_f32, sp_f32, float, sp_atanf)
SP_FLOAT_UNARY(sinh_f32, sp_f32, float, sp_sinhf)
SP_FLOAT_UNARY(cosh_f32, sp_f32, float, sp_coshf)
SP_FLOAT_UNARY(asinh_f32, sp_f32, float, sp_asinhf)
SP_FLOAT_UNARY(acosh_f32, sp_f32, float, sp_acoshf)
SP_FLOAT_UNARY(atanh_f32, sp_f32, float, sp_atanhf)
