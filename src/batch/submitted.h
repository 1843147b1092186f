/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs: no thread waits for them. */
#ifndef SP_BATCH_SUBMITTED_H
#define SP_BATCH_SUBMITTED_H

#include "batch/batch.h"
#include "batch/batch_run.h"
#include "exec/future.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"

/* A run without its model and plan. Errors: SP_BUSY if too many are not done, SP_OUT_OF_MEMORY,
 * SP_CLOSED. */
sp_status sp__submitted_create(sp_rt_device *device, const sp_executable *executable,
                               const sp_batch_line *line, const sp_run_ports *ports,
                               sp_rt_future **out);
/* Takes a hold on the model, takes over the use of the plan, also on an error, and starts or queues
 * the run. Errors: SP_BUSY by the terms. */
sp_status sp__submitted_accept(sp_rt_future *run, sp_rt_model *model, sp_plan_entry *entry,
                               const sp_batch_line *line, const sp_run_terms *terms,
                               sp_future *out);

/* The same for a request of a batch queue, which takes a hold on the queue and its reserved place.
 * The plan is in use. Errors: SP_OUT_OF_MEMORY, SP_CLOSED. */
sp_status sp__submitted_create_in(const sp_rt_batch_queue *queue, sp_plan_entry *plan_entry,
                                  sp_run_slots *slots, const sp_run_ports *ports,
                                  sp_rt_future **out);
sp_future sp__submitted_accept_in(sp_rt_future *run, sp_rt_batch_queue *queue,
                                  sp_plan_entry *plan_entry, const sp_run_terms *terms);
/* The batch is on a queue, and `point` is its last: waits for its submitted runs help it. By the
 * thread that leads it or has submitted it. */
void sp__submitted_start_in_batch(const sp_batch *batch, sp_point point);

#endif
