/* SPDX-License-Identifier: Apache-2.0 */
/* A model compiled for given input shapes: dispatches in order, with a memory location for every
 * binding. Kernels, operands and their sizes: how a dispatch is cut is its device's
 * (docs/decisions/0077). Pure data, immutable, shared by all threads; it knows nothing of devices,
 * streams or threads. Borrows the graph, which must outlive it.
 *
 * A *partial plan* (docs/decisions/0025) ends before nodes whose shapes follow from values that the
 * run computes, and before Loop and Scan. It names these nodes; its outputs are the values that the
 * rest of the model needs.
 *
 * A run provides one memory for each input and output and an arena of `arena_bytes`, and executes
 * the steps in order; a step sees the writes of those before it. Inputs, weights, packed weights
 * and constants are only read. Outputs may be read by later steps after they have been written. No
 * alignment is needed but that of the elements, for inputs and outputs; the arena starts at a
 * multiple of 64. */
#ifndef SP_PLAN_PLAN_H
#define SP_PLAN_PLAN_H

#include "base/atomic.h"
#include "graph/graph.h"

typedef enum sp_place_kind {
    SP_PLACE_INPUT,    /* the run's input `index`: graph inputs, then overridden defaults */
    SP_PLACE_OUTPUT,   /* the run's output `index` */
    SP_PLACE_WEIGHT,   /* the graph's weights[index] */
    SP_PLACE_PACKED,   /* the copy that the plan's packings[index] describes */
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
    uint32_t binding_count;
    const sp_plan_binding *bindings;
    const void *constants; /* 16-byte aligned */
    uint32_t constant_bytes;
    uint64_t multiply_adds; /* 0: not counted */
    /* For errors and traces. A fused step has the name of its first node, and an op name like
     * "Gemm+Relu". */
    const char *node_name, *op_name;
} sp_plan_step;

/* A weight in the layout that kernels read (ops/pack.h). The copy depends on nothing else, so all
 * plans and runs share it. It is made for the run, not here: a plan owns no memory for it. */
typedef struct sp_packing {
    uint32_t weight;     /* of the graph */
    sp_kernel_id kernel; /* packs: reads the weight, writes the copy */
    uint32_t constant_bytes;
    const void *constants; /* 16-byte aligned */
    uint64_t bytes;        /* of the copy, which begins at a multiple of 64 */
} sp_packing;

typedef struct sp_plan_tensor {
    const char *name;
    uint32_t value; /* of the graph */
    bool is_known;  /* its values follow from the plan's key and are small */
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
} sp_plan_tensor;

/* A range of the arena and the steps during which it holds one value: from the first that writes it
 * to the last that accesses it. Two that overlap in steps never overlap in bytes. */
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
    bool has_narrow; /* steps whose bits are those of one kind of processor (decisions/0072) */
    /* The whole model unless one of these is true. */
    bool is_subgraph;      /* computes a subgraph: other inputs or outputs than the model's */
    bool is_partial;       /* ends at these nodes: */
    const uint32_t *stops; /* nodes whose inputs are available; the run computes each */
    const uint32_t *asked; /* conditions whose values must be known to the next plan */
    uint32_t stop_count, asked_count;
    sp_bump bump; /* owns everything but the constants' data */
} sp_graph_plan;

/* The input of a request for a plan. All of it belongs to the plan's key. */
typedef struct sp_plan_input {
    sp_dtype dtype;
    sp_shape shape;
    const void *data; /* NULL, or the values: the plan is then valid for these values only */
} sp_plan_input;

typedef struct sp_plan_override {
    uint32_t index; /* of graph->defaults */
    sp_plan_input input;
} sp_plan_override;

/* The subgraph that a plan computes: in one body, the values `wanted` from the values `given`.
 * Values that the body captures must be given unless they are constant. */
typedef struct sp_plan_subgraph {
    const sp_graph_body *body;
    const uint32_t *given, *wanted;
    uint32_t given_count, wanted_count;
} sp_plan_subgraph;

/* Limit of the inputs, overrides and outputs of a plan, in all: each is a slot of a command list
 * (sp_binding). */
#define SP_PLAN_PORTS UINT16_MAX

/* The output shape of a Reshape whose constant sizes are for one row, in a plan for many. */
typedef struct sp_plan_reshape {
    uint32_t node; /* of the graph */
    sp_shape shape;
} sp_plan_reshape;

/* A constant operand of one row, in a plan for many: the node reads a copy of `shape` in which its
 * elements [outer, inner] are [outer, rows, inner]. */
typedef struct sp_plan_repeat {
    uint32_t node, value; /* of the graph */
    uint64_t inner;
    sp_shape shape;
} sp_plan_repeat;

#define SP_PLAN_REPEATS 64

typedef struct sp_plan_request {
    const sp_kernel *kernels;         /* NULL: those of the selected instruction set */
    const sp_plan_subgraph *subgraph; /* NULL: all of the model; else the inputs are `given` */
    const sp_plan_input *inputs;
    const sp_plan_override *overrides;
    uint32_t input_count, override_count;
    /* For batches of a model whose file has a batch of 1 (plan_rows.h). */
    bool is_any_size; /* inputs may have other sizes than the file says */
    const sp_plan_reshape *reshapes;
    const sp_plan_repeat *repeats; /* at most SP_PLAN_REPEATS */
    uint32_t reshape_count, repeat_count;
    bool is_unfused; /* no fused steps; the bits are the same. For comparisons */
    bool is_blocked; /* images between convolutions are in blocks of channels; the same bits. For
                        the CPU: no other device has the kernels */
    /* With is_blocked: a pool is a part of the convolution before it whatever the sizes. For tests
     */
    bool pools_any_size;
    sp_precision precision; /* of products with constant matrices and convolutions. Other bits */
    bool packs_left;        /* of all of these products (sp_op_call). For tests */
    bool is_strided; /* steps read and write by strides what would be copied; the same bits. For the
                        CPU: no other device has the kernel */
} sp_plan_request;

/* Does the step compute by a precision, with other bits on a GPU than on the cpu? */
bool sp__plan_step_is_narrow(const sp_plan_step *step);

/* Errors: SP_MISMATCH naming input or node, SP_UNSUPPORTED naming op, version and dtype,
 * SP_EXHAUSTED for sizes that overflow, SP_OUT_OF_MEMORY. */
sp_status sp__plan_compile(const sp_graph *graph, const sp_plan_request *request,
                           const sp_graph_plan **out);
void sp__plan_destroy(const sp_graph_plan *plan);

/* Limits of one run of a model. */
typedef struct sp_run_limits {
    uint64_t bytes;         /* see sp_model_options; 0: no limit */
    uint64_t trips;         /* iterations of Loop and Scan */
    uint64_t partial_bytes; /* of the values between partial plans */
    /* Names of the options with these limits, for errors. */
    const char *trips_name, *partial_name;
} sp_run_limits;

/* Checks the plan's arena and outputs against `max_bytes`; 0: no limit. Errors: SP_EXHAUSTED naming
 * both numbers. */
sp_status sp__plan_check_bytes(const sp_graph_plan *plan, uint64_t max_bytes);

/* Do both describe the same copy of the same weight? */
bool sp__packing_equal(const sp_packing *a, const sp_packing *b);

/* Writes the copy that a packing describes to `out`, with kernels of the CPU. Needs the FP state of
 * kernels (sp_fpenv_enter) and the weight's elements, here and below: in a model these are there
 * while they are held (exec/weight_store.h). */
sp_status sp__packing_run(const sp_graph *graph, const sp_packing *packing,
                          const sp_kernel *kernels, void *out);

/* Executes a plan on the calling thread, step by step: the reference that every other execution
 * must equal bit for bit. `inputs` and `outputs` in the plan's order; `arena` may be NULL if the
 * plan needs none. Packs weights for this run only. */
sp_status sp__plan_run_reference(const sp_graph_plan *plan, const void *const *inputs,
                                 void *const *outputs, void *arena);

/* The same with the plan's packed weights, in the order of its packings. SP_CANCELLED before a step
 * if `cancel` is not NULL and the flag is set. */
sp_status sp__plan_run_packed(const sp_graph_plan *plan, const void *const *inputs,
                              void *const *outputs, void *arena, void *const *packed,
                              const sp_atomic_u32 *cancel);

/* The same without a cancel, with the nanoseconds of each step in `step_ns`. */
sp_status sp__plan_run_timed(const sp_graph_plan *plan, const void *const *inputs,
                             void *const *outputs, void *arena, void *const *packed,
                             uint64_t *step_ns);

/* Checks the plan's invariants: bindings within their memories, no overlap of live values, no read
 * before the write. For tests and debug builds. Errors: SP_INTERNAL naming the violation. */
sp_status sp__plan_check(const sp_graph_plan *plan);

#endif
