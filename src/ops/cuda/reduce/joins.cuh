/* SPDX-License-Identifier: Apache-2.0 */
/* Maxima and minima that do not depend on the order (ops/cpu/reduce/lanes.h). */

/* The larger number: NaN if one is NaN, +0 above -0. */
template <class T> SP_CUDA_FUNCTION T sp_join_max(T a, T b)
{
    return b > a ? b : a;
}
SP_CUDA_FUNCTION sp_f32 sp_join_max(sp_f32 a, sp_f32 b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float joined;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(joined) : "f"(a.v), "f"(b.v));
    return joined;
#else
    return a == b ? sp_float_from_bits(sp_float_bits(a) & sp_float_bits(b)) : b > a || b != b ? b : a;
#endif
}
SP_CUDA_FUNCTION sp_f64 sp_join_max(sp_f64 a, sp_f64 b)
{
    return a == b ? sp_double_from_bits(sp_double_bits(a) & sp_double_bits(b)) : b > a || b != b ? b : a;
}

/* The smaller number, likewise. */
template <class T> SP_CUDA_FUNCTION T sp_join_min(T a, T b)
{
    return b < a ? b : a;
}
SP_CUDA_FUNCTION sp_f32 sp_join_min(sp_f32 a, sp_f32 b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float joined;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(joined) : "f"(a.v), "f"(b.v));
    return joined;
#else
    return a == b ? sp_float_from_bits(sp_float_bits(a) | sp_float_bits(b)) : b < a || b != b ? b : a;
#endif
}
SP_CUDA_FUNCTION sp_f64 sp_join_min(sp_f64 a, sp_f64 b)
{
    return a == b ? sp_double_from_bits(sp_double_bits(a) | sp_double_bits(b)) : b < a || b != b ? b : a;
}
