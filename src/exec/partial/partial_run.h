/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of models that one plan cannot compute, since a shape or the flow of control follows from
 * values of the run (docs/decisions/0025): partial plans one after the other, on one stream, with
 * the nodes between them computed by the run. Owned by the run's thread. */
#ifndef SP_EXEC_PARTIAL_PARTIAL_RUN_H
#define SP_EXEC_PARTIAL_PARTIAL_RUN_H

#include "exec/model_object.h"
#include "exec/run_ports.h"
#include "runtime/current_stream.h"

typedef struct sp_partial_run sp_partial_run;
typedef struct sp_rt_future sp_rt_future;

/* Where the plans of a run are computed: on a stream; for a future, by a thread of the library
 * (partial_waits.h); or, with both NULL, inline on the calling thread, without waiting for other
 * runs. */
typedef struct sp_partial_place {
    const sp_stream_ref *stream;
    sp_rt_future *future;
} sp_partial_place;

/* Computes all outputs. `entry` holds the model's first plan, which is partial; it is released
 * here, also on an error. `data` are the addresses of its inputs. The terms are those of its first
 * plan; the others have its priority. Errors: as sp_model_run; SP_CLOSED if the device is closed
 * during the run; SP_CANCELLED between two plans, and in each. */
sp_status sp__partial_run_execute(sp_rt_model *model, sp_plan_entry *entry, const void *const *data,
                                  sp_partial_place place, const sp_run_terms *terms,
                                  sp_partial_run **out);
void sp__partial_run_destroy(sp_partial_run *run);

/* A plan without steps: the model's inputs and outputs with the shapes of this run. */
const sp_graph_plan *sp__partial_run_made(const sp_partial_run *run);
/* Writes the outputs that `ports` names, of which those without memory are allocated. Errors: as
 * sp__run_ports_take_outputs. */
sp_status sp__partial_run_give_outputs(const sp_partial_run *run, sp_host_tensor *outputs,
                                       sp_run_ports *ports);

#endif
