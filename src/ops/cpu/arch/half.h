/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of f16 and bf16 for the CPU's kernels. */
#ifndef SP_OPS_CPU_ARCH_HALF_H
#define SP_OPS_CPU_ARCH_HALF_H

#include "ops/cpu/arch/math_f64.h"

#include "ops/math/half.h"

#endif
