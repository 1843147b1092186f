/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a partial run share: partial_run.c runs one partial plan after the other, the
 * other files compute the nodes that no plan contains. */
#ifndef SP_EXEC_PARTIAL_PARTIAL_RUN_BUILD_H
#define SP_EXEC_PARTIAL_PARTIAL_RUN_BUILD_H

#include "exec/run_values.h"
#include "exec/partial/partial_run.h"

struct sp_partial_run {
    sp_rt_model *model;
    const sp_graph *graph;
    sp_partial_place place;
    sp_run_terms terms;
    sp_run_values values;
    uint64_t plan_count; /* plans run so far */
    uint64_t trip_count; /* iterations of bodies so far */
    sp_graph_plan made;  /* see sp__partial_run_made; owns its tensors */
};

/* SP_OK while the run may continue: it is not cancelled, the device works and is not being closed,
 * and the process does not end. Called between plans and before each iteration. */
sp_status sp__partial_run_check(const sp_partial_run *run);

/* Computes the outputs of a body whose inputs and captured values are available. `first` is the
 * plan to begin with, which is released here, or NULL. */
sp_status sp__partial_run_body(sp_partial_run *run, const sp_graph_body *body,
                               sp_plan_entry *first);

/* A value that must be available, else SP_INTERNAL. */
sp_status sp__partial_run_value(const sp_partial_run *run, uint32_t index, sp_run_value *out);

/* ---- partial_body.c: one iteration of a body ---- */

/* Checks that the run may compute `count` more iterations. Errors: SP_EXHAUSTED. */
sp_status sp__partial_body_check_trips(const sp_partial_run *run, uint64_t count);
/* Counts an iteration and clears the values of the last one. Errors: as the two checks. */
sp_status sp__partial_body_begin(sp_partial_run *run, const sp_graph_body *body);
/* Sets an input of the body; takes over the reference, also on an error. Errors: SP_MISMATCH if its
 * type is not the declared one. */
sp_status sp__partial_body_set_input(sp_partial_run *run, const sp_graph_slot *slot,
                                     sp_run_value *value);
/* Sets a scalar, of shape [] or [1] as the body declares the input. */
sp_status sp__partial_body_set_scalar(sp_partial_run *run, const sp_graph_slot *slot,
                                      sp_dtype dtype, const void *element);
/* An available value as input of another iteration or output of the node: with a reference of its
 * own, and not known, since it may change from iteration to iteration. */
sp_status sp__partial_body_output(const sp_partial_run *run, uint32_t index, sp_run_value *out);
/* `count` zeroed results of a body that has not been computed. Errors: SP_UNSUPPORTED if the file
 * does not declare their type. */
sp_status sp__partial_body_empty_output(sp_partial_run *run, const sp_graph_slot *slot,
                                        int64_t count, uint32_t axis, sp_run_value *out);
/* `shape` with a dimension of `count` inserted before dimension `axis`. Errors: SP_UNSUPPORTED
 * above SP_MAX_RANK. */
sp_status sp__partial_body_widen(const sp_shape *shape, uint32_t axis, int64_t count,
                                 sp_shape *out);
/* Resolves `axis` of the widened shape; below 0 it counts from the end. Errors: SP_UNSUPPORTED as
 * sp__partial_body_widen, SP_MISMATCH if out of range. */
sp_status sp__partial_body_widened_axis(const sp_shape *shape, int64_t axis, uint32_t *out);

/* ---- nodes outside of plans: afterwards their outputs are available ---- */

/* partial_evaluate.c: computes a node with shape-determining inputs or, where that is expensive,
 * marks these inputs as known for the next plan. */
sp_status sp__partial_evaluate(sp_partial_run *run, const sp_graph_node *node);
/* partial_loop.c */
sp_status sp__partial_loop(sp_partial_run *run, const sp_graph_node *node);
/* partial_scan.c */
sp_status sp__partial_scan(sp_partial_run *run, const sp_graph_node *node);

#endif
