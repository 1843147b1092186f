/* SPDX-License-Identifier: Apache-2.0 */
/* Floats and doubles whose operators round once and are not fused, so that a function of the CPU is
 * written as there; the functions of ops/cpu/arch/math_f32.h that not every program needs; and the
 * types that elements are computed in. */

struct sp_f32 {
    typedef float element;
    float v;
    sp_f32() = default;
    __device__ __forceinline__ sp_f32(float x) : v(x) {}
};

struct sp_f64 {
    typedef double element;
    double v;
    sp_f64() = default;
    __device__ __forceinline__ sp_f64(double x) : v(x) {}
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

SP_CUDA_FUNCTION uint32_t sp_bits(sp_f32 x)
{
    return __float_as_uint(x.v);
}
SP_CUDA_FUNCTION uint64_t sp_bits(sp_f64 x)
{
    return (uint64_t)__double_as_longlong(x.v);
}
SP_CUDA_FUNCTION sp_f32 sp_from_bits(uint32_t bits)
{
    return __uint_as_float(bits);
}
SP_CUDA_FUNCTION sp_f64 sp_from_bits(uint64_t bits)
{
    return __longlong_as_double((int64_t)bits);
}

/* As sp_canonical of a float. */
SP_CUDA_FUNCTION float sp_store(sp_f32 x)
{
    return sp_canonical(x.v);
}
SP_CUDA_FUNCTION double sp_store(sp_f64 x)
{
    return x == x ? x.v : sp_from_bits((uint64_t)0x7ff8000000000000u).v;
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
        return sp_from_bits((uint32_t)0x7f800000u);
    }
    SP_CUDA_MEMBER sp_f32 least()
    {
        return sp_from_bits((uint32_t)0xff800000u);
    }
};
template <> struct sp_limits<sp_f64> {
    static const bool is_float = true;
    SP_CUDA_MEMBER sp_f64 most()
    {
        return sp_from_bits((uint64_t)0x7ff0000000000000u);
    }
    SP_CUDA_MEMBER sp_f64 least()
    {
        return sp_from_bits((uint64_t)0xfff0000000000000u);
    }
};

/* ---- simple functions of both types ---- */

SP_CUDA_FUNCTION sp_f32 sp_abs(sp_f32 x)
{
    return sp_from_bits(sp_bits(x) & 0x7fffffffu);
}
SP_CUDA_FUNCTION sp_f64 sp_abs(sp_f64 x)
{
    return sp_from_bits(sp_bits(x) & (uint64_t)0x7fffffffffffffffu);
}
/* The magnitude of `size` with the sign of `sign`. */
SP_CUDA_FUNCTION sp_f32 sp_copysign(sp_f32 size, sp_f32 sign)
{
    return sp_from_bits((sp_bits(size) & 0x7fffffffu) | (sp_bits(sign) & 0x80000000u));
}
SP_CUDA_FUNCTION sp_f64 sp_copysign(sp_f64 size, sp_f64 sign)
{
    return sp_from_bits((sp_bits(size) & (uint64_t)0x7fffffffffffffffu) |
                        (sp_bits(sign) & (uint64_t)0x8000000000000000u));
}
SP_CUDA_FUNCTION sp_f32 sp_sqrt(sp_f32 x)
{
    return __fsqrt_rn(x.v);
}
SP_CUDA_FUNCTION sp_f64 sp_sqrt(sp_f64 x)
{
    return __dsqrt_rn(x.v);
}
/* One step of a chain, chain + a * b: of f32 rounded once. */
SP_CUDA_FUNCTION sp_f32 sp_step(sp_f32 chain, sp_f32 a, sp_f32 b)
{
    return __fmaf_rn(a.v, b.v, chain.v);
}
SP_CUDA_FUNCTION sp_f64 sp_step(sp_f64 chain, sp_f64 a, sp_f64 b)
{
    return chain + a * b;
}
