/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one call on the calling thread, with the same kernels as any run: for constant folding. */
#ifndef SP_OPS_EVALUATE_H
#define SP_OPS_EVALUATE_H

#include "ops/lowering.h"
#include "tensor/array.h"

/* Computes the outputs of an inferred call whose inputs all have data, with a kernel table of the
 * CPU. `outputs` gets one array per output, owned by the caller; none on an error. */
sp_status sp__evaluate(const sp_op_call *call, const sp_kernel *kernels, sp_array *outputs);

#endif
