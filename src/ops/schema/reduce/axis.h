/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that compute each row along some dimensions of input 0 independently, and write an output
 * with its rows in the same order. */
#ifndef SP_OPS_SCHEMA_REDUCE_AXIS_H
#define SP_OPS_SCHEMA_REDUCE_AXIS_H

#include "ops/lowering.h"

/* Rows along dimensions [axis, end) of input 0; fields specific to an op are left 0. */
sp_axis_constants sp__axis_constants(const sp_op_call *call, uint32_t axis, uint32_t end);

/* Emits the one dispatch, from input 0 to output 0. */
sp_status sp__axis_dispatch(const sp_op_call *call, sp_lowering *lowering, sp_kernel_id kernel,
                            const sp_axis_constants *k);

/* The dimensions [*axis, *end) of a row of Softmax, LogSoftmax and Hardmax. Up to version 12 the
 * axis splits the dimensions in two, and a row is the second part (one element if it is empty);
 * from 13 on a row is the axis alone. Errors: SP_MISMATCH. */
sp_status sp__softmax_axes(const sp_op_call *call, uint32_t *axis, uint32_t *end);

#endif
