/* SPDX-License-Identifier: Apache-2.0 */
/* From the caller's tensors to addresses in the plan's order: all that is wrong with them is found
 * here, before a run takes anything. */
#ifndef SP_EXEC_RUN_PORTS_H
#define SP_EXEC_RUN_PORTS_H

#include <streampool/model.h>

#include "exec/plan_cache.h"

/* One run's view of the caller's tensors, in the plan's order. Lives on the stack of
 * the call. */
typedef struct sp_run_ports {
    sp_plan_input inputs[SP_MODEL_MAX_PORTS];
    sp_plan_override overrides[SP_MODEL_MAX_PORTS];
    /* Addresses: inputs, then overrides, as the plan counts them. */
    const void *data[2 * SP_MODEL_MAX_PORTS];
    bool is_given[SP_MODEL_MAX_PORTS];
    uint32_t override_count;
    void *outputs[SP_MODEL_MAX_PORTS];
} sp_run_ports;

/* Without `needs_data` for a caller that asks for shapes: values only where shapes follow from
 * them. Errors: as sp_model_run. */
sp_status sp__run_ports_take_inputs(const sp_graph *graph, const sp_host_tensor *inputs,
                                    uint32_t count, bool needs_data, sp_run_ports *ports);

/* The plan for the inputs, in use from now on. */
sp_status sp__run_ports_find_plan(sp_plan_cache *plans, const sp_run_ports *ports, bool may_wait,
                                  sp_plan_entry **out);

/* Where the plan writes; NULL for outputs that are left out. */
sp_status sp__run_ports_take_outputs(const sp_graph_plan *plan, const sp_host_tensor *outputs,
                                     uint32_t count, sp_run_ports *ports);

/* Which output the tensor at `place` of the caller's array is. */
sp_status sp__run_ports_output_index(const sp_graph *graph, const sp_host_tensor *tensor,
                                     uint32_t position, uint32_t *index);

/* Fills in dtype, rank, shape and bytes. */
void sp__run_ports_describe(const sp_graph_plan *plan, sp_host_tensor *outputs, uint32_t count);

#endif
