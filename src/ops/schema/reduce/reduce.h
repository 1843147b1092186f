/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions as part of the lowering of other ops. */
#ifndef SP_OPS_SCHEMA_REDUCE_REDUCE_H
#define SP_OPS_SCHEMA_REDUCE_REDUCE_H

#include "ops/lowering.h"

/* Of a contiguous tensor of shape `x`, over the dimensions whose bits are set in `axes`; outputs
 * are in the order of the other dimensions. No shift. */
sp_reduce_constants sp__reduce_constants(const sp_shape *x, uint32_t axes, sp_reduction reduction);

/* Emits the dispatch; the caller binds x, the shift if there is one, and y. */
sp_status sp__reduce_dispatch(sp_lowering *lowering, const sp_reduce_constants *k, sp_dtype dtype,
                              sp_dispatch **out);

/* The scratch buffers with mean and variance for each output of a reduction, as f32. */
typedef struct sp_statistics {
    uint32_t mean, variance;
} sp_statistics;

/* Emits the dispatches that compute them from input 0, of type f32, over `axes`. */
sp_status sp__reduce_statistics(const sp_op_call *call, sp_lowering *lowering, uint32_t axes,
                                sp_statistics *out);

#endif
