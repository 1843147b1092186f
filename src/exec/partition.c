/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/partition.h"

#include "base/error.h"
#include "base/heap.h"
#include "ops/device_kernels.h"

sp_status sp__partition(const sp_graph_plan *plan, const sp_rt_device *device, const char *cpu_ops,
                        sp_segments *out)
{
    uint8_t *devices = sp_calloc(plan->step_count, sizeof *devices);
    if (devices == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a plan");
    if (!device->dev->vtable->kind->is_fallback) {
        sp__segments_assign(plan, sp__device_kernels(device->dev), cpu_ops, devices);
    }
    const sp_status status = sp__segments_partition(plan, devices, out);
    sp_free(devices);
    return status;
}
