/* SPDX-License-Identifier: Apache-2.0 */
/* Weights and constants in memory that a device's kernels access: in place, on devices that access
 * host memory, else copied once into memory of the device. Weights that are only read packed
 * (packed_weights.h) are not copied. */
#ifndef SP_EXEC_UPLOAD_H
#define SP_EXEC_UPLOAD_H

#include "graph/graph.h"
#include "runtime/runtime_state.h"

typedef struct sp_upload {
    sp_memory *memories; /* one per weight */
    sp_block *block;     /* NULL if nothing was copied */
} sp_upload;

/* Borrows the weights' data. Errors: SP_OUT_OF_MEMORY; then there is nothing to free. */
sp_status sp__upload_init(sp_rt_device *device, const sp_weight *weights, uint32_t count,
                          sp_upload *out);
void sp__upload_deinit(sp_rt_device *device, sp_upload *upload);

#endif
