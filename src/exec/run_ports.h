/* SPDX-License-Identifier: Apache-2.0 */
/* From the caller's tensors to addresses in the plan's order. Whatever is wrong with the tensors is
 * found here, before a run acquires anything. */
#ifndef SP_EXEC_RUN_PORTS_H
#define SP_EXEC_RUN_PORTS_H

#include <streampool/model.h>

#include "exec/plan_cache.h"
#include "exec/port_overlap.h"

/* Inputs, overrides and outputs, each, up to which a run's ports need no heap. */
#define SP_RUN_PORTS_INLINE 64

/* One run's view of the caller's tensors; on the stack of the call, owned by its thread.
 *
 *     output_at[i] == index of the output that the caller's i-th output tensor is
 *     is_allocated[i] => outputs[output_at[i]] is the library's memory, not yet the caller's */
typedef struct sp_run_ports {
    sp_plan_input *inputs;       /* by input of the graph */
    sp_plan_override *overrides; /* of initializers that are also inputs */
    const void **data;           /* addresses: inputs, then overrides, as the plan counts them */
    void **outputs;              /* by output; NULL: unrequested */
    uint32_t *output_at;
    bool *is_given; /* by input; then by output */
    bool *is_allocated;
    sp_port_span *spans; /* room for all ports; NULL: there are few */
    uint32_t override_count, override_capacity;
    uint32_t tensor_count; /* of the caller's outputs */
    void *block;           /* of the arrays; NULL: they are the ones below */
    struct {
        sp_plan_input inputs[SP_RUN_PORTS_INLINE];
        sp_plan_override overrides[SP_RUN_PORTS_INLINE];
        const void *data[2 * SP_RUN_PORTS_INLINE];
        void *outputs[SP_RUN_PORTS_INLINE];
        uint32_t output_at[SP_RUN_PORTS_INLINE];
        bool is_given[SP_RUN_PORTS_INLINE];
        bool is_allocated[SP_RUN_PORTS_INLINE];
    } room;
} sp_run_ports;

/* Room for the ports of a run that is given `tensor_count` inputs. Errors: SP_OUT_OF_MEMORY; then
 * there is nothing to deinit. */
sp_status sp__run_ports_init(sp_run_ports *ports, const sp_graph *graph, uint32_t tensor_count);
/* Also frees the outputs that were allocated and not given to the caller. */
void sp__run_ports_deinit(sp_run_ports *ports);

/* `needs_data` is false for a caller that asks for shapes: values are read only where shapes follow
 * from them. Errors: as sp_model_run. */
sp_status sp__run_ports_take_inputs(const sp_graph *graph, const sp_host_tensor *inputs,
                                    uint32_t count, bool needs_data, sp_run_ports *ports);

/* The plan for the inputs, in use from now on. */
sp_status sp__run_ports_find_plan(sp_plan_cache *plans, const sp_run_ports *ports, bool may_wait,
                                  sp_plan_entry **out);
/* The same without a wait: see sp__plan_cache_try_visit. */
sp_status sp__run_ports_try_visit_plan(sp_plan_cache *plans, const sp_run_ports *ports,
                                       uint32_t lane, sp_plan_entry **out);
/* The same by a thread that may wait: see sp__plan_cache_visit. */
sp_status sp__run_ports_visit_plan(sp_plan_cache *plans, const sp_run_ports *ports, uint32_t lane,
                                   sp_plan_entry **out);

/* See sp__plan_cache_acquire_until. */
sp_status sp__run_ports_find_plan_until(sp_plan_cache *plans, const sp_run_ports *ports,
                                        const sp_atomic_u32 *no_wait, sp_plan_entry **out);

/* Writes the inputs that were taken as tensors with the graph's names, for which `out` has room,
 * and returns how many: the graph's inputs and the overrides. */
uint32_t sp__run_ports_copy_inputs(const sp_graph *graph, const sp_run_ports *ports,
                                   sp_host_tensor *out);

/* Which outputs the caller asks for. Errors: SP_INVALID, SP_MISMATCH, SP_NOT_FOUND. */
sp_status sp__run_ports_name_outputs(const sp_graph *graph, const sp_host_tensor *outputs,
                                     uint32_t count, sp_run_ports *ports);

/* Finds where the plan writes, and allocates the outputs that have no data; the outputs have been
 * named. Errors: as sp_model_run; if an output has too little room, all outputs are described. */
sp_status sp__run_ports_take_outputs(const sp_graph_plan *plan, sp_host_tensor *outputs,
                                     sp_run_ports *ports);

/* Writes dtype, rank, shape and bytes of the outputs that were named. */
void sp__run_ports_describe(const sp_graph_plan *plan, sp_host_tensor *outputs,
                            const sp_run_ports *ports);
/* What was allocated is the caller's from now on. */
void sp__run_ports_give_memory(sp_host_tensor *outputs, sp_run_ports *ports);
/* Both. */
void sp__run_ports_give_outputs(const sp_graph_plan *plan, sp_host_tensor *outputs,
                                sp_run_ports *ports);

/* SP_NOT_FOUND: the model has no `noun` ("input") of that name. The message lists those that exist,
 * up to its length. */
sp_status sp__ports_not_found(const sp_graph_port *ports, uint32_t count, const char *noun,
                              const char *name);

#endif
