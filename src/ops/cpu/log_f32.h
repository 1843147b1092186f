/* SPDX-License-Identifier: Apache-2.0 */
/* The natural logarithm of a float, without libm and without branches, as those of math_f32.h. The
 * polynomial is that of the Cephes library's logf. */
#ifndef SP_OPS_CPU_LOG_F32_H
#define SP_OPS_CPU_LOG_F32_H

#include "ops/cpu/isa.h"

/* Within 1 ulp over all positive floats, subnormals too; log(0) is -inf, of a negative number NaN.
 */
static SP_ALWAYS_INLINE float sp_logf(float x)
{
    const float scaled = x < 0x1p-126f ? x * 0x1p23f : x;
    const float offset = x < 0x1p-126f ? -23.0f : 0.0f;
    /* x = m * 2^e with m from sqrt(1/2) up to sqrt(2). */
    const uint32_t bits = sp_float_bits(scaled) - 0x3f3504f3u;
    const float e = (float)((int32_t)bits >> 23) + offset;
    const float z = sp_float_from_bits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 7.0376836292e-2f;
    p = sp_fmaf(p, z, -1.1514610310e-1f);
    p = sp_fmaf(p, z, 1.1676998740e-1f);
    p = sp_fmaf(p, z, -1.2420140846e-1f);
    p = sp_fmaf(p, z, 1.4249322787e-1f);
    p = sp_fmaf(p, z, -1.6668057665e-1f);
    p = sp_fmaf(p, z, 2.0000714765e-1f);
    p = sp_fmaf(p, z, -2.4999993993e-1f);
    p = sp_fmaf(p, z, 3.3333331174e-1f);
    const float square = z * z;
    p = p * z * square;
    p = sp_fmaf(e, -2.12194440e-4f, p);
    p = sp_fmaf(-0.5f, square, p);
    float y = sp_fmaf(e, 0.693359375f, z + p);
    const float infinity = __builtin_inff();
    y = x == infinity ? infinity : y;
    y = x == 0 ? -infinity : y;
    return x >= 0 ? y : __builtin_nanf("");
}

#endif
