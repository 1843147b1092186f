/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of loading a graph, in their order; graph.c calls them. They share a builder, in which
 * everything is mutable. */
#ifndef SP_GRAPH_GRAPH_BUILD_H
#define SP_GRAPH_GRAPH_BUILD_H

#include "graph/graph.h"
#include "onnx/onnx.h"

/* The names of one graph of the file. A branch also sees those around it. */
typedef struct sp_graph_scope {
    sp_name_map names;
    const struct sp_graph_scope *outer; /* NULL for the main graph */
    uint32_t region;
    const sp_graph_body *home; /* the body of its nodes */
} sp_graph_scope;

/* Counts over the main graph of a file and the branches below it. */
typedef struct sp_graph_totals {
    uint64_t names; /* of values, with room for those that joined nodes add */
    uint64_t nodes;
    uint64_t regions;
} sp_graph_totals;

/* An argument that a call of a function omits. */
#define SP_ABSENT_VALUE (SP_NO_VALUE - 1)

/* A function of the file (graph_function.c). */
typedef struct sp_graph_function sp_graph_function;

/* The call whose function is being imported; stored on the stack. */
typedef struct sp_graph_call_frame {
    const sp_graph_function *function;
    sp_attribute_list attributes; /* the call's */
    const char *name;             /* of the call, after those of the enclosing calls */
} sp_graph_call_frame;

/* What is written while the graph is built; the pointers of `graph` are these same arrays. */
typedef struct sp_graph_builder {
    sp_graph *graph;
    const sp_onnx_model *model;
    const char *folder; /* of the file, or NULL */
    sp_graph_value *values;
    sp_graph_node *nodes;
    sp_graph_port *inputs, *defaults;
    sp_weight *weights; /* grows; owned by the builder until the end */
    uint32_t weight_capacity;
    uint64_t folded_work; /* bytes and multiply-adds of folding so far */
    sp_graph_region *regions;
    sp_graph_body *main_body;
    bool *is_captured;     /* room for a mark on each value, for listing a body's captures */
    sp_graph_scope main;   /* of the main graph */
    sp_graph_scope *scope; /* of the graph that is being imported */
    uint64_t call_bytes, most_call_bytes; /* see sp__graph_charge_call */
    sp_name_map function_names;
    sp_graph_function *functions;     /* NULL if the file has none */
    const sp_graph_call_frame *frame; /* NULL: not in a function */
    /* While functions are counted: the nesting depth, and the height of the highest call so far in
     * the function that is being counted. */
    uint32_t counting_depth, counted_height;
} sp_graph_builder;

/* ---- graph_scope.c ---- */

/* Names that the graph itself defines. */
uint64_t sp__graph_count_names(const sp_onnx_graph *file);
sp_status sp__graph_count(sp_graph_builder *builder, const sp_onnx_graph *file,
                          sp_graph_totals *totals);
/* Adds what the nodes contain, functions that they call included. */
sp_status sp__graph_count_nodes(sp_graph_builder *builder, const sp_onnx_node *nodes,
                                uint32_t count, sp_graph_totals *totals);

/* The value of that name, in the scope or an enclosing one, or SP_NO_VALUE. */
uint32_t sp__graph_scope_find(const sp_graph_scope *scope, sp_text name);

/* The values that a subgraph names as its outputs. */
sp_status sp__graph_resolve_results(const sp_graph_builder *builder, const sp_onnx_graph *file,
                                    uint32_t *results);

/* ---- graph_body.c ---- */

/* Imports the body of a Loop or Scan whose inputs are resolved: its nodes, what it captures as
 * further inputs of the node, and a Scan's axes. */
sp_status sp__graph_import_loop(sp_graph_builder *builder, sp_graph_node *node);
/* Makes the body of the model itself, once all is imported. */
sp_status sp__graph_finish_main(sp_graph_builder *builder);

/* ---- graph_function.c ---- */

/* Builds the table of the file's functions. Errors: SP_CORRUPT, two of one name. */
sp_status sp__graph_functions_init(sp_graph_builder *builder);
/* The function that a node calls, or NULL if it is an op. */
sp_graph_function *sp__graph_function_of(const sp_graph_builder *builder, const sp_onnx_node *node);
/* Adds what a call expands to. Errors: SP_CORRUPT, the function calls itself; SP_EXHAUSTED, the
 * expansion is too large, or calls are nested too deeply. */
sp_status sp__graph_count_call(sp_graph_builder *builder, sp_graph_function *function,
                               sp_graph_totals *totals);
/* Imports the function's nodes in place of the call. */
sp_status sp__graph_import_call(sp_graph_builder *builder, const sp_onnx_node *call,
                                const sp_graph_function *function);
/* Adds up what calls duplicate of the file: bytes, or the time that they represent. Counts while a
 * function is imported. Errors: SP_EXHAUSTED above the file's size and SP_GRAPH_FREE_CALL_BYTES. */
sp_status sp__graph_charge_call(sp_graph_builder *builder, uint64_t bytes);
/* The same for an op's attributes, which may become constants. */
sp_status sp__graph_charge_attributes(sp_graph_builder *builder, sp_attribute_list attributes);
/* A node's attributes, with references replaced by the call's attributes. */
sp_status sp__graph_resolve_attributes(sp_graph_builder *builder, sp_attribute_list file,
                                       sp_attribute_list *out);
/* The file's name of a node, or that of its first output; inside a function after the call's
 * name. */
sp_status sp__graph_node_name(sp_graph_builder *builder, const sp_onnx_node *file,
                              const char **out);
/* The version of a domain that the model names, or the function that is being imported. If it names
 * none, the first returns false, the second SP_CORRUPT. */
bool sp__graph_find_opset(const sp_graph_builder *builder, sp_text domain, int64_t *out);
sp_status sp__graph_opset_version(const sp_graph_builder *builder, sp_text domain, int64_t *out);

/* ---- the steps ---- */

/* Values, ports and nodes from the file's tables: names resolved, order and schema checked. */
sp_status sp__graph_import(sp_graph_builder *builder);

/* A new value of the current scope; an empty name adds no name. */
sp_status sp__graph_add_value(sp_graph_builder *builder, sp_text name, uint32_t *out);
/* Parts of the import that branches share: initializers and nodes of a graph, into the current
 * scope. */
sp_status sp__graph_import_body(sp_graph_builder *builder, const sp_onnx_graph *file);
sp_status sp__graph_import_node(sp_graph_builder *builder, const sp_onnx_node *file);
/* Imports the branches of an If whose condition is resolved: their nodes, and their results as
 * inputs of the node. */
sp_status sp__graph_import_branches(sp_graph_builder *builder, const sp_onnx_node *file,
                                    sp_graph_node *node);

/* Marks the nodes that outputs need. */
sp_status sp__graph_mark_live(sp_graph_builder *builder);

/* Marks the inputs whose values determine shapes or branches. */
sp_status sp__graph_mark_shape_inputs(sp_graph_builder *builder);

/* Computes nodes whose inputs are constants. */
sp_status sp__graph_fold(sp_graph_builder *builder);

/* ---- graph_uses.c ---- */

/* For each value: the node that makes it, and how often it is read, outputs of the graph and of
 * bodies included. */
typedef struct sp_graph_uses {
    uint32_t *makers, *reads;
} sp_graph_uses;

sp_status sp__graph_uses_init(const sp_graph *graph, sp_graph_uses *out);
void sp__graph_uses_deinit(sp_graph_uses *uses); /* also after a failure of init */

/* The data of a constant of that type that no run can override, or NULL. */
const void *sp__graph_fixed(const sp_graph *graph, const sp_graph_uses *uses, uint32_t value,
                            sp_dtype dtype);
bool sp__graph_is_live_op(const sp_graph_node *node, const char *op);
/* The node `op` in the same branch whose result is the first input of `reader`, and nothing else;
 * or NULL. */
sp_graph_node *sp__graph_maker_of(sp_graph_builder *builder, const sp_graph_uses *uses,
                                  const sp_graph_node *reader, const char *op);

/* ---- steps that join nodes, after folding ---- */

/* Gives each Conv and AveragePool the zeros of the Pad before it, where possible. */
sp_status sp__graph_fold_pads(sp_graph_builder *builder);

/* Folds each BatchNormalization into the Conv before it, where possible. */
sp_status sp__graph_fold_norms(sp_graph_builder *builder);

/* Drops the weights that nothing reads; marks those that are read packed only. */
sp_status sp__graph_keep_weights(sp_graph_builder *builder);

/* Copies the attributes that plans need from the file's tables. */
sp_status sp__graph_keep_attributes(sp_graph_builder *builder);

/* Takes over `data`. On an error it is freed. */
sp_status sp__graph_add_weight(sp_graph_builder *builder, void *data, uint64_t bytes,
                               uint32_t *index);

/* The call of a node with its inputs as far as the graph knows them: dtype, shape and data of
 * constants, nothing for others. `inputs` and `outputs` have room for the node's counts. */
sp_op_call sp__graph_call(const sp_graph *graph, const sp_graph_node *node, sp_op_value *inputs,
                          sp_op_value *outputs);

/* Sorts the names of inputs and outputs, which stay as they are from then on. */
sp_status sp__graph_sort_names(sp_graph_builder *builder);

#endif
