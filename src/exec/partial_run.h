/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models that one plan cannot compute, since a shape or the flow of control follows from
 * values of the run (docs/decisions/0025): plan after plan, on one stream, with what stands between
 * them computed here. The thread of the run owns everything. */
#ifndef SP_EXEC_PARTIAL_RUN_H
#define SP_EXEC_PARTIAL_RUN_H

#include "exec/model_object.h"
#include "runtime/current_stream.h"

typedef struct sp_partial_run sp_partial_run;

/* Computes all outputs. `place` holds the model's first plan, which is partial; its use ends here,
 * also on an error. `data` are the addresses of its inputs. Without a stream: here and now.
 * Errors: as a run's; SP_CLOSED when the device is closed meanwhile. */
sp_status sp__partial_run_execute(sp_rt_model *model, sp_plan_entry *entry, const void *const *data,
                                  const sp_stream_ref *stream, sp_partial_run **out);
void sp__partial_run_destroy(sp_partial_run *run);

/* The model's inputs and outputs as they turned out to be; a plan without steps. */
const sp_graph_plan *sp__partial_run_made(const sp_partial_run *run);
/* Copies the outputs that have an address. */
void sp__partial_run_copy_outputs(const sp_partial_run *run, void *const *outputs);

#endif
