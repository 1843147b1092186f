/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model file: an error, or a summary of it; an error, or a graph; and if its inputs
 * are small, a plan that satisfies its invariants and runs. */
#include <stdlib.h>
#include <string.h>

#include <streampool/model_file.h>

#include "fuzz.h"
#include "plan/plan.h"

enum { MAX_PORTS = 8, MAX_DIM = 16 };

/* Chooses small inputs that fit the ports; false if there are too many or they are too large. */
static bool choose_inputs(const sp_graph *graph, sp_plan_input *inputs)
{
    if (graph->input_count > MAX_PORTS || graph->output_count > MAX_PORTS) return false;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const sp_graph_port *port = &graph->inputs[i];
        inputs[i] = (sp_plan_input){.dtype = port->dtype == SP_DTYPE_NONE ? SP_F32 : port->dtype};
        inputs[i].shape.rank = port->has_shape ? port->rank : 2;
        for (uint32_t d = 0; d < inputs[i].shape.rank; d++) {
            const int64_t dim = port->has_shape ? port->dims[d] : 2;
            if (dim > MAX_DIM) return false;
            inputs[i].shape.dims[d] = dim < 0 ? 2 : dim;
        }
    }
    return true;
}

/* Limits plans to a few megabytes and a few thousand tiles, since fuzzing needs many short runs. */
static bool is_small(const sp_graph_plan *plan)
{
    uint64_t bytes = plan->arena_bytes, tiles = 0;
    /* The first partial plan outputs all values that the rest needs, of any number. */
    if (plan->output_count > MAX_PORTS) return false;
    for (uint32_t i = 0; i < plan->input_count; i++) bytes += plan->inputs[i].bytes;
    for (uint32_t i = 0; i < plan->output_count; i++) bytes += plan->outputs[i].bytes;
    for (uint32_t i = 0; i < plan->step_count; i++) {
        tiles += (uint64_t)plan->steps[i].grid[0] * plan->steps[i].grid[1] * plan->steps[i].grid[2];
    }
    return bytes < 4u << 20 && tiles < 4096;
}

static void run(const sp_graph_plan *plan)
{
    void *inputs[MAX_PORTS] = {0}, *outputs[MAX_PORTS] = {0};
    /* Of exactly the plan's sizes, so that AddressSanitizer reports accesses beyond. */
    void *arena = aligned_alloc(64, (size_t)plan->arena_bytes + 64 - plan->arena_bytes % 64);
    for (uint32_t i = 0; i < plan->input_count; i++) {
        inputs[i] = calloc(1, (size_t)plan->inputs[i].bytes + (plan->inputs[i].bytes == 0));
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        outputs[i] = malloc((size_t)plan->outputs[i].bytes + (plan->outputs[i].bytes == 0));
    }
    (void)sp__plan_run_reference(plan, (const void *const *)inputs, outputs, arena);
    for (int i = 0; i < MAX_PORTS; i++) {
        free(inputs[i]);
        free(outputs[i]);
    }
    free(arena);
}

/* Checks that every operator has a name and a count. */
static void summarize(const uint8_t *data, size_t size)
{
    sp_model_file file;
    sp_model_file_op op;
    sp_model_file_port port;
    if (sp_model_file_open_memory(data, size, &file) != SP_OK) return;
    for (uint32_t i = 0; sp_model_file_get_op(file, i, &op) == SP_OK; i++) {
        if (op.count == 0 || strlen(op.name) + strlen(op.domain) > size) abort();
    }
    for (uint32_t i = 0; sp_model_file_get_input(file, i, &port) == SP_OK; i++) {
        if (port.rank > SP_MAX_RANK || strlen(port.name) > size) abort();
    }
    if (sp_model_file_release(file) != SP_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const sp_graph *graph;
    summarize(data, size);
    if (sp__graph_load(data, size, &graph) != SP_OK) return 0;
    sp_plan_input inputs[MAX_PORTS];
    const sp_plan_request request = {.inputs = inputs, .input_count = graph->input_count};
    const sp_graph_plan *plan = NULL;
    if (choose_inputs(graph, inputs) && sp__plan_compile(graph, &request, &plan) == SP_OK) {
        if (sp__plan_check(plan) != SP_OK) abort();
        if (is_small(plan)) run(plan);
    }
    sp__plan_destroy(plan);
    sp__graph_destroy(graph);
    return 0;
}
