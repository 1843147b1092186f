/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are submitted: they need no thread that waits for them. */
#ifndef SP_EXEC_SUBMITTED_H
#define SP_EXEC_SUBMITTED_H

#include "exec/future.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"

/* A run that lacks only its model and plan. Errors: SP_BUSY if too many are not done,
 * SP_OUT_OF_MEMORY, SP_CLOSED. */
sp_status sp__submitted_create(sp_rt_device *device, const sp_executable *executable,
                               const sp_run_ports *ports, sp_rt_future **out);
/* From now on the run has a hold on the model, and the plan. It is started, or in line. */
sp_future sp__submitted_accept(sp_rt_future *run, sp_rt_model *model, sp_plan_entry *entry);

/* For a wait inside a host function or callback. A run that stands in line for a slot is computed
 * now; one that waits for memory fails with SP_OUT_OF_MEMORY: those in front of it may be waiting
 * for the calling thread. The caller has a hold. */
void sp__submitted_run_inline(sp_rt_future *future);

#endif
