/* SPDX-License-Identifier: Apache-2.0 */
/* Dead nodes and constant nodes. Folding uses the kernels that a run would use, so results do not
 * change by a bit. */
#include "base/error.h"
#include "base/fpenv.h"
#include "base/heap.h"
#include "base/macros.h"
#include "graph/graph_build.h"
#include "ops/evaluate.h"
#include "ops/registry.h"

sp_status sp__graph_mark_live(sp_graph_builder *builder)
{
    sp_graph *graph = builder->graph;
    bool *is_needed = sp_calloc(graph->value_count, sizeof(*is_needed));
    if (is_needed == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory to sort the graph");
    for (uint32_t i = 0; i < graph->output_count; i++) is_needed[graph->outputs[i].value] = true;
    for (uint32_t n = graph->node_count; n-- > 0;) {
        sp_graph_node *node = &builder->nodes[n];
        for (uint32_t i = 0; i < node->output_count; i++) {
            node->is_live = node->is_live || is_needed[node->outputs[i]];
        }
        for (uint32_t i = 0; i < node->input_count && node->is_live; i++) {
            if (node->inputs[i] != SP_NO_VALUE) is_needed[node->inputs[i]] = true;
        }
        for (uint32_t i = 0; node->body != NULL && i < node->body->output_count; i++) {
            if (node->is_live) is_needed[node->body->outputs[i].value] = true;
        }
    }
    sp_free(is_needed);
    return SP_OK;
}

static bool has_constant_inputs(const sp_graph *graph, const sp_graph_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == SP_NO_VALUE) continue;
        if (!graph->values[node->inputs[i]].is_constant) return false;
    }
    return true;
}

/* Whether the work is small enough. A Constant must be folded: it has no kernel. */
static bool is_affordable(sp_graph_builder *builder, const sp_op_call *call)
{
    if (call->input_count == 0) return true;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (call->inputs[i].bytes > SP_FOLD_VALUE_BYTES) return false;
    }
    for (uint32_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i].bytes > SP_FOLD_VALUE_BYTES) return false;
    }
    const uint64_t work = sp__op_work(call);
    if (work > SP_FOLD_TOTAL_WORK - builder->folded_work) return false;
    builder->folded_work += work;
    return true;
}

/* Takes over the arrays' data. */
static sp_status set_constants(sp_graph_builder *builder, const sp_graph_node *node,
                               sp_array *arrays)
{
    sp_status status = SP_OK;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (status != SP_OK) {
            sp__array_deinit(&arrays[i]);
            continue;
        }
        sp_graph_value *value = &builder->values[node->outputs[i]];
        value->is_constant = true;
        value->dtype = arrays[i].dtype;
        value->shape = arrays[i].shape;
        status = sp__graph_add_weight(builder, arrays[i].data, arrays[i].bytes, &value->weight);
    }
    return status;
}

/* Operands with room for any one node. */
typedef struct fold_room {
    sp_op_value *inputs, *outputs;
    sp_array *arrays;
} fold_room;

static sp_status fold_node(sp_graph_builder *builder, sp_graph_node *node, fold_room *room,
                           const sp_kernel *kernels)
{
    sp_op_call call = sp__graph_call(builder->graph, node, room->inputs, room->outputs);
    SP_TRY(sp__op_infer(&call));
    if (!is_affordable(builder, &call)) return SP_OK;
    SP_TRY(sp__evaluate(&call, kernels, room->arrays));
    node->is_folded = true;
    return set_constants(builder, node, room->arrays);
}

/* An error in a branch counts only if the branch is taken, in a body only if it is entered: plans
 * check again. An If is left to plans, which know the branch; bodies are left to runs. */
static sp_status fold_in_region(sp_graph_builder *builder, sp_graph_node *node, fold_room *room,
                                const sp_kernel *kernels)
{
    if (node->op->traits->is_if || node->body != NULL) return SP_OK;
    if (node->region == SP_NO_REGION) return fold_node(builder, node, room, kernels);
    sp_error_scope scope;
    sp__error_set_aside(&scope);
    const sp_status status = fold_node(builder, node, room, kernels);
    return sp__error_settle(&scope, status == SP_OUT_OF_MEMORY ? status : SP_OK);
}

sp_status sp__graph_fold(sp_graph_builder *builder)
{
    const sp_kernel *kernels = sp__cpu_kernels(sp__cpu_isa_selected());
    const size_t operands = builder->graph->max_operands;
    fold_room room = {.inputs = sp_calloc(operands, sizeof(*room.inputs)),
                      .outputs = sp_calloc(operands, sizeof(*room.outputs)),
                      .arrays = sp_calloc(operands, sizeof(*room.arrays))};
    sp_status status = SP_OK;
    if (room.inputs == NULL || room.outputs == NULL || room.arrays == NULL) {
        status = sp__fail(SP_OUT_OF_MEMORY, "no memory to fold constants");
    }
    const sp_fpenv before = sp_fpenv_enter(); /* shapes too may be computed in floating point */
    for (uint32_t i = 0; i < builder->graph->node_count && status == SP_OK; i++) {
        sp_graph_node *node = &builder->nodes[i];
        if (!node->is_live || !has_constant_inputs(builder->graph, node)) continue;
        status = fold_in_region(builder, node, &room, kernels);
        if (status != SP_OK) (void)sp__graph_fail_node(status, node);
    }
    sp_fpenv_leave(before);
    sp_free(room.inputs);
    sp_free(room.outputs);
    sp_free(room.arrays);
    return status;
}
