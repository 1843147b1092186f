/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of ops/cpu/arch/float_functions.inc.h, for sp_f32 and sp_f64. */

template <class T> SP_CUDA_FUNCTION T sp_softsign(T x)
{
    return sp_store(x / (T(1) + sp_abs(x)));
}

template <class T> SP_CUDA_FUNCTION T sp_leaky_relu(T x, T alpha, T)
{
    return sp_store(x < 0 ? alpha * x : x);
}

template <class T> SP_CUDA_FUNCTION T sp_hard_sigmoid(T x, T alpha, T beta)
{
    T y = alpha * x + beta;
    y = y < 0 ? T(0) : y;
    return sp_store(y > 1 ? T(1) : y);
}

/* As Max with alpha, then Min with beta; a NaN stays any NaN. */
template <class T> SP_CUDA_FUNCTION T sp_clip(T x, T alpha, T beta)
{
    const T above = alpha > x || alpha != alpha ? alpha : x;
    return beta < above || beta != beta ? beta : above;
}

template <class T> SP_CUDA_FUNCTION T sp_thresholded_relu(T x, T alpha, T)
{
    return x > alpha ? x : T(0);
}
