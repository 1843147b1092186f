/* SPDX-License-Identifier: Apache-2.0 */
/* A model as the runtime uses it: values, nodes in execution order, constants. Built once from a
 * file's bytes, which are not needed afterwards; immutable then, so any thread may read it.
 *
 * Loading refuses what cannot run whatever the shapes are (unknown ops, wrong counts, cycles,
 * duplicate names), drops nodes that no output needs, computes nodes whose inputs are all constant,
 * and folds normalisations into convolutions. Shapes are left to plans. Weights keep the file's
 * layout; plans name the layouts that their kernels need.
 *
 * Calls of functions of the file's own are replaced by the functions' nodes, named "call/node".
 *
 * Limits: SP_GRAPH_MAX_NODES nodes, calls included, of SP_GRAPH_MAX_OPERANDS inputs and outputs;
 * names and tables of 32 bytes for each byte of the file plus 1 MiB; folding makes values of up to
 * SP_FOLD_VALUE_BYTES with up to SP_FOLD_TOTAL_WORK bytes and multiply-adds in all; nodes beyond
 * that run with the model. */
#ifndef SP_GRAPH_GRAPH_H
#define SP_GRAPH_GRAPH_H

#include "base/bump.h"
#include "base/name_map.h"
#include "ops/cpu/arch/kernels.h"
#include "ops/op.h"

#define SP_GRAPH_MAX_NODES 65536
#define SP_GRAPH_MAX_OPERANDS 4096
#define SP_GRAPH_MAX_CALLS 32             /* nested calls of functions */
#define SP_GRAPH_MAX_CALL_NAMES (1 << 18) /* values of a file with functions */
#define SP_GRAPH_FREE_CALL_BYTES (UINT64_C(256) << 20)
#define SP_FOLD_VALUE_BYTES (UINT64_C(16) << 20)
#define SP_FOLD_TOTAL_WORK (UINT64_C(256) << 20)

#define SP_NO_WEIGHT UINT32_MAX
#define SP_NO_REGION UINT32_MAX

/* A constant, 64-byte aligned, owned by the graph: an initializer as the file has it, or a folded
 * value. */
typedef struct sp_weight {
    void *data;
    uint64_t bytes;
    bool is_only_packed; /* no step of any plan reads it in this layout (sp__lower_pack) */
    /* It has STREAMPOOL_PARK_BYTES at least, and all that reads it may read it packed: its bytes
     * may be away while a packed copy exists (exec/weight_store.h). A plan uses none of its
     * elements. */
    bool is_parkable;
    bool is_finite; /* of a convolution with several taps: no element is infinite or a NaN */
} sp_weight;

typedef struct sp_graph_value {
    const char *name; /* "" for an output that its node omits */
    bool is_constant; /* then dtype and shape are known */
    bool is_default;  /* a constant that a run may override */
    sp_dtype dtype;
    sp_shape shape;
    uint32_t weight; /* of a constant that is read, or SP_NO_WEIGHT */
} sp_graph_value;

/* An input or output of a body, as far as the file describes it. */
typedef struct sp_graph_slot {
    uint32_t value;
    sp_dtype dtype; /* SP_DTYPE_NONE if the file does not say */
    sp_shape shape; /* 0 where a dimension is free */
} sp_graph_slot;

/* The axis and direction in which a Scan iterates over one of its inputs or outputs. */
typedef struct sp_scan_axis {
    int64_t axis;
    bool is_reversed;
} sp_scan_axis;

/* A subgraph that its Loop or Scan computes once per iteration; the model itself is one too,
 * computed once. Its nodes are contiguous in the list, before the node that it belongs to, and
 * include the bodies inside; the values that it defines are contiguous as well. */
typedef struct sp_graph_body {
    uint32_t first_node, end_node;
    uint32_t first_value, end_value;
    const sp_graph_slot *inputs, *outputs;
    const uint32_t *captures; /* outer values that it uses, bodies inside included */
    uint32_t input_count, output_count, capture_count;
    /* Of a Scan, which iterates over the last inputs and outputs. */
    const sp_scan_axis *input_axes, *output_axes;
    uint32_t scan_input_count, scan_output_count;
} sp_graph_body;

/* The nodes of one branch of an If, or of a body. Those of a branch are in the graph's list, before
 * the If itself, and belong to a plan only if the condition, which comes before them, chooses the
 * branch. */
typedef struct sp_graph_region {
    uint32_t parent;           /* region of the If, Loop or Scan, or SP_NO_REGION */
    const sp_graph_body *home; /* the nearest body around these nodes */
    bool is_branch;
    bool is_then;
    uint32_t condition; /* of a branch: a value, one bool */
} sp_graph_region;

/* Inputs of an If: the condition, the results of the then-branch, those of the else-branch. Those
 * of a Loop or Scan: the file's, then what the body captures. */
typedef struct sp_graph_node {
    const char *name; /* the file's, or the name of the first output */
    const sp_op *op;
    uint32_t version; /* the opset's */
    sp_attribute_list attributes;
    const uint32_t *inputs, *outputs; /* values; an omitted input is SP_NO_VALUE */
    uint32_t input_count, output_count;
    bool is_live;              /* an output of the graph needs it */
    bool is_folded;            /* its outputs are constants, unless a default is overridden */
    uint32_t region;           /* the branch or body that contains it, or SP_NO_REGION */
    const sp_graph_body *body; /* of a Loop or Scan, or NULL */
} sp_graph_node;

/* An input or output of the model, as the file declares it. */
typedef struct sp_graph_port {
    const char *name;
    uint32_t value;
    sp_dtype dtype; /* SP_DTYPE_NONE if the file does not say */
    bool has_shape;
    uint32_t rank;
    int64_t dims[SP_MAX_RANK];          /* -1 is free */
    const char *dim_names[SP_MAX_RANK]; /* of free dimensions, or "" */
    bool determines_shapes;             /* an input whose values shapes, or branches, depend on */
} sp_graph_port;

typedef struct sp_graph_name {
    const char *name;
    uint32_t index; /* of the port */
} sp_graph_name;

typedef struct sp_graph {
    const sp_graph_value *values;
    const sp_graph_node *nodes; /* each comes after the nodes whose outputs it uses */
    const sp_graph_region *regions;
    const sp_graph_body *main; /* the model itself; its slots are the outputs only */
    const sp_weight *weights;
    const sp_graph_port *inputs;   /* required for a run */
    const sp_graph_port *defaults; /* inputs that have an initializer: optional for a run */
    const sp_graph_port *outputs;
    const sp_graph_name *input_names, *default_names, *output_names; /* sorted */
    uint32_t value_count, node_count, region_count, weight_count;
    uint32_t input_count, default_count, output_count;
    uint32_t max_operands; /* most inputs, or outputs, that any node has */
    uint64_t weight_bytes; /* of all weights, in the file's layout */
    int64_t ir_version;
    uint32_t opset; /* of ONNX's own domain; 0 if the file names none */
    const char *producer;
    sp_bump bump; /* owns everything but the weights' data */
} sp_graph;

/* Loads a model from the bytes of its file. Errors: as sp__onnx_read, SP_UNSUPPORTED naming op and
 * version, SP_CORRUPT naming node and value. */
sp_status sp__graph_load(const void *bytes, size_t len, const sp_graph **out);
/* The same for a file of `folder`, where the data of initializers may be in files beside it. The
 * bytes are a copy of the file that is freed next: pages of them go back to the system when the
 * weights there have been copied, so that a load does not take twice the memory of a large model.
 * NULL: no folder, and bytes that are only read. */
sp_status sp__graph_load_in(const char *folder, const void *bytes, size_t len,
                            const sp_graph **out);
void sp__graph_destroy(const sp_graph *graph);

/* The call of a node on operands of the caller: the inputs are filled in, the outputs are zeroed
 * here. */
sp_op_call sp__graph_node_call(const sp_graph_node *node, const sp_op_value *inputs,
                               sp_op_value *outputs);

/* The body that contains a node. */
static inline const sp_graph_body *sp__graph_home(const sp_graph *graph, const sp_graph_node *node)
{
    return node->region == SP_NO_REGION ? graph->main : graph->regions[node->region].home;
}

/* Prepends "node 'name' (Conv): " to the last error. */
sp_status sp__graph_fail_node(sp_status status, const sp_graph_node *node);

/* Index of the port called `name`, or SP_NO_VALUE. Time: O(log count). */
uint32_t sp__graph_name_find(const sp_graph_name *names, uint32_t count, const char *name);

#endif
