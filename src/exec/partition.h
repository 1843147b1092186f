/* SPDX-License-Identifier: Apache-2.0 */
/* The partition of a plan over a device and the fallback. */
#ifndef SP_EXEC_PARTITION_H
#define SP_EXEC_PARTITION_H

#include "plan/segments.h"
#include "runtime/runtime_state.h"

/* The segments of the plan on `device`, which is SP_SEGMENT_MODEL in them: on the fallback are the
 * steps that the device has no kernel for, and those in the list `cpu_ops` (op_list.h). Freed with
 * sp__segments_deinit. Errors: SP_OUT_OF_MEMORY; then there is nothing to free. */
sp_status sp__partition(const sp_graph_plan *plan, const sp_rt_device *device, const char *cpu_ops,
                        sp_segments *out);

#endif
