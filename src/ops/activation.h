/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels that are operations on single elements (ops/element_ops.h), and those that can apply
 * an activation to their output. Fusing the two saves a dispatch and a pass over memory and changes
 * no bit (docs/decisions/0017-fused-activations.md). */
#ifndef SP_OPS_ACTIVATION_H
#define SP_OPS_ACTIVATION_H

#include "ops/cpu/arch/kernels.h"

/* The activation that the kernel computes with these constants, its own; SP_ACTIVATION_NONE if it
 * is none. */
sp_activation sp__activation_of(sp_kernel_id kernel, const void *constants);

/* The field of a kernel's constants with the activation that it applies to its one output, an
 * sp_activation; NULL if the kernel cannot apply one. */
uint8_t *sp__activation_field(sp_kernel_id kernel, void *constants);

/* The operation of an image and a number that add_f32, sub_f32, mul_f32 or div_f32 computes, where
 * the number is the first operand if `is_reversed`; SP_ACTIVATION_NONE of other kernels. */
uint8_t sp__element_op_of(sp_kernel_id kernel, bool is_reversed);

/* The kernel that computes this operation, of numbers or HardSwish, and no other. */
sp_kernel_id sp__element_kernel(uint8_t op);

#endif
