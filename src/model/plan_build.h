/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of compiling share: plan_steps.c walks the nodes and records steps whose bindings
 * name values, plan_fuse.c makes one step of two, plan_places.c decides where the values live. */
#ifndef SP_MODEL_PLAN_BUILD_H
#define SP_MODEL_PLAN_BUILD_H

#include "model/plan.h"
#include "ops/lowering.h"

#define SP_NO_STEP UINT32_MAX
#define SP_NO_OUTPUT UINT32_MAX

/* A value of the graph, or (behind those) a scratch of one node. */
typedef struct sp_plan_value {
    sp_dtype dtype;
    sp_shape shape;
    uint64_t bytes;
    const void *data;    /* if known */
    bool is_tainted;     /* depends on an overridden default: what the graph folded does not hold */
    bool is_computed;    /* a step writes it: its place is found in the end */
    bool is_laid_out;    /* it has its offset */
    sp_place_kind where; /* of one that is not computed */
    uint32_t index;
    uint32_t root; /* the value whose bytes these are: itself, or what it is a view of */
    /* The rest is about roots that are computed. */
    uint32_t output;                /* the output that is its memory, or SP_NO_OUTPUT */
    uint32_t first_step, last_step; /* SP_NO_STEP: none */
    uint32_t in_place;              /* the root whose memory it may take over, or SP_NO_VALUE */
    uint64_t offset;
    /* Before steps are fused: bindings and outputs that name it, the step that writes it. */
    uint32_t use_count, writer;
} sp_plan_value;

/* Bindings of recorded steps: SP_PLACE_WEIGHT is final; SP_PLACE_ARENA means "the root value
 * `index`, wherever it will be". */
typedef struct sp_plan_builder {
    sp_plan *plan;
    const sp_plan_request *request;
    const sp_kernel *kernels;
    sp_plan_value *values; /* grows by scratch */
    uint32_t value_count, value_capacity;
    sp_plan_step *steps; /* grows; copied into the plan at the end */
    uint32_t step_capacity;
    sp_weight *constants; /* grows */
    uint32_t constant_capacity;
    uint64_t folded_work;
    sp_lowering lowering;
    sp_op_value *operands; /* room for graph->max_operands inputs, then as many outputs */
    sp_array *arrays;
} sp_plan_builder;

/* Values of inputs, overrides and constants, then a step for every dispatch. */
sp_status sp__plan_record(sp_plan_builder *builder);

/* Places for all values; copies for outputs that no step writes. Finishes the plan. */
sp_status sp__plan_place(sp_plan_builder *builder);

/* One more step; constants and bindings are copied into the plan. */
sp_status sp__plan_add_step(sp_plan_builder *builder, const sp_plan_step *step);

#endif
