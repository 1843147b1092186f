/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of integers. */

/* Unsigned arithmetic wraps by definition. A division by 0 gives 0, and the smallest number divided
 * by -1 is itself. */
template <class T, class U> SP_CUDA_FUNCTION T sp_add_ints(T a, T b)
{
    return (T)((U)a + (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_sub_ints(T a, T b)
{
    return (T)((U)a - (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_mul_ints(T a, T b)
{
    return (T)((U)a * (U)b);
}
template <class T, class U> SP_CUDA_FUNCTION T sp_div_ints(T a, T b)
{
    if (b == 0) return 0;
    return b == -1 ? sp_sub_ints<T, U>(0, a) : a / b;
}
