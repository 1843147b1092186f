/* SPDX-License-Identifier: Apache-2.0 */
/* A device that an executable runs on, with what its kernels need there. Those of a plan are in
 * an array by sp_segment.device: SP_SEGMENT_MODEL, and SP_SEGMENT_FALLBACK if it has steps. */
#ifndef SP_EXEC_TARGET_H
#define SP_EXEC_TARGET_H

#include "exec/upload.h"
#include "plan/segments.h"

#define SP_MAX_TARGETS 2

typedef struct sp_target {
    sp_rt_device *device;
    const sp_memory *weights; /* one per weight of the graph: the model's, or `own_weights` */
    sp_upload own_weights;
    sp_upload constants; /* one per constant of the plan */
    sp_memory *packed; /* one per packing of the plan; zeroed if no step on this device reads it */
} sp_target;

#endif
