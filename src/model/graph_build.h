/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of loading a graph, in their order; graph.c calls them. They share a builder, in which
 * everything is still mutable. */
#ifndef SP_MODEL_GRAPH_BUILD_H
#define SP_MODEL_GRAPH_BUILD_H

#include "model/graph.h"
#include "model/onnx.h"

/* What is written while the graph is built; the pointers of `graph` are these same arrays. */
typedef struct sp_graph_builder {
    sp_graph *graph;
    const sp_onnx_model *model;
    sp_graph_value *values;
    sp_graph_node *nodes;
    sp_graph_port *inputs, *defaults;
    sp_weight *weights; /* grows; owned by the builder until the end */
    uint32_t weight_capacity;
    uint64_t folded_work; /* bytes and multiply-adds of folding so far */
    sp_name_map names;
} sp_graph_builder;

/* Values, ports and nodes from the file's tables: names resolved, order and schema checked. */
sp_status sp__graph_import(sp_graph_builder *builder);

/* Marks the nodes that outputs need. */
sp_status sp__graph_mark_live(sp_graph_builder *builder);

/* Marks the inputs whose values decide shapes. */
sp_status sp__graph_mark_deciding(sp_graph_builder *builder);

/* Computes constant nodes. */
sp_status sp__graph_fold(sp_graph_builder *builder);

/* Packs weights, then drops the ones that nobody reads unpacked. */
sp_status sp__graph_pack(sp_graph_builder *builder);

/* Copies the attributes that plans need out of the file's tables. */
sp_status sp__graph_keep_attributes(sp_graph_builder *builder);

/* Takes over `data`. On an error it is freed. */
sp_status sp__graph_add_weight(sp_graph_builder *builder, void *data, uint64_t bytes,
                               uint32_t *index);

/* The call of a node whose inputs are as the graph knows them: dtype, shape and data of constants,
 * nothing of others. `inputs` and `outputs` have room for the node's counts. */
sp_op_call sp__graph_call(const sp_graph *graph, const sp_graph_node *node, sp_op_value *inputs,
                          sp_op_value *outputs);

/* Puts "node 'name' (Conv): " before the last error. */
sp_status sp__graph_fail_node(sp_status status, const sp_graph_node *node);

#endif
