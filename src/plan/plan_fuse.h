/* SPDX-License-Identifier: Apache-2.0 */
/* The middle of compiling: an activation becomes a part of the step that computes its input. Steps
 * have been recorded, places are not yet given. */
#ifndef SP_PLAN_PLAN_FUSE_H
#define SP_PLAN_PLAN_FUSE_H

#include "plan/plan_build.h"

/* A Relu, Sigmoid or Tanh, and the pair of Sigmoid and Mul that is x * sigmoid(x), go away as
 * steps, and the step that computed their input (Gemm, MatMul, Conv, Add, Sub, Mul, Div of floats)
 * writes their output instead, if nobody else wants the values between: no other step reads them,
 * no output shows them. Views on the way do not matter. Changes no bit. Errors: SP_OUT_OF_MEMORY.
 */
sp_status sp__plan_fuse(sp_plan_builder *builder);

#endif
