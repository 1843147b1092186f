/* SPDX-License-Identifier: Apache-2.0 */
/* From the caller's tensors to places in the plan's order, for sp_model_run_tensors. What kernels
 * cannot read or write in place is copied on the thread's current stream. Owned by one thread.
 *
 * The arguments are described as host tensors without data, so that names, dtypes and shapes are
 * checked as those of sp_model_run are (run_ports.h). The address that stands for the data of an
 * input is that of its item, whose first member are the input's values, if shapes follow from them:
 *
 *     ports->run.data[k] == the item of the plan's k-th input */
#ifndef SP_EXEC_TENSOR_PORTS_H
#define SP_EXEC_TENSOR_PORTS_H

#include <streampool/model_tensors.h>

#include "exec/run_ports.h"
#include "exec/tensor_run.h"
#include "tensor/tensor.h"

typedef struct sp_tensor_input {
    _Alignas(16) unsigned char values[SP_SHAPE_INPUT_BYTES];
    bool has_values;
    const sp_model_tensor *argument;
    sp_rt_tensor *tensor; /* held; NULL: host memory */
    sp_tensor copy;       /* owned: what is read instead of the tensor; or zero */
} sp_tensor_input;

typedef struct sp_tensor_output {
    sp_rt_tensor *into; /* held: the caller's; or NULL */
    sp_tensor fresh;    /* owned: what is written instead of it; zero: `into` is written itself */
    bool is_allocated;  /* the memory of the caller's host tensor, and not the caller's yet */
} sp_tensor_output;

/* The arguments of a call, borrowed. */
typedef struct sp_tensor_arguments {
    const sp_model_tensor *inputs;
    sp_model_tensor *outputs;
    uint32_t input_count, output_count;
} sp_tensor_arguments;

typedef struct sp_tensor_ports {
    const sp_graph *graph;
    sp_rt_device *device;
    const sp_tensor_arguments *arguments;
    sp_tensor_input *inputs;                    /* by argument */
    sp_tensor_output *outputs;                  /* by output of the plan */
    sp_host_tensor *input_hosts, *output_hosts; /* by argument */
    sp_tensor_place *places;  /* in the plan's order: inputs, then outputs; once bound */
    uint32_t given_count;     /* of outputs that are tensors of the caller */
    uint64_t *input_storages; /* of the places, sorted; NULL: there are few, or none is searched */
    sp_run_ports run;
} sp_tensor_ports;

/* Finds the tensors, and reads the values that shapes follow from, which may wait. Errors: those of
 * sp_model_run_tensors for inputs, names and outputs that overlap; then there is nothing to deinit.
 */
sp_status sp__tensor_ports_init(sp_tensor_ports *ports, const sp_graph *graph, sp_rt_device *device,
                                const sp_tensor_arguments *arguments);
void sp__tensor_ports_deinit(sp_tensor_ports *ports);

/* Finds the places for a run of the plan, whose inputs the ports were looked up with. Errors: those
 * for outputs; SP_OUT_OF_MEMORY; SP_BUSY. */
sp_status sp__tensor_ports_bind(sp_tensor_ports *ports, const sp_graph_plan *plan,
                                const void *call_site);
/* After the submit of the run, whose last point is `run`: copies what was not written in place,
 * waits for what is in host memory, and gives new tensors to the caller. A failure of the run that
 * it returns is reported, with those of all that the thread has submitted to the stream after the
 * value `before`. */
sp_status sp__tensor_ports_give(sp_tensor_ports *ports, const sp_graph_plan *plan, uint64_t before,
                                sp_point run, const void *call_site);

/* SP_OK if `into` can hold the output. */
sp_status sp__tensor_output_check(const sp_plan_tensor *output, const sp_rt_tensor *into);
/* For an output that is copied after the run. */
sp_status sp__tensor_output_check_frozen(const char *name, const sp_rt_tensor *into);

#endif
