/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of compiling share: plan_steps.c walks the nodes and records steps whose bindings
 * name values, plan_fuse.c makes one step of two, plan_places.c decides where the values live. */
#ifndef SP_PLAN_PLAN_BUILD_H
#define SP_PLAN_PLAN_BUILD_H

#include "ops/lowering.h"
#include "plan/plan.h"

#define SP_NO_STEP UINT32_MAX
#define SP_NO_OUTPUT UINT32_MAX
#define SP_NO_PACKING UINT32_MAX

/* A value of the graph, or (behind those) a scratch of one node. */
typedef struct sp_plan_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;    /* if known */
    bool is_there;       /* given, constant, or computed by what has been recorded */
    bool is_kept;        /* what comes after a part needs it */
    bool is_tainted;     /* depends on an overridden default: what the graph folded does not hold */
    bool is_computed;    /* a step writes it: its place is found in the end */
    bool is_laid_out;    /* it has its offset */
    sp_place_kind where; /* of one that is not computed */
    uint32_t index;
    uint32_t root;    /* the value whose bytes these are: itself, or what it is a view of */
    uint32_t packing; /* of a constant: the newest packing of it, or SP_NO_PACKING */
    /* The rest is about roots that are computed. */
    uint32_t output;                /* the output that is its memory, or SP_NO_OUTPUT */
    uint32_t first_step, last_step; /* SP_NO_STEP: none */
    uint32_t in_place;              /* the root whose memory it may take over, or SP_NO_VALUE */
    uint64_t offset;
    /* Before steps are fused: bindings and outputs that name it, the step that writes it. */
    uint32_t use_count, writer;
} sp_plan_value;

/* Nodes that a plan leaves to later ones, and why. */
typedef struct sp_plan_delays {
    uint32_t *nodes; /* grows */
    uint32_t *stops; /* grows: those whose inputs are there */
    uint32_t *asked; /* grows: conditions that are there and unknown */
    uint32_t node_count, stop_count, asked_count;
    uint32_t node_capacity, stop_capacity, asked_capacity;
} sp_plan_delays;

/* A packing that steps have asked for, and the one of the same value before it. */
typedef struct sp_plan_packing {
    sp_packing what;
    uint32_t next; /* or SP_NO_PACKING */
} sp_plan_packing;

/* Bindings of recorded steps: SP_PLACE_PACKED is final; SP_PLACE_ARENA means "the root value
 * `index`, wherever it will be". */
typedef struct sp_plan_builder {
    sp_graph_plan *plan;
    const sp_plan_request *request;
    const sp_kernel *kernels;
    sp_plan_value *values; /* grows by scratch */
    uint32_t value_count, value_capacity;
    sp_plan_step *steps; /* grows; copied into the plan at the end */
    uint32_t step_capacity;
    sp_weight *constants; /* grows */
    uint32_t constant_capacity;
    sp_plan_packing *packings; /* grows; copied into the plan at the end */
    uint32_t packing_count, packing_capacity;
    uint32_t packed[SP_OP_PACKED_INPUTS]; /* packings of the node at hand, inputs 1 and on */
    uint64_t folded_work;
    const sp_graph_body *body; /* whose nodes are recorded */
    bool *is_needed;           /* by node of the body; NULL: all that are live */
    uint32_t *outputs;         /* values */
    uint32_t output_count;
    sp_plan_delays delays;
    sp_lowering lowering;
    sp_op_value *operands; /* room for graph->max_operands inputs, then as many outputs */
    sp_array *arrays;
} sp_plan_builder;

/* ---- plan_steps.c ---- */

/* Values of inputs, overrides and constants, then a step for every dispatch. */
sp_status sp__plan_record(sp_plan_builder *builder);

/* ---- plan_packing.c ---- */

/* Which inputs of the node its op wants packed: marks them in the call's `inputs`, notes their
 * packings in builder->packed. */
sp_status sp__plan_pack_inputs(sp_plan_builder *builder, const sp_graph_node *node,
                               const sp_op_call *call, sp_op_value *inputs);

/* After the recording: the packings become the plan's. */
sp_status sp__plan_finish_packings(sp_plan_builder *builder);

/* ---- plan_subgraph.c ---- */

/* Before the recording: which nodes the wanted values of a part need. */
sp_status sp__plan_subgraph_begin(sp_plan_builder *builder);

/* Is the node one of those that are to be recorded? */
bool sp__plan_has_node(const sp_plan_builder *builder, uint32_t index);

/* Leaves a node to a later plan. `is_stop`: all its inputs are there. */
sp_status sp__plan_delay(sp_plan_builder *builder, uint32_t index, bool is_stop);

/* After the recording: what the plan gives, and where it ends. */
sp_status sp__plan_subgraph_end(sp_plan_builder *builder);
void sp__plan_subgraph_deinit(sp_plan_builder *builder);

/* ---- plan_places.c ---- */

/* Places for all values; copies for outputs that no step writes. Finishes the plan. */
sp_status sp__plan_place(sp_plan_builder *builder);

/* One more step; constants and bindings are copied into the plan. */
sp_status sp__plan_add_step(sp_plan_builder *builder, const sp_plan_step *step);

#endif
