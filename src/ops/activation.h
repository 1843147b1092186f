/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernels are activations, and which can apply one to what they compute. Fusing the two saves
 * a dispatch and a pass over memory and changes no bit (docs/decisions/0017-fused-activations.md).
 */
#ifndef SP_OPS_ACTIVATION_H
#define SP_OPS_ACTIVATION_H

#include "ops/cpu/arch/kernels.h"

/* What the kernel does to each element; SP_ACTIVATION_NONE if it is no activation. */
sp_activation sp__activation_of(sp_kernel_id kernel);

/* The place in a kernel's constants that says which activation it applies to its one output, an
 * sp_activation; NULL if the kernel applies none. */
uint8_t *sp__activation_field(sp_kernel_id kernel, void *constants);

#endif
