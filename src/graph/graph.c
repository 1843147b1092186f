/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: read the file's tables, import, mark live, fold, join, keep what plans need, sort the
 * names of inputs and outputs. */
#include "graph/graph.h"

#include <string.h>

#include "base/error.h"
#include "base/heap.h"
#include "base/macros.h"
#include "graph/graph_build.h"

enum { TABLE_BYTES_PER_BYTE = 32, TABLE_BYTES_FREE = 1 << 20 };

sp_status sp__graph_fail_node(sp_status status, const sp_graph_node *node)
{
    const sp_text_print name = sp__text_print(sp__text(node->name));
    return sp__fail_prefix(status, "node '%s' (%s): ", name.text, node->op->name);
}

sp_status sp__graph_add_weight(sp_graph_builder *builder, void *data, uint64_t bytes,
                               uint32_t *index)
{
    sp_graph *graph = builder->graph;
    sp_weight *larger =
        sp_grow(builder->weights, graph->weight_count, &builder->weight_capacity, sizeof(*larger));
    if (larger == NULL) {
        sp_free(data);
        return sp__fail(SP_OUT_OF_MEMORY, "no memory for the table of weights");
    }
    builder->weights = larger;
    graph->weights = larger;
    *index = graph->weight_count++;
    builder->weights[*index] = (sp_weight){.data = data, .bytes = bytes};
    return SP_OK;
}

sp_op_call sp__graph_node_call(const sp_graph_node *node, const sp_op_value *inputs,
                               sp_op_value *outputs)
{
    memset(outputs, 0, node->output_count * sizeof(*outputs));
    return (sp_op_call){.op = node->op,
                        .version = node->version,
                        .attributes = node->attributes,
                        .inputs = inputs,
                        .outputs = outputs,
                        .input_count = node->input_count,
                        .output_count = node->output_count};
}

sp_op_call sp__graph_call(const sp_graph *graph, const sp_graph_node *node, sp_op_value *inputs,
                          sp_op_value *outputs)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        inputs[i] = (sp_op_value){0};
        if (node->inputs[i] == SP_NO_VALUE) continue;
        const sp_graph_value *value = &graph->values[node->inputs[i]];
        inputs[i].is_present = true;
        if (!value->is_constant) continue;
        inputs[i].dtype = value->dtype;
        inputs[i].shape = value->shape;
        if (value->weight == SP_NO_WEIGHT) continue;
        inputs[i].data = graph->weights[value->weight].data;
        inputs[i].bytes = graph->weights[value->weight].bytes;
    }
    return sp__graph_node_call(node, inputs, outputs);
}

static sp_status graph_build(sp_graph_builder *builder, const void *bytes, size_t len)
{
    const uint64_t names = sp__graph_count_names(&builder->model->graph);
    SP_TRY(sp__name_map_init(&builder->main.names, names, sp__name_map_key(bytes, len)));
    builder->main.region = SP_NO_REGION;
    builder->main.home = builder->graph->main;
    builder->scope = &builder->main;
    SP_TRY(sp__graph_import(builder));
    SP_TRY(sp__graph_mark_live(builder));
    SP_TRY(sp__graph_mark_shape_inputs(builder));
    SP_TRY(sp__graph_fold(builder));
    SP_TRY(sp__graph_fold_pads(builder));
    SP_TRY(sp__graph_fold_norms(builder));
    SP_TRY(sp__graph_keep_weights(builder));
    SP_TRY(sp__graph_keep_attributes(builder));
    return sp__graph_sort_names(builder);
}

sp_status sp__graph_load(const void *bytes, size_t len, const sp_graph **out)
{
    return sp__graph_load_in(NULL, bytes, len, out);
}

sp_status sp__graph_load_in(const char *folder, const void *bytes, size_t len, const sp_graph **out)
{
    *out = NULL;
    sp_graph_builder builder = {.graph = sp_calloc(1, sizeof(sp_graph)), .folder = folder};
    builder.most_call_bytes = (uint64_t)len + SP_GRAPH_FREE_CALL_BYTES;
    if (builder.graph == NULL) return sp__fail(SP_OUT_OF_MEMORY, "no memory for a model");
    sp__bump_init(&builder.graph->bump, (uint64_t)len * TABLE_BYTES_PER_BYTE + TABLE_BYTES_FREE);
    sp_status status = sp__onnx_read(bytes, len, &builder.model);
    if (status == SP_OK) {
        status = sp__bump_array(&builder.graph->bump, 1, sizeof(sp_graph_body), &builder.main_body);
        builder.graph->main = builder.main_body;
    }
    if (status == SP_OK) status = graph_build(&builder, bytes, len);
    sp__name_map_deinit(&builder.main.names);
    sp_free(builder.is_captured);
    sp__name_map_deinit(&builder.function_names);
    sp__onnx_destroy(builder.model);
    if (status != SP_OK) {
        sp__graph_destroy(builder.graph);
        return status;
    }
    for (uint32_t i = 0; i < builder.graph->weight_count; i++) {
        builder.graph->weight_bytes += builder.weights[i].bytes;
    }
    *out = builder.graph;
    return SP_OK;
}

void sp__graph_destroy(const sp_graph *graph)
{
    if (graph == NULL) return;
    sp_graph *owned = (sp_graph *)(uintptr_t)graph; /* const only for its users */
    for (uint32_t i = 0; i < owned->weight_count; i++) sp_free(owned->weights[i].data);
    sp_free((void *)(uintptr_t)owned->weights);
    sp__bump_deinit(&owned->bump);
    sp_free(owned);
}
