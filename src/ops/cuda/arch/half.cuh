/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16 to and from wider numbers, on the bits (ops/cpu/arch/half.h). */

struct sp_f16 {
    uint16_t bits;
};
struct sp_bf16 {
    uint16_t bits;
};

SP_CUDA_FUNCTION sp_f32 sp_load(sp_f16 x)
{
    const uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16, size = x.bits & 0x7fffu;
    const uint32_t normal = (size << 13) + (112u << 23); /* the bias is 112 less */
    const sp_f32 subnormal = sp_f32((float)(int32_t)size) * 0x1p-24f;
    uint32_t bits = size < 0x0400u ? sp_bits(subnormal) : normal;
    bits = size == 0x7c00u ? 0x7f800000u : bits;
    return size > 0x7c00u ? sp_from_bits((uint32_t)0x7fc00000u) : sp_from_bits(bits | sign);
}

SP_CUDA_FUNCTION sp_f32 sp_load(sp_bf16 x)
{
    return sp_canonical(sp_from_bits((uint32_t)x.bits << 16).v);
}

SP_CUDA_FUNCTION sp_f16 sp_to_f16(sp_f32 x)
{
    const uint32_t sign = sp_bits(x) & 0x80000000u, size = sp_bits(x) ^ sign;
    /* To 10 bits of fraction; a carry goes into the exponent: from 65520 on the result is
     * infinity. */
    const uint32_t normal = (size - (112u << 23) + 0xfffu + ((size >> 13) & 1)) >> 13;
    /* The last bit of 0.5 + x is that of a subnormal f16. */
    const uint32_t subnormal = sp_bits(sp_from_bits(size) + 0.5f) - 0x3f000000u;
    uint32_t h = size < 0x38800000u ? subnormal : normal;
    h = size >= 0x47800000u ? 0x7c00u : h;
    return {(uint16_t)(size > 0x7f800000u ? 0x7e00u : h | sign >> 16)};
}

SP_CUDA_FUNCTION sp_bf16 sp_to_bf16(sp_f32 x)
{
    const uint32_t bits = sp_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    return {(uint16_t)(x == x ? rounded : 0x7fc0u)};
}

/* ---- an element T is computed in sp_wide<T>: loads, and stores rounded once ---- */

template <class T> struct sp_wide_type {
    typedef T type;
};
template <> struct sp_wide_type<float> {
    typedef sp_f32 type;
};
template <> struct sp_wide_type<double> {
    typedef sp_f64 type;
};
template <> struct sp_wide_type<sp_f16> {
    typedef sp_f32 type;
};
template <> struct sp_wide_type<sp_bf16> {
    typedef sp_f32 type;
};
template <class T> using sp_wide = typename sp_wide_type<T>::type;

SP_CUDA_FUNCTION sp_f32 sp_load(float x)
{
    return x;
}
SP_CUDA_FUNCTION sp_f64 sp_load(double x)
{
    return x;
}
template <class T> SP_CUDA_FUNCTION T sp_load(T x)
{
    return x;
}

/* The element without its class. */
template <class T> SP_CUDA_FUNCTION T sp_wide_plain(T x)
{
    return x;
}
SP_CUDA_FUNCTION float sp_wide_plain(sp_f32 x)
{
    return x.v;
}
SP_CUDA_FUNCTION double sp_wide_plain(sp_f64 x)
{
    return x.v;
}

template <class T> struct sp_stored {
    SP_CUDA_MEMBER T from(T x)
    {
        return x;
    }
};
template <> struct sp_stored<float> {
    SP_CUDA_MEMBER float from(sp_f32 x)
    {
        return sp_store(x);
    }
};
template <> struct sp_stored<double> {
    SP_CUDA_MEMBER double from(sp_f64 x)
    {
        return sp_store(x);
    }
};
template <> struct sp_stored<sp_f16> {
    SP_CUDA_MEMBER sp_f16 from(sp_f32 x)
    {
        return sp_to_f16(x);
    }
};
template <> struct sp_stored<sp_bf16> {
    SP_CUDA_MEMBER sp_bf16 from(sp_f32 x)
    {
        return sp_to_bf16(x);
    }
};
