/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: the step that computes an activation's input applies the activation, too; a product adds
 * what its result is added to. Runs after recording and before memory is assigned. */
#ifndef SP_PLAN_PLAN_FUSE_H
#define SP_PLAN_PLAN_FUSE_H

#include "plan/plan_build.h"

/* Removes the steps of a Relu, Sigmoid or Tanh, and of the pair of Sigmoid and Mul that is x *
 * sigmoid(x): the step that computes their input (Gemm, MatMul, Conv, Add, Sub, Mul, Div of floats)
 * writes their output instead, if no other step reads the values between and no output is one of
 * them. In the same way removes the Add behind a product (Gemm without C, MatMul) of one matrix, if
 * the other operand is there before the product and has a row, or the same row, for each of the
 * product's. Views in between are allowed. Changes no bit. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_fuse(sp_plan_builder *builder);

/* "Gemm" and "Relu" to "Gemm+Relu", the name of a fused step. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_append_name(sp_plan_builder *builder, const char **name, const char *more);

#endif
