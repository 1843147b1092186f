/* SPDX-License-Identifier: Apache-2.0 */
/* What the pieces of a run in parts share: partial_run.c goes from plan to plan, the others compute
 * what no plan does. */
#ifndef SP_EXEC_PARTIAL_RUN_BUILD_H
#define SP_EXEC_PARTIAL_RUN_BUILD_H

#include "exec/run_values.h"
#include "exec/partial_run.h"

struct sp_partial_run {
    sp_rt_model *model;
    const sp_graph *graph;
    const sp_stream_ref *stream; /* NULL: here and now */
    sp_run_values values;
    uint64_t plan_count; /* plans that were run */
    uint64_t trip_count; /* times through a body */
    sp_graph_plan made;  /* see sp__partial_run_made; owns its tensors */
};

/* SP_OK while the run may go on: the device works and is not being closed. */
sp_status sp__partial_run_check(const sp_partial_run *run);

/* Computes the outputs of a body whose inputs, and what it captures, are there. `first` is the plan
 * to begin with, whose use ends here, or NULL. */
sp_status sp__partial_run_body(sp_partial_run *run, const sp_graph_body *body,
                               sp_plan_entry *first);

/* The value, which is there; its node has been a stop. */
sp_status sp__partial_run_value(const sp_partial_run *run, uint32_t index, sp_run_value *out);

/* ---- partial_body.c: one time through a body ---- */

/* May the run go through bodies `count` times more? Errors: SP_EXHAUSTED. */
sp_status sp__partial_body_check_trips(const sp_partial_run *run, uint64_t count);
/* Counts a time; nothing of an earlier one is left. Errors: as the two checks. */
sp_status sp__partial_body_begin(sp_partial_run *run, const sp_graph_body *body);
/* Gives the body an input; the reference is taken over, also on an error. Errors: SP_MISMATCH if
 * its type is another one than the file says. */
sp_status sp__partial_body_set_input(sp_partial_run *run, const sp_graph_slot *slot,
                                     sp_run_value *value);
/* A scalar, or a list of one element where the body's input is declared as that. */
sp_status sp__partial_body_set_scalar(sp_partial_run *run, const sp_graph_slot *slot,
                                      sp_dtype dtype, const void *element);
/* A value that is there, for another body or for the node's outputs: with a reference of its own,
 * and not known, since it may be another one the next time. */
sp_status sp__partial_body_output(const sp_partial_run *run, uint32_t index, sp_run_value *out);
/* What stands for `count` results of a body that was never entered, zeroed. Errors:
 * SP_UNSUPPORTED if the file does not say of which type they are. */
sp_status sp__partial_body_empty_output(sp_partial_run *run, const sp_graph_slot *slot,
                                        int64_t count, uint32_t axis, sp_run_value *out);
/* `shape` with `count` in front of dimension `axis`. Errors: SP_UNSUPPORTED above SP_MAX_RANK. */
sp_status sp__partial_body_widen(const sp_shape *shape, uint32_t axis, int64_t count,
                                 sp_shape *out);
/* Which dimension of the widened shape `axis` is; below 0 it counts from the end. Errors:
 * SP_UNSUPPORTED as sp__partial_body_widen, SP_MISMATCH for an axis that it does not have. */
sp_status sp__partial_body_widened_axis(const sp_shape *shape, int64_t axis, uint32_t *out);

/* ---- nodes that are no part of a plan: their outputs are there afterwards ---- */

/* partial_evaluate.c: a node whose shape its inputs decide; or, where that takes long, makes them
 * known to the next plan. */
sp_status sp__partial_evaluate(sp_partial_run *run, const sp_graph_node *node);
/* partial_loop.c */
sp_status sp__partial_loop(sp_partial_run *run, const sp_graph_node *node);
/* partial_scan.c */
sp_status sp__partial_scan(sp_partial_run *run, const sp_graph_node *node);

#endif
