/* SPDX-License-Identifier: Apache-2.0 */
#include "model/part_needs.h"

#include "base/error.h"
#include "base/heap.h"

sp_status sp__part_needs_init(sp_part_needs *needs, const sp_graph_body *body)
{
    const uint32_t nodes = body->end_node - body->first_node;
    const uint32_t values = body->end_value - body->first_value;
    *needs = (sp_part_needs){.body = body,
                             .nodes = sp_calloc(nodes, sizeof(bool)),
                             .wanted = sp_calloc(values, sizeof(bool)),
                             .is_stop = sp_calloc(values, sizeof(bool))};
    if (needs->nodes != NULL && needs->wanted != NULL && needs->is_stop != NULL) return SP_OK;
    sp__part_needs_deinit(needs);
    return sp__fail(SP_OUT_OF_MEMORY, "no memory to find out what is needed");
}

void sp__part_needs_deinit(sp_part_needs *needs)
{
    sp_free(needs->nodes);
    sp_free(needs->wanted);
    sp_free(needs->is_stop);
}

static bool is_own(const sp_part_needs *needs, uint32_t value)
{
    return value >= needs->body->first_value && value < needs->body->end_value;
}

void sp__part_needs_stop(sp_part_needs *needs, uint32_t value)
{
    if (is_own(needs, value)) needs->is_stop[value - needs->body->first_value] = true;
}

void sp__part_needs_want(sp_part_needs *needs, uint32_t value)
{
    if (is_own(needs, value)) needs->wanted[value - needs->body->first_value] = true;
}

static bool gives_wanted(const sp_part_needs *needs, const sp_graph_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        const uint32_t value = node->outputs[i] - needs->body->first_value;
        if (needs->wanted[value] && !needs->is_stop[value]) return true;
    }
    return false;
}

/* Users come after what they use. The nodes of bodies inside are not this body's. */
void sp__part_needs_find(sp_part_needs *needs, const sp_graph *graph)
{
    const sp_graph_body *body = needs->body;
    for (uint32_t n = body->end_node; n-- > body->first_node;) {
        const sp_graph_node *node = &graph->nodes[n];
        /* A node that has become part of another one has the same outputs as that. */
        if (!node->is_live || sp__graph_home(graph, node) != body || !gives_wanted(needs, node)) {
            continue;
        }
        needs->nodes[n - body->first_node] = true;
        for (uint32_t i = 0; i < node->input_count; i++)
            sp__part_needs_want(needs, node->inputs[i]);
        for (uint32_t i = node->region; i != SP_NO_REGION && graph->regions[i].is_branch;
             i = graph->regions[i].parent) {
            sp__part_needs_want(needs, graph->regions[i].condition);
        }
    }
}

bool *sp__part_needs_take_nodes(sp_part_needs *needs)
{
    bool *nodes = needs->nodes;
    needs->nodes = NULL;
    return nodes;
}
