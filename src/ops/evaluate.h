/* SPDX-License-Identifier: Apache-2.0 */
/* Running one call at once on the calling thread, with the same kernels as any run: constant
 * folding and packing. */
#ifndef SP_OPS_EVALUATE_H
#define SP_OPS_EVALUATE_H

#include "ops/lowering.h"
#include "tensor/array.h"

/* Computes the outputs of an inferred call whose inputs all have data, with the kernels of a table
 * of the CPU. `outputs` gets one array per
 * output, owned by the caller; none on an error. */
sp_status sp__evaluate(const sp_op_call *call, const sp_kernel *kernels, sp_array *outputs);

/* How input `input` would be laid out: `lowering` gets the one dispatch, by which equal packings of
 * one weight are told, and *bytes the size; 0 if there is nothing to do. */
sp_status sp__evaluate_pack_plan(const sp_op_call *call, uint32_t input, sp_lowering *lowering,
                                 uint64_t *bytes);
/* Lays out that input, which has data, into those bytes. */
sp_status sp__evaluate_pack(const sp_op_call *call, const sp_lowering *lowering,
                            const sp_kernel *kernels, void *out);

#endif
