/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models that one plan cannot compute, since a shape or the flow of control follows from
 * values of the run (docs/decisions/0025): partial plans one after the other, on one stream, with
 * the nodes between them computed by the run. Owned by the run's thread. */
#ifndef SP_EXEC_PARTIAL_PARTIAL_RUN_H
#define SP_EXEC_PARTIAL_PARTIAL_RUN_H

#include "exec/model_object.h"
#include "runtime/current_stream.h"

typedef struct sp_partial_run sp_partial_run;

/* Computes all outputs. `entry` holds the model's first plan, which is partial; it is released
 * here, also on an error. `data` are the addresses of its inputs. `stream` NULL: on the calling
 * thread. Errors: as sp_model_run; SP_CLOSED if the device is closed during the run. */
sp_status sp__partial_run_execute(sp_rt_model *model, sp_plan_entry *entry, const void *const *data,
                                  const sp_stream_ref *stream, sp_partial_run **out);
void sp__partial_run_destroy(sp_partial_run *run);

/* A plan without steps: the model's inputs and outputs with the shapes of this run. */
const sp_graph_plan *sp__partial_run_made(const sp_partial_run *run);
/* Copies the outputs that have an address. */
void sp__partial_run_copy_outputs(const sp_partial_run *run, void *const *outputs);

#endif
