/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/subgraph_needs.h"

#include "base/error.h"
#include "base/heap.h"
#include "ops/registry.h"

sp_status sp__subgraph_needs_init(sp_subgraph_needs *needs, const sp_graph_body *body)
{
    const uint32_t nodes = body->end_node - body->first_node;
    const uint32_t values = body->end_value - body->first_value;
    *needs = (sp_subgraph_needs){.body = body,
                                 .nodes = sp_calloc(nodes, sizeof(bool)),
                                 .wanted = sp_calloc(values, sizeof(bool)),
                                 .is_stop = sp_calloc(values, sizeof(bool)),
                                 .known = (const void **)sp_calloc(values, sizeof(void *))};
    const bool is_made = needs->nodes != NULL && needs->wanted != NULL && needs->is_stop != NULL;
    if (is_made && needs->known != NULL) return SP_OK;
    sp__subgraph_needs_deinit(needs);
    return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
}

void sp__subgraph_needs_deinit(sp_subgraph_needs *needs)
{
    sp_free(needs->nodes);
    sp_free(needs->wanted);
    sp_free(needs->is_stop);
    sp_free((void *)needs->known);
}

static bool is_own(const sp_subgraph_needs *needs, uint32_t value)
{
    return value >= needs->body->first_value && value < needs->body->end_value;
}

void sp__subgraph_needs_stop(sp_subgraph_needs *needs, uint32_t value)
{
    if (is_own(needs, value)) needs->is_stop[value - needs->body->first_value] = true;
}

void sp__subgraph_needs_know(sp_subgraph_needs *needs, uint32_t value, sp_dtype dtype,
                             const sp_shape *shape, const void *data)
{
    sp__subgraph_needs_stop(needs, value);
    const bool is_condition = dtype == SP_BOOL && sp__shape_count(shape) == 1;
    if (is_own(needs, value) && is_condition) needs->known[value - needs->body->first_value] = data;
}

void sp__subgraph_needs_want(sp_subgraph_needs *needs, uint32_t value)
{
    if (is_own(needs, value)) needs->wanted[value - needs->body->first_value] = true;
}

static bool has_wanted_output(const sp_subgraph_needs *needs, const sp_graph_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = node->outputs[i] - needs->body->first_value;
        if (needs->wanted[value] && !needs->is_stop[value]) return true;
    }
    return false;
}

/* For an If with a known condition, the outputs of the other branch are not needed. */
static void want_inputs(sp_subgraph_needs *needs, const sp_graph_node *node)
{
    uint32_t first = 0, last = node->input_count;
    if (node->op->traits->is_if && is_own(needs, node->inputs[0])) {
        const unsigned char *chosen = needs->known[node->inputs[0] - needs->body->first_value];
        if (chosen != NULL) {
            sp__subgraph_needs_want(needs, node->inputs[0]);
            first = chosen[0] != 0 ? 1 : 1 + node->output_count;
            last = first + node->output_count;
        }
    }
    for (uint32_t i = first; i < last; i++) sp__subgraph_needs_want(needs, node->inputs[i]);
}

/* Backwards in topological order. Nodes of nested bodies are not this body's. */
void sp__subgraph_needs_find(sp_subgraph_needs *needs, const sp_graph *graph)
{
    const sp_graph_body *body = needs->body;
    for (uint32_t n = body->end_node; n-- > body->first_node;) {
        const sp_graph_node *node = &graph->nodes[n];
        /* A node that was merged into another is not live, and has the same outputs. */
        if (!node->is_live || sp__graph_home(graph, node) != body ||
            !has_wanted_output(needs, node)) {
            continue;
        }
        needs->nodes[n - body->first_node] = true;
        want_inputs(needs, node);
        for (uint32_t i = node->region; i != SP_NO_REGION && graph->regions[i].is_branch;
             i = graph->regions[i].parent) {
            sp__subgraph_needs_want(needs, graph->regions[i].condition);
        }
    }
}

bool *sp__subgraph_needs_take_nodes(sp_subgraph_needs *needs)
{
    bool *nodes = needs->nodes;
    needs->nodes = NULL;
    return nodes;
}
