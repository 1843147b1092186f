/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that are both ops and gates of recurrent layers, for floats and doubles. A NaN gives
 * the canonical NaN (thresholded_relu: 0); each operation is rounded separately. Private to
 * kernels. */
#ifndef SP_OPS_CPU_ARCH_FLOAT_FUNCTIONS_H
#define SP_OPS_CPU_ARCH_FLOAT_FUNCTIONS_H

#include "ops/cpu/arch/math_f32.h"
#include "ops/cpu/arch/math_f64.h"
#include "ops/cpu/arch/typed.h"

#define SP_TYPE f32
#include "ops/cpu/arch/float_functions.inc.h"
#define SP_TYPE f64
#include "ops/cpu/arch/float_functions.inc.h"

#endif
