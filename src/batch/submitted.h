/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs: no thread waits for them. */
#ifndef SP_BATCH_SUBMITTED_H
#define SP_BATCH_SUBMITTED_H

#include "batch/batch_run.h"
#include "exec/future.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"

/* A run without its model and plan. Errors: SP_BUSY if too many are not done, SP_OUT_OF_MEMORY,
 * SP_CLOSED. */
sp_status sp__submitted_create(sp_rt_device *device, const sp_executable *executable,
                               const sp_batch_line *line, const sp_run_ports *ports,
                               sp_rt_future **out);
/* Takes a hold on the model, takes over the use of the plan, and starts or queues the run. */
sp_future sp__submitted_accept(sp_rt_future *run, sp_rt_model *model, sp_plan_entry *entry,
                               const sp_batch_line *line);

#endif
