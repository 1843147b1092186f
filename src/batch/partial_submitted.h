/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs of models that run in several plans: a thread of the library computes each. */
#ifndef SP_BATCH_PARTIAL_SUBMITTED_H
#define SP_BATCH_PARTIAL_SUBMITTED_H

#include "exec/future.h"
#include "exec/model_object.h"
#include "exec/run_ports.h"

/* Submits a run on these terms, whose inputs were taken and whose outputs were named. The run
 * copies both; what `data` points to is used until the future is done. It has no plan while it is
 * queued, since the runs in front may wait for an entry of the cache. Errors: SP_BUSY if too many
 * runs are not done, SP_OUT_OF_MEMORY, SP_EXHAUSTED without a thread, SP_CLOSED. */
sp_status sp__partial_submit(sp_rt_model *model, const sp_run_terms *terms,
                             const sp_host_tensor *outputs, const sp_run_ports *ports,
                             sp_future *out);

#endif
