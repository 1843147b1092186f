/* SPDX-License-Identifier: Apache-2.0 */
/* Floats and doubles whose operators round once and are not fused: the types that elements are
 * computed in, and the words of ops/math. */

#define SP_MATH_INLINE SP_CUDA_FUNCTION
#define SP_MATH_CALLED SP_CUDA_CALLED

struct sp_f32 {
    typedef float element;
    float v;
    sp_f32() = default;
    __device__ __forceinline__ sp_f32(float x) : v(x) {}
    __device__ __forceinline__ explicit operator double() const { return v; }
    __device__ __forceinline__ explicit operator int32_t() const { return (int32_t)v; }
};

struct sp_f64 {
    typedef double element;
    double v;
    sp_f64() = default;
    __device__ __forceinline__ sp_f64(double x) : v(x) {}
    __device__ __forceinline__ explicit operator float() const { return (float)v; }
    __device__ __forceinline__ explicit operator int64_t() const { return (int64_t)v; }
};

#define SP_NUMBER_OPERATOR(type, operation, intrinsic)                                             \
    SP_CUDA_FUNCTION type operator operation(type a, type b)                                       \
    {                                                                                              \
        return intrinsic(a.v, b.v);                                                                \
    }
#define SP_NUMBER_COMPARISON(type, operation)                                                      \
    SP_CUDA_FUNCTION bool operator operation(type a, type b)                                       \
    {                                                                                              \
        return a.v operation b.v;                                                                  \
    }
#define SP_NUMBER_COMPARISONS(type)                                                                \
    SP_NUMBER_COMPARISON(type, <)                                                                  \
    SP_NUMBER_COMPARISON(type, <=)                                                                 \
    SP_NUMBER_COMPARISON(type, >)                                                                  \
    SP_NUMBER_COMPARISON(type, >=)                                                                 \
    SP_NUMBER_COMPARISON(type, ==)                                                                 \
    SP_NUMBER_COMPARISON(type, !=)                                                                 \
    SP_CUDA_FUNCTION type operator-(type a)                                                        \
    {                                                                                              \
        return -a.v;                                                                               \
    }

SP_NUMBER_OPERATOR(sp_f32, +, __fadd_rn)
SP_NUMBER_OPERATOR(sp_f32, -, __fsub_rn)
SP_NUMBER_OPERATOR(sp_f32, *, __fmul_rn)
SP_NUMBER_OPERATOR(sp_f32, /, __fdiv_rn)
SP_NUMBER_COMPARISONS(sp_f32)
SP_NUMBER_OPERATOR(sp_f64, +, __dadd_rn)
SP_NUMBER_OPERATOR(sp_f64, -, __dsub_rn)
SP_NUMBER_OPERATOR(sp_f64, *, __dmul_rn)
SP_NUMBER_OPERATOR(sp_f64, /, __ddiv_rn)
SP_NUMBER_COMPARISONS(sp_f64)

/* ---- bits ---- */

SP_CUDA_FUNCTION uint32_t sp_float_bits(sp_f32 x)
{
    return __float_as_uint(x.v);
}
SP_CUDA_FUNCTION uint64_t sp_double_bits(sp_f64 x)
{
    return (uint64_t)__double_as_longlong(x.v);
}
SP_CUDA_FUNCTION sp_f32 sp_float_from_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}
SP_CUDA_FUNCTION sp_f64 sp_double_from_bits(uint64_t bits)
{
    return __longlong_as_double((int64_t)bits);
}

SP_CUDA_FUNCTION int64_t sp_leading_zeros(uint64_t bits) /* bits != 0 */
{
    return __clzll((int64_t)bits);
}

/* All results of a kernel have the same NaN. */
SP_CUDA_FUNCTION float sp_canonical(float x)
{
    return x == x ? x : __uint_as_float(0x7fc00000u);
}
SP_CUDA_FUNCTION sp_f32 sp_canonical(sp_f32 x)
{
    return sp_canonical(x.v);
}
SP_CUDA_FUNCTION float sp_store(sp_f32 x)
{
    return sp_canonical(x.v);
}
SP_CUDA_FUNCTION double sp_store(sp_f64 x)
{
    return x == x ? x.v : sp_double_from_bits(0x7ff8000000000000u).v;
}

/* The numbers at the ends of a type; of floats infinity. */
template <class T> struct sp_limits {
    static const bool is_float = false, is_signed = (T)-1 < (T)0;
    SP_CUDA_MEMBER T most()
    {
        return is_signed ? (T) ~((uint64_t)1 << (8 * sizeof(T) - 1)) : (T) ~(uint64_t)0;
    }
    SP_CUDA_MEMBER T least()
    {
        return is_signed ? (T)((uint64_t)1 << (8 * sizeof(T) - 1)) : (T)0;
    }
};
template <> struct sp_limits<sp_f32> {
    static const bool is_float = true;
    SP_CUDA_MEMBER sp_f32 most()
    {
        return sp_float_from_bits(0x7f800000u);
    }
    SP_CUDA_MEMBER sp_f32 least()
    {
        return sp_float_from_bits(0xff800000u);
    }
};
template <> struct sp_limits<sp_f64> {
    static const bool is_float = true;
    SP_CUDA_MEMBER sp_f64 most()
    {
        return sp_double_from_bits(0x7ff0000000000000u);
    }
    SP_CUDA_MEMBER sp_f64 least()
    {
        return sp_double_from_bits(0xfff0000000000000u);
    }
};

/* ---- one rounding ---- */

SP_CUDA_FUNCTION sp_f32 sp_sqrt(sp_f32 x)
{
    return __fsqrt_rn(x.v);
}
SP_CUDA_FUNCTION sp_f64 sp_sqrt(sp_f64 x)
{
    return __dsqrt_rn(x.v);
}
/* The word of ops/math. */
SP_CUDA_FUNCTION sp_f64 sp_sqrt_f64(sp_f64 x)
{
    return sp_sqrt(x);
}
SP_CUDA_FUNCTION sp_f32 sp_fmaf(sp_f32 a, sp_f32 b, sp_f32 c)
{
    return __fmaf_rn(a.v, b.v, c.v);
}
/* One step of a chain, chain + a * b: of f32 rounded once. */
SP_CUDA_FUNCTION sp_f32 sp_step(sp_f32 chain, sp_f32 a, sp_f32 b)
{
    return sp_fmaf(a, b, chain);
}
SP_CUDA_FUNCTION sp_f64 sp_step(sp_f64 chain, sp_f64 a, sp_f64 b)
{
    return chain + a * b;
}
