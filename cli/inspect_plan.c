/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a model for given sizes: its steps and its memory. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/heap.h"
#include "inspect.h"
#include "ops/cuda/cuda_kernels.h"
#include "plan/plan.h"

static int64_t size_of(const sp_inspect_dims *dims, const char *name)
{
    for (uint32_t i = 0; i < dims->count; i++) {
        if (strcmp(dims->names[i], name) == 0) return dims->sizes[i];
    }
    return 1;
}

/* The input as the plan sees it. What decides shapes is made up of zeroes, in *data. */
static sp_status set_input(const sp_graph_port *port, const sp_inspect_dims *dims,
                           sp_plan_input *out, void **data)
{
    *out = (sp_plan_input){.dtype = port->dtype, .shape = {.rank = port->rank}};
    *data = NULL;
    for (uint32_t i = 0; i < port->rank; i++) {
        out->shape.dims[i] = port->dims[i] >= 0 ? port->dims[i] : size_of(dims, port->dim_names[i]);
    }
    if (port->dtype == SP_DTYPE_NONE || !port->has_shape) {
        return sp__fail(SP_UNSUPPORTED, "the file does not say what input '%s' is", port->name);
    }
    uint64_t bytes;
    SP_TRY(sp__shape_bytes(&out->shape, out->dtype, &bytes));
    if (!port->decides_shapes || bytes > SP_DECIDING_BYTES) return SP_OK;
    *data = sp_calloc(1, bytes > 0 ? bytes : 1);
    if (*data == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for input '%s'", port->name);
    out->data = *data;
    printf("  input %s decides shapes; its values are taken to be 0\n", port->name);
    return SP_OK;
}

static void print_steps(const sp_graph_plan *plan)
{
    uint32_t missing = 0;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        const sp_plan_step *step = &plan->steps[i];
        const bool is_on_cuda = sp__kernel_is_there(&sp__cuda_kernels()[step->kernel]);
        uint64_t read = 0;
        uint64_t written = 0;
        for (uint32_t b = 0; b < step->binding_count; b++) {
            *(step->bindings[b].is_write ? &written : &read) += step->bindings[b].bytes;
        }
        missing += !is_on_cuda;
        printf("  %4" PRIu32 " %-20s %-20s reads %" PRIu64 ", writes %" PRIu64 "%s  %s\n", i,
               step->op_name, plan->kernels[step->kernel].name, read, written,
               is_on_cuda ? "" : " (on cpu on a cuda device)", step->node_name);
    }
    printf("  on a cuda device %" PRIu32 " of %" PRIu32 " steps run on the cpu\n", missing,
           plan->step_count);
}

/* How many parts there are, the run decides; where the first one ends, the plan knows. */
static void print_parts(const sp_graph *graph, const sp_graph_plan *plan)
{
    uint32_t bodies = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) bodies += graph->nodes[i].body != NULL;
    if (!plan->is_partial) return;
    printf("the plan is the first part of a run (%" PRIu32 " nodes with a body) and ends before\n",
           bodies);
    for (uint32_t i = 0; i < plan->stop_count; i++) {
        const sp_graph_node *node = &graph->nodes[plan->stops[i]];
        printf("  node %s (%s)\n", node->name, node->op->name);
    }
    for (uint32_t i = 0; i < plan->asked_count; i++) {
        printf("  an If whose condition is %s\n", graph->values[plan->asked[i]].name);
    }
}

static void print_plan(const sp_graph *graph, const sp_graph_plan *plan)
{
    uint64_t constants = 0;
    for (uint32_t i = 0; i < plan->constant_count; i++) constants += plan->constants[i].bytes;
    printf("plan: %" PRIu32 " steps, %" PRIu64 " bytes of memory for each run beside %" PRIu64
           " of weights and %" PRIu64 " of constants\n",
           plan->step_count, plan->arena_bytes, graph->weight_bytes, constants);
    for (uint32_t i = 0; i < plan->input_count; i++) {
        printf("  input %s: %s %s\n", plan->inputs[i].name, sp_dtype_name(plan->inputs[i].dtype),
               sp__shape_print(&plan->inputs[i].shape).text);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        printf("  output %s: %s %s\n", plan->outputs[i].name, sp_dtype_name(plan->outputs[i].dtype),
               sp__shape_print(&plan->outputs[i].shape).text);
    }
    print_steps(plan);
    print_parts(graph, plan);
}

sp_status sp__inspect_plan(const sp_graph *graph, const sp_inspect_dims *dims)
{
    const uint32_t count = graph->input_count;
    sp_plan_input *inputs = sp_calloc(count + 1, sizeof *inputs);
    void **data = sp_calloc(count + 1, sizeof *data);
    sp_status status = inputs != NULL && data != NULL
                           ? SP_OK
                           : sp__fail(SP_OUT_OF_MEMORY, "no memory for %u inputs", count);
    for (uint32_t i = 0; i < count && status == SP_OK; i++) {
        status = set_input(&graph->inputs[i], dims, &inputs[i], &data[i]);
    }
    const sp_plan_request request = {.inputs = inputs, .input_count = count};
    const sp_graph_plan *plan = NULL;
    if (status == SP_OK) status = sp__plan_compile(graph, &request, &plan);
    if (status == SP_OK) print_plan(graph, plan);
    sp__plan_free(plan);
    for (uint32_t i = 0; i < count && data != NULL; i++) sp_free(data[i]);
    sp_free(data);
    sp_free(inputs);
    return status;
}
