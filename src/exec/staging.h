/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's tensors on a device that does not see the caller's memory: a context keeps a place
 * for each of them in memory of the host that the device reaches. Small ones are read and written
 * there by the kernels themselves, which is faster than any copy; large ones have a second place in
 * memory of each device that has its own, and the lists copy between the two. All places are fixed,
 * so the lists never change. */
#ifndef SP_EXEC_STAGING_H
#define SP_EXEC_STAGING_H

#include "device/command.h"
#include "exec/target.h"

typedef struct sp_staging sp_staging;

/* Pinned for the first target, the model's device. */
sp_status sp__staging_create(const sp_target *targets, uint32_t target_count,
                             const sp_graph_plan *plan, bool is_spare, sp_staging **out);
/* NULL is allowed. */
void sp__staging_destroy(sp_staging *staging);

/* Where the steps of a target find port `port` (inputs, then outputs). The fallback's place is the
 * one in memory of the host. */
sp_binding sp__staging_bind(const sp_staging *staging, uint32_t target, uint32_t port);

/* Before and after a run: the caller's bytes. An output may be NULL. */
void sp__staging_copy_in(const sp_staging *staging, const void *const *inputs);
void sp__staging_copy_out(const sp_staging *staging, void *const *outputs);

#endif
