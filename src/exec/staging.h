/* SPDX-License-Identifier: Apache-2.0 */
/* Staging buffers for the caller's tensors on a device that does not access the caller's memory: a
 * context has one buffer per tensor in host memory that the device accesses. Kernels read and write
 * small tensors there directly, which is faster than a copy; large tensors have a second buffer in
 * each device memory, and the command lists copy between the two. All addresses are fixed, so the
 * lists never change. Runs on tensors have such buffers where a plan has several targets, on any
 * device. */
#ifndef SP_EXEC_STAGING_H
#define SP_EXEC_STAGING_H

#include "device/command.h"
#include "exec/port_rows.h"
#include "exec/target.h"

typedef struct sp_staging sp_staging;

/* Pinned for the first target, the model's device. `rows` zeroed: none; else that device has its
 * own memory. */
sp_status sp__staging_create(const sp_target *targets, uint32_t target_count,
                             const sp_graph_plan *plan, const sp_port_rows *rows, bool is_spare,
                             sp_staging **out);
/* NULL is allowed. */
void sp__staging_destroy(sp_staging *staging);

/* The buffer of port `port` (inputs, then outputs) for the steps of a target. The fallback uses the
 * one in host memory. */
sp_binding sp__staging_bind(const sp_staging *staging, uint32_t target, uint32_t port);

/* The host address of the buffer of port `port`: of inputs before a run, of outputs after it. */
void *sp__staging_at(const sp_staging *staging, uint32_t port);

/* Of a port whose rows may lie anywhere in pinned memory: where each row is, in bytes behind the
 * port's host address, and the memory of these places; else NULL. At first, and whenever it is set
 * so, row r is in the port's own buffer, r rows behind its beginning. */
int64_t *sp__staging_places(const sp_staging *staging, uint32_t port);
sp_binding sp__staging_bind_places(const sp_staging *staging, uint32_t port);

/* Copy the caller's bytes in before a run and out after it. An output may be NULL. */
void sp__staging_copy_in(const sp_staging *staging, const void *const *inputs);
void sp__staging_copy_out(const sp_staging *staging, void *const *outputs);

#endif
