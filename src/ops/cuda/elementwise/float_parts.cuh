/* SPDX-License-Identifier: Apache-2.0 */
/* The elementwise functions of both float types (ops/cpu/elementwise/unary_float.inc.h and
 * function_float.inc.h), and their kernels. */

/* From here on floats have no fraction: adding it rounds to an integer, half to even. */
SP_CUDA_FUNCTION sp_f32 sp_whole(sp_f32)
{
    return 8388608.0f;
}
SP_CUDA_FUNCTION sp_f64 sp_whole(sp_f64)
{
    return 4503599627370496.0;
}

template <class T> SP_CUDA_FUNCTION T sp_neg(T x)
{
    return -x;
}

template <class T> SP_CUDA_FUNCTION T sp_sign(T x)
{
    return x > 0 ? T(1) : x < 0 ? T(-1) : x == x ? T(0) : x;
}

template <class T> SP_CUDA_FUNCTION T sp_reciprocal(T x)
{
    return T(1) / x;
}

template <class T> SP_CUDA_FUNCTION T sp_round(T x)
{
    const T size = sp_abs(x), whole = sp_whole(x);
    return sp_copysign(size < whole ? (size + whole) - whole : size, x);
}

template <class T> SP_CUDA_FUNCTION T sp_floor(T x)
{
    const T near = sp_round(x);
    return sp_copysign(near > x ? near - 1 : near, x);
}

template <class T> SP_CUDA_FUNCTION T sp_ceil(T x)
{
    const T near = sp_round(x);
    return sp_copysign(near < x ? near + 1 : near, x);
}

template <class T> SP_CUDA_FUNCTION T sp_hard_swish(T x)
{
    T gate = x * (T(1) / T(6)) + T(0.5f);
    gate = gate < 0 ? T(0) : gate;
    return x * (gate > 1 ? T(1) : gate);
}

template <class T> SP_CUDA_FUNCTION T sp_divide(T x, T alpha, T)
{
    return x / alpha;
}

/* ---- functions of two numbers; of equals the first, a NaN is the result ---- */

template <class T> SP_CUDA_FUNCTION T sp_larger(T a, T b)
{
    return b > a || b != b ? b : a;
}

template <class T> SP_CUDA_FUNCTION T sp_smaller(T a, T b)
{
    return b < a || b != b ? b : a;
}

template <class T> SP_CUDA_FUNCTION T sp_prelu(T x, T slope)
{
    return x < 0 ? slope * x : x;
}

/* ---- functions with a bool as result ---- */

template <class T> SP_CUDA_FUNCTION bool sp_is_less(T a, T b)
{
    return a < b;
}

template <class T> SP_CUDA_FUNCTION bool sp_is_less_or_equal(T a, T b)
{
    return a <= b;
}

template <class T> SP_CUDA_FUNCTION bool sp_is_equal(T a, T b)
{
    return a == b;
}

template <class T> SP_CUDA_FUNCTION bool sp_is_nan(T x, T, T)
{
    return x != x;
}

/* alpha: does +inf count; beta: does -inf? */
template <class T> SP_CUDA_FUNCTION bool sp_is_inf(T x, T alpha, T beta)
{
    return (x == sp_limits<T>::most() && alpha != 0) || (x == sp_limits<T>::least() && beta != 0);
}

/* ---- kernels, of the type T with elements E ---- */

#define SP_FLOAT_UNARY(name, T, E, function)                                                       \
    SP_CUDA_KERNEL(name, sp_flat_constants)                                                        \
    {                                                                                              \
        sp_map<E, E>(bindings, k.count, [](E x) { return sp_store(function(T(x))); });             \
    }

#define SP_FLOAT_FUNCTION(name, T, E, function)                                                    \
    SP_CUDA_KERNEL(name, sp_function_constants)                                                    \
    {                                                                                              \
        const T alpha = (E)k.alpha, beta = (E)k.beta;                                              \
        sp_map<E, E>(bindings, k.count,                                                            \
                     [=](E x) { return sp_store(function(T(x), alpha, beta)); });                  \
    }

#define SP_FLOAT_PREDICATE(name, T, E, function)                                                   \
    SP_CUDA_KERNEL(name, sp_function_constants)                                                    \
    {                                                                                              \
        const T alpha = (E)k.alpha, beta = (E)k.beta;                                              \
        sp_map<E, uint8_t>(bindings, k.count,                                                      \
                           [=](E x) { return (uint8_t)function(T(x), alpha, beta); });             \
    }

#define SP_FLOAT_BINARY(name, T, E, function)                                                      \
    SP_CUDA_KERNEL(name, sp_binary_constants)                                                      \
    {                                                                                              \
        sp_map_pairs<E, E>(bindings, k, [](E a, E b) { return sp_store(function(T(a), T(b))); });  \
    }

#define SP_FLOAT_COMPARISON(name, T, E, function)                                                  \
    SP_CUDA_KERNEL(name, sp_binary_constants)                                                      \
    {                                                                                              \
        sp_map_pairs<E, uint8_t>(bindings, k,                                                      \
                                 [](E a, E b) { return (uint8_t)function(T(a), T(b)); });          \
    }

/* Those that both types have. */
#define SP_FLOAT_KERNELS(suffix, T, E)                                                             \
    SP_FLOAT_UNARY(neg_##suffix, T, E, sp_neg)                                                     \
    SP_FLOAT_UNARY(abs_##suffix, T, E, sp_abs)                                                     \
    SP_FLOAT_UNARY(sign_##suffix, T, E, sp_sign)                                                   \
    SP_FLOAT_UNARY(sqrt_##suffix, T, E, sp_sqrt)                                                   \
    SP_FLOAT_UNARY(reciprocal_##suffix, T, E, sp_reciprocal)                                       \
    SP_FLOAT_UNARY(ceil_##suffix, T, E, sp_ceil)                                                   \
    SP_FLOAT_UNARY(floor_##suffix, T, E, sp_floor)                                                 \
    SP_FLOAT_UNARY(round_##suffix, T, E, sp_round)                                                 \
    SP_FLOAT_UNARY(log_##suffix, T, E, sp_log)                                                     \
    SP_FLOAT_UNARY(softsign_##suffix, T, E, sp_softsign)                                           \
    SP_FLOAT_UNARY(hard_swish_##suffix, T, E, sp_hard_swish)                                       \
    SP_FLOAT_FUNCTION(leaky_relu_##suffix, T, E, sp_leaky_relu)                                    \
    SP_FLOAT_FUNCTION(hard_sigmoid_##suffix, T, E, sp_hard_sigmoid)                                \
    SP_FLOAT_FUNCTION(thresholded_relu_##suffix, T, E, sp_thresholded_relu)                        \
    SP_FLOAT_FUNCTION(clip_##suffix, T, E, sp_clip)                                                \
    SP_FLOAT_FUNCTION(divide_##suffix, T, E, sp_divide)                                            \
    SP_FLOAT_PREDICATE(is_nan_##suffix, T, E, sp_is_nan)                                           \
    SP_FLOAT_PREDICATE(is_inf_##suffix, T, E, sp_is_inf)                                           \
    SP_FLOAT_BINARY(max_##suffix, T, E, sp_larger)                                                 \
    SP_FLOAT_BINARY(min_##suffix, T, E, sp_smaller)                                                \
    SP_FLOAT_BINARY(prelu_##suffix, T, E, sp_prelu)                                                \
    SP_FLOAT_COMPARISON(equal_##suffix, T, E, sp_is_equal)                                         \
    SP_FLOAT_COMPARISON(less_##suffix, T, E, sp_is_less)                                           \
    SP_FLOAT_COMPARISON(less_or_equal_##suffix, T, E, sp_is_less_or_equal)
