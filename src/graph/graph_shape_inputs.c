/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs on whose values a plan depends: those that a value derives from that determines a shape,
 * or a branch. */
#include "base/error.h"
#include "base/heap.h"
#include "graph/graph_build.h"
#include "ops/registry.h"

/* Called in reverse order: every node after its users. */
static void mark_node(const sp_graph_node *node, bool *determines)
{
    if (node->body != NULL) return; /* its results are unknown before the run */
    const uint32_t shape_inputs = node->op->traits->shape_inputs;
    bool is_any = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        is_any = is_any || determines[node->outputs[i]];
    }
    is_any = is_any && !node->op->traits->hides_values;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const bool is_shape_input = i < 32 && (shape_inputs >> i & 1) != 0;
        if (node->inputs[i] != SP_NO_VALUE && (is_any || is_shape_input)) {
            determines[node->inputs[i]] = true;
        }
    }
}

static void mark_ports(sp_graph_port *ports, uint32_t count, const bool *determines)
{
    for (uint32_t i = 0; i < count; i++) ports[i].determines_shapes = determines[ports[i].value];
}

sp_status sp__graph_mark_shape_inputs(sp_graph_builder *builder)
{
    const sp_graph *graph = builder->graph;
    bool *determines = sp_calloc(graph->value_count, sizeof *determines);
    if (determines == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to sort the graph");
    for (uint32_t n = graph->node_count; n-- > 0;) {
        if (graph->nodes[n].is_live) mark_node(&graph->nodes[n], determines);
    }
    mark_ports(builder->inputs, graph->input_count, determines);
    mark_ports(builder->defaults, graph->default_count, determines);
    sp_free(determines);
    return SP_OK;
}
