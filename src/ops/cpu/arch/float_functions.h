/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are ops of their own and gates of recurrent layers too, for floats and doubles. A
 * NaN gives the canonical NaN (thresholded_relu: 0); each operation is rounded as it is written.
 * Private to kernels. */
#ifndef SP_OPS_CPU_ARCH_FLOAT_FUNCTIONS_H
#define SP_OPS_CPU_ARCH_FLOAT_FUNCTIONS_H

#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/arch/math_f64.h"

#define SP_FLOAT_FUNCTIONS(suffix, type, canonical, size_of)                                       \
    static SP_ALWAYS_INLINE type sp_softsign_##suffix(type x)                                      \
    {                                                                                              \
        return canonical(x / (1 + size_of(x)));                                                    \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_leaky_relu_##suffix(type x, type alpha, type beta)             \
    {                                                                                              \
        (void)beta;                                                                                \
        return canonical(x < 0 ? alpha * x : x);                                                   \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_hard_sigmoid_##suffix(type x, type alpha, type beta)           \
    {                                                                                              \
        type y = alpha * x + beta;                                                                 \
        y = y < 0 ? 0 : y;                                                                         \
        return canonical(y > 1 ? 1 : y);                                                           \
    }                                                                                              \
    static SP_ALWAYS_INLINE type sp_thresholded_relu_##suffix(type x, type alpha, type beta)       \
    {                                                                                              \
        (void)beta;                                                                                \
        return x > alpha ? x : 0;                                                                  \
    }

SP_FLOAT_FUNCTIONS(f32, float, sp_canonical, sp_absf)
SP_FLOAT_FUNCTIONS(f64, double, sp_canonical_f64, sp_abs)

#endif
