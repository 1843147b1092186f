/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a double for the CPU's kernels, after what their text is written in. */
#ifndef SP_OPS_CPU_ARCH_MATH_F64_H
#define SP_OPS_CPU_ARCH_MATH_F64_H

#include <stdbool.h>

#include "ops/cpu/arch/math_f32.h"

static SP_ALWAYS_INLINE double sp_double_from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static SP_ALWAYS_INLINE uint64_t sp_double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static SP_ALWAYS_INLINE int64_t sp_leading_zeros(uint64_t bits) /* bits != 0 */
{
    return __builtin_clzll(bits);
}

#include "ops/math/math_f64.h"

static SP_ALWAYS_INLINE double sp_abs(double x)
{
    return sp_double_from_bits(sp_double_bits(x) & 0x7fffffffffffffffu);
}

/* As sp_canonical. */
static SP_ALWAYS_INLINE double sp_canonical_f64(double x)
{
    return x == x ? x : SP_NAN_F64;
}

#endif
