/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise kernels of integers that the program core does not have
 * (ops/cpu/elementwise/arithmetic_*.inc.h, remainder_*.inc.h, unary_*.inc.h, pow.c). */

template <class T> SP_CUDA_FUNCTION T sp_div_unsigned(T a, T b)
{
    return b == 0 ? (T)0 : (T)(a / b);
}

template <class T> SP_CUDA_FUNCTION T sp_larger(T a, T b)
{
    return b > a ? b : a;
}

template <class T> SP_CUDA_FUNCTION T sp_smaller(T a, T b)
{
    return b < a ? b : a;
}

/* Remainders with the sign of the dividend, and of the divisor. */
template <class T> SP_CUDA_FUNCTION T sp_remainder(T a, T b)
{
    return b == 0 || (sp_limits<T>::is_signed && b == (T)-1) ? (T)0 : (T)(a % b);
}

template <class T> SP_CUDA_FUNCTION T sp_modulo(T a, T b)
{
    const T rest = sp_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? (T)(rest + b) : rest;
}

template <class T> SP_CUDA_FUNCTION uint8_t sp_is_equal(T a, T b)
{
    return a == b;
}

template <class T> SP_CUDA_FUNCTION uint8_t sp_is_less(T a, T b)
{
    return a < b;
}

template <class T> SP_CUDA_FUNCTION uint8_t sp_is_less_or_equal(T a, T b)
{
    return a <= b;
}

template <class T> SP_CUDA_FUNCTION T sp_neg(T x)
{
    return (T)(0 - (uint64_t)x);
}

template <class T> SP_CUDA_FUNCTION T sp_abs(T x)
{
    return x < 0 ? sp_neg(x) : x;
}

template <class T> SP_CUDA_FUNCTION T sp_relu(T x)
{
    return x < 0 ? (T)0 : x;
}

template <class T> SP_CUDA_FUNCTION T sp_sign(T x)
{
    return (T)((x > 0) - (x < 0));
}

/* ---- those that both have ---- */

#define SP_INTEGER_KERNELS(suffix, T)                                                              \
    SP_BINARY_KERNEL(max_##suffix, T, T, sp_larger<T>)                                             \
    SP_BINARY_KERNEL(min_##suffix, T, T, sp_smaller<T>)                                            \
    SP_BINARY_KERNEL(mod_##suffix, T, T, sp_modulo<T>)                                             \
    SP_BINARY_KERNEL(less_##suffix, T, uint8_t, sp_is_less<T>)                                     \
    SP_BINARY_KERNEL(less_or_equal_##suffix, T, uint8_t, sp_is_less_or_equal<T>)                   \
    SP_UNARY_KERNEL(sign_##suffix, T, T, sp_sign<T>)

#define SP_SIGNED_KERNELS(suffix, T)                                                               \
    SP_INTEGER_KERNELS(suffix, T)                                                                  \
    SP_BINARY_KERNEL(fmod_##suffix, T, T, sp_remainder<T>)                                         \
    SP_BINARY_KERNEL(equal_##suffix, T, uint8_t, sp_is_equal<T>)                                   \
    SP_UNARY_KERNEL(neg_##suffix, T, T, sp_neg<T>)                                                 \
    SP_UNARY_KERNEL(abs_##suffix, T, T, sp_abs<T>)                                                 \
    SP_UNARY_KERNEL(relu_##suffix, T, T, sp_relu<T>)

#define SP_UNSIGNED_KERNELS(suffix, T)                                                             \
    SP_INTEGER_KERNELS(suffix, T)                                                                  \
    SP_BINARY_KERNEL(div_##suffix, T, T, sp_div_unsigned<T>)

/* The arithmetic of types that core does not have; a narrow type wraps in a wider one. */
#define SP_NARROW_KERNELS(suffix, T)                                                               \
    SP_BINARY_KERNEL(add_##suffix, T, T, sp_add_ints<T, uint32_t>)                                 \
    SP_BINARY_KERNEL(sub_##suffix, T, T, sp_sub_ints<T, uint32_t>)                                 \
    SP_BINARY_KERNEL(mul_##suffix, T, T, sp_mul_ints<T, uint32_t>)                                 \
    SP_BINARY_KERNEL(div_##suffix, T, T, sp_div_ints<T, uint32_t>)

SP_SIGNED_KERNELS(i8, int8_t)
SP_SIGNED_KERNELS(i16, int16_t)
SP_SIGNED_KERNELS(i32, int32_t)
SP_SIGNED_KERNELS(i64, int64_t)
SP_UNSIGNED_KERNELS(u8, uint8_t)
SP_UNSIGNED_KERNELS(u16, uint16_t)
SP_UNSIGNED_KERNELS(u32, uint32_t)
SP_UNSIGNED_KERNELS(u64, uint64_t)
SP_NARROW_KERNELS(i8, int8_t)
SP_NARROW_KERNELS(i16, int16_t)

/* ---- powers and slopes ---- */

SP_CUDA_CALLED uint64_t sp_pow_unsigned(uint64_t x, uint64_t n)
{
    uint64_t result = 1;
#pragma unroll 1
    for (; n > 0; n >>= 1, x *= x) {
        if (n & 1) result *= x;
    }
    return result;
}

/* A negative exponent gives the quotient 1 / x^-n, of 0 too. */
SP_CUDA_FUNCTION int64_t sp_pow_signed(int64_t x, int64_t n)
{
    if (n >= 0) return (int64_t)sp_pow_unsigned((uint64_t)x, (uint64_t)n);
    if (x != 1 && x != -1) return 0;
    return n & 1 ? x : 1;
}

SP_BINARY_KERNEL(pow_i64, int64_t, int64_t, sp_pow_signed)
SP_BINARY_KERNEL(pow_u64, uint64_t, uint64_t, sp_pow_unsigned)

template <class T, class U> SP_CUDA_FUNCTION T sp_prelu_ints(T x, T slope)
{
    return x < 0 ? sp_mul_ints<T, U>(slope, x) : x;
}

SP_BINARY_KERNEL(prelu_i32, int32_t, int32_t, sp_prelu_ints<int32_t, uint32_t>)
SP_BINARY_KERNEL(prelu_i64, int64_t, int64_t, sp_prelu_ints<int64_t, uint64_t>)
