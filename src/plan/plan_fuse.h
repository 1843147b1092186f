/* SPDX-License-Identifier: Apache-2.0 */
/* Fusion: the step that computes an activation's input applies the activation, too; a product adds
 * what its result is added to; a normalisation, GELU, HardSwish, Mish or look-up in a table that is
 * written in steps is one step. Runs after recording and before memory is assigned. */
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

/* ---- between the files of the pass ---- */

/* The step that writes exactly what `read` reads, if the value has `use_count` uses in all, its
 * write and `read` included; else NULL. */
sp_plan_step *sp__fuse_writer(const sp_plan_builder *builder, const sp_plan_binding *read,
                              uint32_t use_count);

/* The last binding; the builder may still write recorded bindings. */
static inline sp_plan_binding *sp__fuse_output(const sp_plan_step *step)
{
    return (sp_plan_binding *)(uintptr_t)&step->bindings[step->binding_count - 1];
}

/* Removes the steps but the last, which one step is to take the place of. That has the node name of
 * the first and the ops of all, *op_name. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__fuse_into_last(sp_plan_builder *builder, sp_plan_step *const *steps, uint32_t count,
                             const char **op_name);

/* Is the operand one number, of floats, that is known? */
bool sp__fuse_number(const sp_plan_builder *builder, const sp_plan_binding *read, float *out);

/* Counts the reads of x, which two steps before `last` have read and `last` reads instead. */
void sp__fuse_reads(sp_plan_builder *builder, uint32_t x, const sp_plan_step *last);

/* `last` reads what a step before it has read. */
void sp__fuse_moves_read(sp_plan_builder *builder, const sp_plan_binding *read,
                         const sp_plan_step *last);

/* Replaces the steps of each normalisation of rows (ops/fused_constants.h) by one, in the place of
 * the last. Removed steps have no kernel. Call with counted uses, before activations are fused. */
sp_status sp__plan_fuse_norms(sp_plan_builder *builder);

/* The same for GELU, HardSwish and Mish. */
sp_status sp__plan_fuse_gates(sp_plan_builder *builder);

/* The same for what a normalisation by moments does for each element. */
sp_status sp__plan_fuse_moments(sp_plan_builder *builder);

/* Replaces each product of one-hot rows with weights (ops/fused_constants.h) by one step. Call
 * after sums and activations are fused, before removed steps are dropped. */
sp_status sp__plan_fuse_look_up(sp_plan_builder *builder);

/* Replaces the steps of each attention (ops/fused_constants.h) by one, in the place of the last. A
 * pass of its own, behind sp__plan_stride if that is done. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_fuse_attention(sp_plan_builder *builder);

/* Removes each Add whose sum only a normalisation of rows reads, which adds instead
 * (sp_row_norm_constants). A pass of its own, behind sp__plan_stride. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_fuse_addends(sp_plan_builder *builder);

/* Removes each packing of the left operand of a narrow product that another one has computed, which
 * writes its result packed instead. A pass of its own. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_fuse_packed(sp_plan_builder *builder);

/* A narrow product rounds its result, which only attention reads and would round. A pass of its
 * own, behind sp__plan_fuse_packed. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_fuse_halves(sp_plan_builder *builder);

/* "Gemm" and "Relu" to "Gemm+Relu", the name of a fused step. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__plan_append_name(sp_plan_builder *builder, const char **name, const char *more);

#endif
