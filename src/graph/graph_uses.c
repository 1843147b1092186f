/* SPDX-License-Identifier: Apache-2.0 */
/* Who makes and who reads the values of a graph, for the steps that join nodes. */
#include "base/error.h"
#include "base/heap.h"
#include "graph/graph_build.h"

#define NO_NODE UINT32_MAX

static void count_node(const sp_graph_node *node, const sp_graph_uses *u)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != SP_NO_VALUE) u->reads[node->inputs[i]]++;
    }
    for (uint32_t i = 0; node->body != NULL && i < node->body->output_count; i++) {
        u->reads[node->body->outputs[i].value]++;
    }
}

static void count_all(const sp_graph *graph, const sp_graph_uses *u)
{
    for (uint32_t i = 0; i < graph->value_count; i++) u->makers[i] = NO_NODE;
    for (uint32_t n = 0; n < graph->node_count; n++) {
        const sp_graph_node *node = &graph->nodes[n];
        for (uint32_t i = 0; i < node->output_count; i++) u->makers[node->outputs[i]] = n;
        if (node->is_live) count_node(node, u);
    }
    for (uint32_t i = 0; i < graph->output_count; i++) u->reads[graph->outputs[i].value]++;
}

sp_status sp__graph_uses_init(const sp_graph *graph, sp_graph_uses *out)
{
    const uint32_t count = graph->value_count;
    *out = (sp_graph_uses){.makers = sp_calloc(count, sizeof(*out->makers)),
                           .reads = sp_calloc(count, sizeof(*out->reads))};
    if (out->makers == NULL || out->reads == NULL) {
        return sp__fail(SP_OUT_OF_MEMORY, "no memory to sort the graph");
    }
    count_all(graph, out);
    return SP_OK;
}

void sp__graph_uses_deinit(sp_graph_uses *uses)
{
    sp_free(uses->makers);
    sp_free(uses->reads);
    *uses = (sp_graph_uses){0};
}

const void *sp__graph_fixed(const sp_graph *graph, const sp_graph_uses *uses, uint32_t index,
                            sp_dtype dtype)
{
    if (index == SP_NO_VALUE) return NULL;
    const sp_graph_value *value = &graph->values[index];
    const bool may_change =
        value->is_default || (graph->default_count > 0 && uses->makers[index] != NO_NODE);
    const bool is_there = value->is_constant && value->weight != SP_NO_WEIGHT;
    if (!is_there || may_change || value->dtype != dtype) return NULL;
    return graph->weights[value->weight].data;
}

bool sp__graph_is_live_op(const sp_graph_node *node, const char *op)
{
    return node->is_live && !node->is_folded &&
           sp__text_equal(sp__text(node->op->name), sp__text(op));
}

sp_graph_node *sp__graph_maker_of(sp_graph_builder *builder, const sp_graph_uses *uses,
                                  const sp_graph_node *reader, const char *op)
{
    const uint32_t value = reader->inputs[0];
    if (value == SP_NO_VALUE || uses->reads[value] != 1 || uses->makers[value] == NO_NODE) {
        return NULL;
    }
    sp_graph_node *maker = &builder->nodes[uses->makers[value]];
    return sp__graph_is_live_op(maker, op) && maker->region == reader->region ? maker : NULL;
}
