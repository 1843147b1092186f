/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of ops/cpu/arch/math_f32.h and float_functions.inc.h that math.cuh does not have,
 * operation by operation. */

SP_CUDA_FUNCTION sp_f32 sp_exp(sp_f32 x)
{
    return sp_expf(x.v);
}

SP_CUDA_FUNCTION sp_f32 sp_tanh(sp_f32 x)
{
    return sp_tanhf(x.v);
}

SP_CUDA_FUNCTION sp_f32 sp_fma(sp_f32 a, sp_f32 b, sp_f32 c)
{
    return __fmaf_rn(a.v, b.v, c.v);
}

/* e^x - 1 */
SP_CUDA_FUNCTION sp_f32 sp_expm1(sp_f32 x)
{
    sp_f32 clamped = x > 89.0f ? sp_f32(89.0f) : x;
    clamped = clamped < -25.0f ? sp_f32(-25.0f) : clamped;
    const sp_f32 shift = 12582912.0f;
    const sp_f32 rounded = sp_fma(clamped, 1.44269504f, shift), n = rounded - shift;
    const int32_t exponent = (int32_t)(sp_bits(rounded) - 0x4b400000u);
    sp_f32 r = sp_fma(n, -0.693359375f, clamped);
    r = sp_fma(n, 2.12194440e-4f, r);
    sp_f32 p = 1.9875691500e-4f;
    p = sp_fma(p, r, 1.3981999507e-3f);
    p = sp_fma(p, r, 8.3334519073e-3f);
    p = sp_fma(p, r, 4.1665795894e-2f);
    p = sp_fma(p, r, 1.6666665459e-1f);
    p = sp_fma(p, r, 5.0000001201e-1f);
    const sp_f32 q = sp_fma(p, r * r, r), half = sp_exponent(exponent - 1);
    return sp_f32(2.0f) * sp_fma(q, half, half - 0.5f);
}

SP_CUDA_FUNCTION sp_f32 sp_log(sp_f32 x)
{
    const sp_f32 tiny = sp_from_bits((uint32_t)0x00800000u);
    const sp_f32 infinity = sp_limits<sp_f32>::most();
    const sp_f32 scaled = x < tiny ? x * 8388608.0f : x;
    const int32_t above = (int32_t)(sp_bits(scaled) - 0x3f2aaaabu);
    const int32_t e = above >> 23;
    const sp_f32 f = sp_from_bits(sp_bits(scaled) - ((uint32_t)e << 23)) - 1.0f;
    const sp_f32 exponent = (float)(x < tiny ? e - 23 : e);
    sp_f32 p = -1.242220178e-01f;
    p = sp_fma(p, f, 1.374831051e-01f);
    p = sp_fma(p, f, -1.228872165e-01f);
    p = sp_fma(p, f, 1.405581236e-01f);
    p = sp_fma(p, f, -1.667331606e-01f);
    p = sp_fma(p, f, 2.000723332e-01f);
    p = sp_fma(p, f, -2.499994487e-01f);
    p = sp_fma(p, f, 3.333327174e-01f);
    p = sp_fma(p, f, -0.5f);
    sp_f32 result = sp_fma(p, f * f, f);
    result = sp_fma(exponent, 0.693147182f, result);
    result = x < infinity ? result : x;
    if (x > 0) return result;
    return x == 0 ? -infinity : sp_from_bits((uint32_t)0x7fc00000u);
}

/* e^-|x|, and log(1 + e^x) from that and x. */
SP_CUDA_FUNCTION sp_f32 sp_softplus_exp(sp_f32 x)
{
    return sp_exp(-sp_abs(x));
}

SP_CUDA_FUNCTION sp_f32 sp_softplus_log(sp_f32 x, sp_f32 e)
{
    const sp_f32 above = x > 0 ? x : sp_f32(0.0f), sum = sp_f32(1.0f) + e;
    const sp_f32 result = above + (sp_log(sum) + (e - (sum - 1.0f)) / sum);
    return x == x ? result : x;
}

SP_CUDA_FUNCTION sp_f32 sp_softplus(sp_f32 x)
{
    return sp_softplus_log(x, sp_softplus_exp(x));
}

SP_CUDA_FUNCTION sp_f32 sp_erf(sp_f32 x)
{
    const sp_f32 size = sp_abs(x), square = x * x;
    sp_f32 p = -5.977571709e-04f;
    p = sp_fma(p, square, 4.990903661e-03f);
    p = sp_fma(p, square, -2.676534094e-02f);
    p = sp_fma(p, square, 1.128179058e-01f);
    p = sp_fma(p, square, -3.761249185e-01f);
    p = sp_fma(p, square, 1.283791512e-01f);
    const sp_f32 small = sp_fma(p, x, x);
    const sp_f32 t = size > 4.0f ? sp_f32(4.0f) : size;
    sp_f32 q = 1.672767212e-05f;
    q = sp_fma(q, t, -3.752831835e-04f);
    q = sp_fma(q, t, 3.841226455e-03f);
    q = sp_fma(q, t, -2.414184809e-02f);
    q = sp_fma(q, t, 1.066198871e-01f);
    q = sp_fma(q, t, 6.349601150e-01f);
    q = sp_fma(q, t, 1.286847144e-01f);
    const sp_f32 large = sp_f32(1.0f) - sp_exp(-sp_fma(q, t, t));
    return size < 0.927734375f ? small : sp_copysign(large, x);
}
