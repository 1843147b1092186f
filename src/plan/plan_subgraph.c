/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of subgraphs: their nodes, where they end, and their outputs to later plans
 * (docs/decisions/0025). */
#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "ops/registry.h"
#include "plan/subgraph_needs.h"
#include "plan/plan_build.h"

static sp_status fail_no_memory(void)
{
    return sp__fail(SP_OUT_OF_MEMORY, "no memory to compile a plan");
}

/* ---- before recording ---- */

sp_status sp__plan_subgraph_begin(sp_plan_builder *builder)
{
    const sp_graph *graph = builder->plan->graph;
    const sp_plan_subgraph *subgraph = builder->request->subgraph;
    builder->body = subgraph != NULL ? subgraph->body : graph->main;
    builder->plan->is_subgraph = subgraph != NULL;
    if (subgraph == NULL) return SP_OK;
    sp_subgraph_needs needs;
    SP_TRY(sp__subgraph_needs_init(&needs, subgraph->body));
    for (uint32_t i = 0; i < subgraph->given_count; i++) {
        const sp_plan_input *input = &builder->request->inputs[i];
        sp__subgraph_needs_know(&needs, subgraph->given[i], input->dtype, &input->shape,
                                input->data);
    }
    for (uint32_t i = 0; i < subgraph->wanted_count; i++)
        sp__subgraph_needs_want(&needs, subgraph->wanted[i]);
    sp__subgraph_needs_find(&needs, graph);
    builder->is_needed = sp__subgraph_needs_take_nodes(&needs);
    sp__subgraph_needs_deinit(&needs);
    return SP_OK;
}

bool sp__plan_has_node(const sp_plan_builder *builder, uint32_t index)
{
    const sp_graph *graph = builder->plan->graph;
    if (builder->is_needed != NULL) return builder->is_needed[index - builder->body->first_node];
    const sp_graph_node *node = &graph->nodes[index];
    return node->is_live && sp__graph_home(graph, node) == builder->body;
}

/* ---- during recording ---- */

static sp_status list_append(uint32_t **list, uint32_t *count, uint32_t *capacity, uint32_t number)
{
    uint32_t *larger = sp_grow(*list, *count, capacity, sizeof(**list));
    if (larger == NULL) return fail_no_memory();
    *list = larger;
    larger[(*count)++] = number;
    return SP_OK;
}

sp_status sp__plan_delay(sp_plan_builder *builder, uint32_t index, bool is_stop)
{
    const sp_graph_node *node = &builder->plan->graph->nodes[index];
    sp_plan_delays *delays = &builder->delays;
    for (uint32_t i = 0; i < node->output_count; i++) {
        sp_plan_value *value = &builder->values[node->outputs[i]];
        value->is_there = false;
        value->data = NULL;
    }
    SP_TRY(list_append(&delays->nodes, &delays->node_count, &delays->node_capacity, index));
    if (!is_stop) return SP_OK;
    return list_append(&delays->stops, &delays->stop_count, &delays->stop_capacity, index);
}

/* ---- after recording ---- */

/* Later plans need the value: it becomes an output unless it is given or constant. */
static void value_keep(sp_plan_builder *builder, uint32_t index)
{
    sp_plan_value *value = &builder->values[index];
    const bool is_constant = builder->plan->graph->values[index].is_constant;
    const bool is_given =
        value->root == index && !value->is_computed && value->where == SP_PLACE_INPUT;
    if (!value->is_there || is_given || (is_constant && !value->is_tainted)) return;
    value->is_kept = true;
}

static sp_status value_ask(sp_plan_builder *builder, uint32_t index)
{
    sp_plan_delays *delays = &builder->delays;
    const sp_plan_value *value = &builder->values[index];
    if (!value->is_there || value->data != NULL) return SP_OK;
    for (uint32_t i = 0; i < delays->asked_count; i++) {
        if (delays->asked[i] == index) return SP_OK;
    }
    return list_append(&delays->asked, &delays->asked_count, &delays->asked_capacity, index);
}

/* Keeps the inputs of a delayed node and the conditions of the branches around it. */
static sp_status node_keep_inputs(sp_plan_builder *builder, const sp_graph_node *node)
{
    const sp_graph *graph = builder->plan->graph;
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != SP_NO_VALUE) value_keep(builder, node->inputs[i]);
    }
    if (node->op->traits->is_if) SP_TRY(value_ask(builder, node->inputs[0]));
    for (uint32_t i = node->region; i != SP_NO_REGION && graph->regions[i].is_branch;
         i = graph->regions[i].parent) {
        value_keep(builder, graph->regions[i].condition);
        SP_TRY(value_ask(builder, graph->regions[i].condition));
    }
    return SP_OK;
}

static sp_status outputs_create(sp_plan_builder *builder, uint32_t count)
{
    builder->outputs = sp_calloc(count, sizeof(*builder->outputs));
    return builder->outputs != NULL ? SP_OK : fail_no_memory();
}

/* A partial plan: its outputs are the values that later plans need. */
static sp_status end_partial(sp_plan_builder *builder)
{
    const sp_graph *graph = builder->plan->graph;
    const sp_graph_body *body = builder->body;
    const sp_plan_subgraph *subgraph = builder->request->subgraph;
    const sp_plan_delays *delays = &builder->delays;
    for (uint32_t i = 0; i < delays->node_count; i++) {
        SP_TRY(node_keep_inputs(builder, &graph->nodes[delays->nodes[i]]));
    }
    const uint32_t wanted = subgraph != NULL ? subgraph->wanted_count : body->output_count;
    for (uint32_t i = 0; i < wanted; i++) {
        value_keep(builder, subgraph != NULL ? subgraph->wanted[i] : body->outputs[i].value);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->value_count; i++) count += builder->values[i].is_kept;
    SP_TRY(outputs_create(builder, count));
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (builder->values[i].is_kept) builder->outputs[builder->output_count++] = i;
    }
    builder->plan->is_subgraph = true;
    builder->plan->is_partial = true;
    return SP_OK;
}

static sp_status end_whole(sp_plan_builder *builder)
{
    const sp_graph *graph = builder->plan->graph;
    const sp_plan_subgraph *subgraph = builder->request->subgraph;
    const uint32_t count = subgraph != NULL ? subgraph->wanted_count : graph->output_count;
    SP_TRY(outputs_create(builder, count));
    builder->output_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t value = subgraph != NULL ? subgraph->wanted[i] : graph->outputs[i].value;
        if (!builder->values[value].is_there) {
            return sp__fail(SP_INTERNAL, "no node of the plan computes '%s'",
                            graph->values[value].name);
        }
        builder->outputs[i] = value;
    }
    return SP_OK;
}

static sp_status copy_list(sp_bump *bump, const uint32_t *list, uint32_t count,
                           const uint32_t **out)
{
    uint32_t *copy;
    SP_TRY(sp__bump_array(bump, count, sizeof(*copy), &copy));
    for (uint32_t i = 0; i < count; i++) copy[i] = list[i];
    *out = copy;
    return SP_OK;
}

sp_status sp__plan_subgraph_end(sp_plan_builder *builder)
{
    sp_graph_plan *plan = builder->plan;
    const sp_plan_delays *delays = &builder->delays;
    SP_TRY(delays->node_count > 0 ? end_partial(builder) : end_whole(builder));
    const uint64_t ports = (uint64_t)builder->request->input_count +
                           builder->request->override_count + builder->output_count;
    if (ports > SP_PLAN_PORTS) {
        return sp__fail(SP_EXHAUSTED,
                        "a plan has %" PRIu64 " inputs and outputs; at most %d are supported",
                        ports, SP_PLAN_PORTS);
    }
    if (plan->is_partial && delays->stop_count + delays->asked_count == 0) {
        return sp__fail(SP_INTERNAL, "a partial plan has no stop and no asked condition");
    }
    plan->stop_count = delays->stop_count;
    plan->asked_count = delays->asked_count;
    SP_TRY(copy_list(&plan->bump, delays->stops, delays->stop_count, &plan->stops));
    return copy_list(&plan->bump, delays->asked, delays->asked_count, &plan->asked);
}

void sp__plan_subgraph_deinit(sp_plan_builder *builder)
{
    sp_free(builder->is_needed);
    sp_free(builder->outputs);
    sp_free(builder->delays.nodes);
    sp_free(builder->delays.stops);
    sp_free(builder->delays.asked);
}
