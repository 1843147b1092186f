/* SPDX-License-Identifier: Apache-2.0 */
/* y = a op b with broadcasting; y may be the memory of an operand that has y's shape. Floats: one
 * rounded operation, NaNs canonical; f32 then the activation. Integers wrap; a division by 0 gives
 * 0 and the smallest number divided by -1 itself, on every processor. */
#include "ops/cpu/gemm/activate.h"
#include "ops/cpu/elementwise/elementwise.h"
#include "ops/cpu/arch/math_f64.h"

#define SP_TYPE f32
#include "ops/cpu/elementwise/arithmetic_float.inc.h"
#define SP_NAME add_f32
#include "ops/cpu/elementwise/binary_activated.inc.h"
#define SP_NAME sub_f32
#include "ops/cpu/elementwise/binary_activated.inc.h"
#define SP_NAME mul_f32
#include "ops/cpu/elementwise/binary_activated.inc.h"
#define SP_NAME div_f32
#include "ops/cpu/elementwise/binary_activated.inc.h"
#undef SP_TYPE

#define SP_TYPE f64
#include "ops/cpu/elementwise/arithmetic_float.inc.h"
#include "ops/cpu/elementwise/arithmetic.inc.h"
#undef SP_TYPE

#define SP_TEXT "ops/cpu/elementwise/arithmetic_signed.inc.h"
#include "ops/cpu/arch/each_signed.inc.h"
#define SP_TEXT "ops/cpu/elementwise/arithmetic_unsigned.inc.h"
#include "ops/cpu/arch/each_unsigned.inc.h"
