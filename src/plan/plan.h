/* SPDX-License-Identifier: Apache-2.0 */
/* A model compiled for given input shapes: dispatches in order, with every binding's place. Pure
 * data, immutable, shared by all threads; it knows nothing of devices, streams or threads. Borrows
 * the graph, which must outlive it.
 *
 * A plan of a *part* (docs/decisions/0025) goes as far as what is known allows: it ends before
 * nodes whose shapes follow from values that the run computes, and before Loop and Scan. It says
 * where, and its outputs are what the rest needs of it.
 *
 * A run gives one memory for each input and output and an arena of `arena_bytes`, and executes the
 * steps in order; a step sees the writes of those before it. Inputs, weights, packed weights and
 * constants are only read. Outputs may be read by later steps after they have been written. No
 * alignment is needed but that of the elements, for inputs and outputs; the arena starts at a
 * multiple of 64. */
#ifndef SP_PLAN_PLAN_H
#define SP_PLAN_PLAN_H

#include "graph/graph.h"

typedef enum sp_place_kind {
    SP_PLACE_INPUT,    /* the run's input `index`: graph inputs, then overridden defaults */
    SP_PLACE_OUTPUT,   /* the run's output `index` */
    SP_PLACE_WEIGHT,   /* the graph's weights[index] */
    SP_PLACE_PACKED,   /* what the plan's packings[index] makes */
    SP_PLACE_CONSTANT, /* the plan's constants[index] */
    SP_PLACE_ARENA
} sp_place_kind;

typedef struct sp_plan_binding {
    sp_place_kind where;
    uint32_t index; /* 0 for the arena */
    bool is_write;
    uint64_t offset; /* in the arena, a multiple of 64; 0 elsewhere */
    uint64_t bytes;
} sp_plan_binding;

typedef struct sp_plan_step {
    sp_kernel_id kernel;
    uint32_t grid[3];
    uint32_t binding_count;
    const sp_plan_binding *bindings;
    const void *constants; /* 16-byte aligned */
    uint32_t constant_bytes;
    /* For errors and traces. A step that applies an activation too has the name of the node that it
     * begins with, and "Gemm+Relu". */
    const char *node_name, *op_name;
} sp_plan_step;

/* A weight in the layout that kernels want. It depends on nothing else, so one copy serves all
 * plans and runs; whoever runs the plan makes it, since the plan has no memory. */
typedef struct sp_packing {
    uint32_t weight;     /* of the graph */
    sp_kernel_id kernel; /* lays it out: reads the weight, writes the copy */
    uint32_t grid[3];
    uint32_t constant_bytes;
    const void *constants; /* 16-byte aligned */
    uint64_t bytes;        /* of the copy, which begins at a multiple of 64 */
} sp_packing;

typedef struct sp_plan_tensor {
    const char *name;
    uint32_t value; /* of the graph */
    bool is_known;  /* its values follow from the plan's key, and are few */
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
} sp_plan_tensor;

/* When a stretch of the arena holds one value: from the step that writes it first to the last one
 * that touches it. Two that overlap in time never overlap in space. */
typedef struct sp_plan_lifetime {
    uint64_t offset, bytes;
    uint32_t first_step, last_step;
} sp_plan_lifetime;

typedef struct sp_graph_plan {
    const sp_graph *graph;
    const sp_kernel *kernels; /* of the CPU: the table for its instruction set */
    const sp_plan_step *steps;
    const sp_plan_tensor *inputs, *outputs;
    const sp_weight *constants; /* folded for these shapes */
    const sp_packing *packings; /* no two are equal */
    const sp_plan_lifetime *lifetimes;
    uint32_t step_count, input_count, output_count, constant_count, lifetime_count;
    uint32_t packing_count;
    uint64_t arena_bytes;
    /* All of the model unless one of these is true. */
    bool is_subgraph;      /* begins elsewhere than the model, or ends elsewhere */
    bool is_partial;       /* more is to be computed, after what follows: */
    const uint32_t *stops; /* nodes whose inputs are there, for the run to compute one by one */
    const uint32_t *asked; /* conditions whose values must be known to the next plan */
    uint32_t stop_count, asked_count;
    sp_bump bump; /* owns everything but the constants' data */
} sp_graph_plan;

/* What a plan is made for. Everything in it belongs to the plan's key. */
typedef struct sp_plan_input {
    sp_dtype dtype;
    sp_shape shape;
    const void *data; /* NULL, or the values: the plan then holds for these values only */
} sp_plan_input;

typedef struct sp_plan_override {
    uint32_t index; /* of graph->defaults */
    sp_plan_input input;
} sp_plan_override;

/* What a plan computes if not all of the model: of one body, the values `wanted` from the values
 * `given`. What the nodes of a body capture must be given, unless it is constant. */
typedef struct sp_plan_subgraph {
    const sp_graph_body *body;
    const uint32_t *given, *wanted;
    uint32_t given_count, wanted_count;
} sp_plan_subgraph;

/* Most inputs, overrides and outputs of a plan, all together: each is a slot of a command list
 * (sp_binding). */
#define SP_PLAN_PORTS UINT16_MAX

typedef struct sp_plan_request {
    const sp_kernel *kernels;         /* NULL: those of the selected instruction set */
    const sp_plan_subgraph *subgraph; /* NULL: all; else the inputs are those of `given` */
    const sp_plan_input *inputs;
    const sp_plan_override *overrides;
    uint32_t input_count, override_count;
    bool is_unfused; /* every op is a step of its own; the bits are the same. For comparisons */
} sp_plan_request;

/* Errors: SP_MISMATCH naming input or node, SP_UNSUPPORTED naming op, version and dtype,
 * SP_EXHAUSTED for absurd sizes, SP_OUT_OF_MEMORY. */
sp_status sp__plan_compile(const sp_graph *graph, const sp_plan_request *request,
                           const sp_graph_plan **out);
void sp__plan_destroy(const sp_graph_plan *plan);

/* What one run of a model may take. */
typedef struct sp_run_limits {
    uint64_t bytes;         /* see sp_model_options; 0: any number */
    uint64_t trips;         /* through bodies of Loop and Scan */
    uint64_t partial_bytes; /* of the values between partial plans */
    /* Of the options that say so, for errors. */
    const char *trips_name, *partial_name;
} sp_run_limits;

/* May a run have the plan's arena and outputs? `max_bytes` of 0 is any number. Errors: SP_EXHAUSTED
 * naming both numbers. */
sp_status sp__plan_check_bytes(const sp_graph_plan *plan, uint64_t max_bytes);

/* Do both make the same of one weight? */
bool sp__packing_equal(const sp_packing *a, const sp_packing *b);

/* Makes what a packing of the graph describes at `out`, with kernels of the CPU. Needs the FP state
 * of kernels (sp_fpenv_enter). */
sp_status sp__packing_run(const sp_graph *graph, const sp_packing *packing,
                          const sp_kernel *kernels, void *out);

/* Executes a plan on the calling thread, the plain way: what every other way of running it must
 * equal bit for bit. `inputs` and `outputs` in the plan's order; `arena` may be NULL if the plan
 * needs none. Packs weights for this one run. */
sp_status sp__plan_run_reference(const sp_graph_plan *plan, const void *const *inputs,
                                 void *const *outputs, void *arena);

/* The same with the plan's packed weights, in the order of its packings. */
sp_status sp__plan_run_packed(const sp_graph_plan *plan, const void *const *inputs,
                              void *const *outputs, void *arena, void *const *packed);

/* Does the plan keep its invariants? Bindings within their memories, no overlap of living values,
 * nothing read before it is written. For tests and debug builds; SP_INTERNAL says what is broken.
 */
sp_status sp__plan_check(const sp_graph_plan *plan);

#endif
