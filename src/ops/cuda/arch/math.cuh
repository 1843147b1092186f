/* SPDX-License-Identifier: Apache-2.0 */
/* Building blocks of the kernels: canonical NaNs, indices, and the functions of
 * ops/cpu/arch/math_f32.h, operation by operation. */

#define SP_CONSTANTS_CHECK(type, bytes) static_assert(sizeof(type) == bytes, "one layout");
SP_CONSTANTS_LIST(SP_CONSTANTS_CHECK)
#undef SP_CONSTANTS_CHECK

SP_CUDA_FUNCTION float sp_canonical(float x)
{
    return x == x ? x : __uint_as_float(0x7fc00000u);
}

SP_CUDA_FUNCTION int64_t sp_thread_index()
{
    return (int64_t)blockIdx.x * SP_CUDA_THREADS + threadIdx.x;
}

SP_CUDA_FUNCTION int64_t sp_thread_stride()
{
    return (int64_t)gridDim.x * SP_CUDA_THREADS;
}

/* Quotient of numbers that are not negative. Most fit 32 bits, for which a division is several
 * times faster. */
SP_CUDA_FUNCTION int64_t sp_quotient(int64_t a, int64_t b)
{
    if ((uint64_t)(a | b) >> 32 == 0) return (uint32_t)a / (uint32_t)b;
    return a / b;
}

/* Splits the innermost coordinate, of a dimension of `size`, off a linear index. */
SP_CUDA_FUNCTION int64_t sp_take_coordinate(int64_t *index, int64_t size)
{
    const int64_t outer = sp_quotient(*index, size);
    const int64_t coordinate = *index - outer * size;
    *index = outer;
    return coordinate;
}

/* 2^n, n in [-126, 127]. */
SP_CUDA_FUNCTION float sp_exponent(int32_t n)
{
    return __uint_as_float((uint32_t)(n + 127) << 23);
}

/* Positive numbers unchanged, all others +0, -0 too. */
SP_CUDA_FUNCTION float sp_reluf(float x)
{
    return x <= 0 ? 0.0f : x;
}

SP_CUDA_FUNCTION float sp_expf(float x)
{
    float clamped = x > 89.0f ? 89.0f : x;
    clamped = clamped < -104.0f ? -104.0f : clamped;
    const float shift = 12582912.0f;
    const float rounded = __fmaf_rn(clamped, 1.44269504f, shift);
    const float n = __fsub_rn(rounded, shift);
    const int32_t exponent = (int32_t)(__float_as_uint(rounded) - 0x4b400000u);
    float r = __fmaf_rn(n, -0.693359375f, clamped);
    r = __fmaf_rn(n, 2.12194440e-4f, r);
    float p = 1.9875691500e-4f;
    p = __fmaf_rn(p, r, 1.3981999507e-3f);
    p = __fmaf_rn(p, r, 8.3334519073e-3f);
    p = __fmaf_rn(p, r, 4.1665795894e-2f);
    p = __fmaf_rn(p, r, 1.6666665459e-1f);
    p = __fmaf_rn(p, r, 5.0000001201e-1f);
    p = __fadd_rn(__fmaf_rn(p, __fmul_rn(r, r), r), 1.0f);
    const int32_t half = exponent >> 1;
    return __fmul_rn(__fmul_rn(p, sp_exponent(half)), sp_exponent(exponent - half));
}

SP_CUDA_FUNCTION float sp_sigmoidf(float x)
{
    const float e = sp_expf(x < 0 ? x : -x);
    return __fdiv_rn(x < 0 ? e : 1.0f, __fadd_rn(1.0f, e));
}

SP_CUDA_FUNCTION float sp_siluf(float x)
{
    return __fmul_rn(x, sp_canonical(sp_sigmoidf(x)));
}

SP_CUDA_FUNCTION float sp_tanhf(float x)
{
    const uint32_t sign = __float_as_uint(x) & 0x80000000u;
    const float size = __uint_as_float(__float_as_uint(x) ^ sign);
    const float square = __fmul_rn(x, x);
    float p = -5.70498872745e-3f;
    p = __fmaf_rn(p, square, 2.06390887954e-2f);
    p = __fmaf_rn(p, square, -5.37397155531e-2f);
    p = __fmaf_rn(p, square, 1.33314422036e-1f);
    p = __fmaf_rn(p, square, -3.33332819422e-1f);
    const float small = __fmaf_rn(__fmul_rn(p, square), size, size);
    const float e = sp_expf(__fmul_rn(2.0f, size));
    const float large = __fsub_rn(1.0f, __fdiv_rn(2.0f, __fadd_rn(e, 1.0f)));
    const float result = size < 0.625f ? small : large;
    return __uint_as_float(__float_as_uint(result) | sign);
}

/* What the kernel of the activation stores for x; x itself for none. All threads of a launch take
 * the same branch. */
SP_CUDA_FUNCTION float sp_activate(uint8_t activation, float x)
{
    if (activation == SP_ACTIVATION_RELU) return sp_canonical(sp_reluf(x));
    if (activation == SP_ACTIVATION_SIGMOID) return sp_canonical(sp_sigmoidf(x));
    if (activation == SP_ACTIVATION_TANH) return sp_canonical(sp_tanhf(x));
    if (activation == SP_ACTIVATION_SILU) return sp_canonical(sp_siluf(x));
    return x;
}
