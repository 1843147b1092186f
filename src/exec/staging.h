/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's tensors on a device that does not see the caller's memory: a session keeps a place
 * for each of them in memory of the host that the device reaches. Small ones are read and written
 * there by the kernels themselves, which is faster than any copy; large ones have a second place in
 * memory of the device, and the lists copy between the two. All places are fixed, so the lists
 * never change. */
#ifndef SP_EXEC_STAGING_H
#define SP_EXEC_STAGING_H

#include "device/command.h"
#include "plan/plan.h"
#include "runtime/runtime_state.h"

typedef struct sp_staging sp_staging;

sp_status sp__staging_create(sp_rt_device *device, const sp_graph_plan *plan, bool is_spare,
                             sp_staging **out);
/* NULL is allowed. */
void sp__staging_destroy(sp_staging *staging);

/* Where the device's steps find port `port` (inputs, then outputs). */
sp_binding sp__staging_bind(const sp_staging *staging, uint32_t port);
/* Where the host has it: the same place, or another of as many bytes. */
sp_binding sp__staging_bind_host(const sp_staging *staging, uint32_t port);

/* Before and after a run: the caller's bytes. An output may be NULL. */
void sp__staging_take(const sp_staging *staging, const void *const *inputs);
void sp__staging_give(const sp_staging *staging, void *const *outputs);

#endif
