/* SPDX-License-Identifier: Apache-2.0 */
/* f16 and bf16 as types of elements. */

struct sp_f16 {
    uint16_t bits;
};
struct sp_bf16 {
    uint16_t bits;
};

SP_CUDA_FUNCTION sp_f32 sp_load(sp_f16 x)
{
    return sp_float_of_f16(x.bits);
}
SP_CUDA_FUNCTION sp_f32 sp_load(sp_bf16 x)
{
    return sp_float_of_bf16(x.bits);
}
SP_CUDA_FUNCTION sp_f16 sp_to_f16(sp_f32 x)
{
    return {sp_f16_of_float(x)};
}
SP_CUDA_FUNCTION sp_bf16 sp_to_bf16(sp_f32 x)
{
    return {sp_bf16_of_float(x)};
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
