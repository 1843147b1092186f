/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes of compiling share: plan_steps.c visits the nodes and records steps whose
 * bindings name values, plan_fuse.c fuses steps, plan_places.c assigns memory to the values. */
#ifndef SP_PLAN_PLAN_BUILD_H
#define SP_PLAN_PLAN_BUILD_H

#include "ops/lowering.h"
#include "plan/plan.h"

#define SP_NO_STEP UINT32_MAX
#define SP_NO_OUTPUT UINT32_MAX
#define SP_NO_PACKING UINT32_MAX

/* A value of the graph, or (after those) a scratch buffer of one node. */
typedef struct sp_plan_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;    /* if known */
    bool is_there;       /* available: given, constant, or computed by a recorded step */
    bool is_kept;        /* needed after a partial plan */
    bool is_tainted;     /* depends on an overridden default: the graph's folded value is invalid */
    bool is_computed;    /* a step writes it: its memory is assigned at the end */
    bool is_laid_out;    /* its offset has been assigned */
    bool is_released;    /* its memory has been given back to the layout */
    sp_place_kind where; /* of a value that is not computed */
    uint32_t index;
    uint32_t root;    /* the value that owns the bytes: itself, or what it is a view of */
    uint32_t packing; /* of a constant: the newest packing of it, or SP_NO_PACKING */
    /* The rest is for roots that are computed. */
    uint32_t output;                /* the output whose memory it uses, or SP_NO_OUTPUT */
    uint32_t first_step, last_step; /* SP_NO_STEP: none */
    uint32_t in_place;              /* the root whose memory it may reuse, or SP_NO_VALUE */
    uint32_t home;                  /* the root of whose memory it is a part, or SP_NO_VALUE */
    uint64_t home_offset;           /* in that, a multiple of 64 */
    uint64_t offset;                /* in the arena, if it has no home */
    /* Before steps are fused: the number of bindings and outputs that name it; the step that writes
     * it; the last one that reads it. */
    uint32_t use_count, writer, reader;
} sp_plan_value;

/* Nodes that a plan delays to later plans, and why. */
typedef struct sp_plan_delays {
    uint32_t *nodes; /* grows */
    uint32_t *stops; /* grows: those whose inputs are available */
    uint32_t *asked; /* grows: conditions that are available and unknown */
    uint32_t node_count, stop_count, asked_count;
    uint32_t node_capacity, stop_capacity, asked_capacity;
} sp_plan_delays;

/* A packing that steps use; linked to the previous one of the same value. */
typedef struct sp_plan_packing {
    sp_packing what;
    uint32_t next; /* or SP_NO_PACKING */
} sp_plan_packing;

/* Bindings of recorded steps: SP_PLACE_PACKED is final; SP_PLACE_ARENA means root value `index`,
 * wherever it is placed later. */
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
    uint32_t packed[SP_OP_PACKED_INPUTS]; /* packings of the current node, from input 1 on */
    uint32_t repeated[SP_PLAN_REPEATS];   /* values, by repeat of the request, once made */
    uint64_t folded_work;
    const sp_graph_body *body; /* the body whose nodes are recorded */
    bool *is_needed;           /* by node of the body; NULL: all that are live */
    uint32_t *outputs;         /* values */
    uint32_t output_count;
    sp_plan_delays delays;
    sp_lowering lowering;
    sp_op_value *operands; /* room for graph->max_operands inputs, then as many outputs */
    sp_array *arrays;
} sp_plan_builder;

/* ---- plan.c ---- */

/* Checks the request and makes a builder with no node recorded. The caller destroys it; after an
 * error there is none. */
sp_status sp__plan_builder_create(const sp_graph *graph, const sp_plan_request *request,
                                  sp_plan_builder *out);
void sp__plan_builder_destroy(sp_plan_builder *builder);

/* ---- plan_steps.c ---- */

/* Sets the values of inputs, overrides and constants, then records a step for every dispatch. */
sp_status sp__plan_record(sp_plan_builder *builder);

/* The same in parts: the values; then each node of builder->body, in order. */
sp_status sp__plan_record_begin(sp_plan_builder *builder);
sp_status sp__plan_record_node(sp_plan_builder *builder, uint32_t index);

/* The value that a node reads as input `input`: that of the graph, or its repeated copy. */
uint32_t sp__plan_input_value(const sp_plan_builder *builder, const sp_graph_node *node,
                              uint32_t input);

/* Adds a value that the graph does not have: it is computed, and has these bytes. */
sp_status sp__plan_add_value(sp_plan_builder *builder, uint64_t bytes, uint32_t *index);

/* Adds a value that is a constant of the plan, which takes ownership of `data`, also on an error.
 */
sp_status sp__plan_add_constant(sp_plan_builder *builder, void *data, uint64_t bytes,
                                uint32_t *index);

/* ---- plan_packing.c ---- */

/* The binding of a constant value as it is packed; `what` has no weight, which is the value's.
 * Equal packings are one. */
sp_status sp__plan_pack(sp_plan_builder *builder, uint32_t value, const sp_packing *what,
                        sp_plan_binding *out);

/* The same of a matrix. */
sp_status sp__plan_pack_matrix(sp_plan_builder *builder, uint32_t value, const sp_pack *pack,
                               sp_plan_binding *out);

/* Finds the inputs of the node that its op reads packed: marks them in the call's `inputs` and sets
 * their packings in builder->packed. */
sp_status sp__plan_pack_inputs(sp_plan_builder *builder, const sp_graph_node *node,
                               const sp_op_call *call, sp_op_value *inputs);

/* Call after recording: copies the packings into the plan. */
sp_status sp__plan_finish_packings(sp_plan_builder *builder);

/* ---- plan_subgraph.c ---- */

/* Call before recording: finds the nodes that the wanted values of a subgraph need. */
sp_status sp__plan_subgraph_begin(sp_plan_builder *builder);

/* Is the node to be recorded? */
bool sp__plan_has_node(const sp_plan_builder *builder, uint32_t index);

/* Delays a node to a later plan. `is_stop`: all its inputs are available. */
sp_status sp__plan_delay(sp_plan_builder *builder, uint32_t index, bool is_stop);

/* Call after recording: sets the plan's outputs, and the nodes where it ends. */
sp_status sp__plan_subgraph_end(sp_plan_builder *builder);
void sp__plan_subgraph_deinit(sp_plan_builder *builder);

/* ---- plan_places.c ---- */

/* Assigns memory to all values, adds copies for outputs that no step writes, and completes the
 * plan. */
sp_status sp__plan_place(sp_plan_builder *builder);

/* Appends a step; constants and bindings are copied into the plan. */
sp_status sp__plan_add_step(sp_plan_builder *builder, const sp_plan_step *step);

/* The recorded bindings are in the plan's memory; the builder may still write them. */
static inline sp_plan_binding *sp__plan_bindings(const sp_plan_step *step)
{
    return (sp_plan_binding *)(uintptr_t)step->bindings;
}

/* ---- plan_arena.c ---- */

bool sp__plan_is_in_arena(const sp_plan_value *root);

/* The bytes of the arena, which is not laid out. */
sp_status sp__plan_arena_bytes(sp_plan_builder *builder, uint64_t *bytes);

/* Sets the offsets of values, and the plan's lifetimes and arena_bytes. */
sp_status sp__plan_lay_out(sp_plan_builder *builder);

/* ---- plan_join.c ---- */

/* The memory of a root value: `offset` bytes into that of `root`, which has no home. */
typedef struct sp_plan_home {
    uint32_t root;
    uint64_t offset;
} sp_plan_home;

sp_plan_home sp__plan_home(const sp_plan_builder *builder, uint32_t root);

/* Parts of joined and split values become parts of the whole's memory. The steps that would copy
 * them are taken away, unless the arena would become larger. Call after outputs have memory. */
sp_status sp__plan_join(sp_plan_builder *builder);

#endif
