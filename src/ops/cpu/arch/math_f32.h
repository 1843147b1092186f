/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a float for the CPU's kernels: the words that their text is written in, and it.
 */
#ifndef SP_OPS_CPU_ARCH_MATH_F32_H
#define SP_OPS_CPU_ARCH_MATH_F32_H

#include "ops/cpu/arch/isa.h"

#define SP_MATH_INLINE static SP_ALWAYS_INLINE
/* One that is called, since several copies of it would be long. */
#define SP_MATH_CALLED static inline

typedef float sp_f32;
typedef double sp_f64;

#include "ops/math/math_f32.h"

#endif
