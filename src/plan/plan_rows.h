/* SPDX-License-Identifier: Apache-2.0 */
/* Proof that a model computes each row of a batch by itself (ops/rows.h). The model is inferred
 * twice, with one row and with many, and each node's two calls are compared. So a proof holds for
 * this number of rows, these shapes, and these values of shape-determining inputs. It says nothing
 * of failures: an index out of range in one row fails the whole batch. */
#ifndef SP_PLAN_PLAN_ROWS_H
#define SP_PLAN_PLAN_ROWS_H

#include "ops/rows.h"
#include "plan/plan.h"

#define SP_NO_NODE UINT32_MAX

typedef struct sp_rows_request {
    const sp_plan_request *single, *many; /* of all of the model */
    uint64_t rows;                        /* of `many`, at least 2 */
    /* Of `many`, by input, then by override. A batched one has no values there; a shared one is the
     * same for all rows, which is the caller's to check. */
    const sp_rows_value *inputs;
    bool grows_all; /* a Reshape to constant sizes grows where its rows are, even if they allow
                     * another shape, as [1, -1] does */
} sp_rows_request;

/* Reshapes whose sizes are constants for one row. */
#define SP_ROWS_RESHAPES 64
#define SP_ROWS_MESSAGE_BYTES 256

typedef struct sp_rows_proof {
    bool is_separable;
    const char *reason; /* constant text; NULL: separable */
    /* The error of the larger request if that is the reason; else "". */
    char message[SP_ROWS_MESSAGE_BYTES];
    uint32_t node;   /* the first that is not, in the graph's order, or SP_NO_NODE */
    uint32_t output; /* if it is no node: the output that is not batched, or SP_NO_OUTPUT */
    /* For plans with many rows. */
    sp_plan_reshape reshapes[SP_ROWS_RESHAPES];
    sp_plan_repeat repeats[SP_PLAN_REPEATS];
    uint32_t reshape_count, repeat_count;
} sp_rows_proof;

/* Compares the two, up to the first node that is not separable; `outputs` of the model, by output,
 * are written if the model is separable. Errors: of the single request, as sp__plan_compile;
 * SP_OUT_OF_MEMORY; SP_INVALID for fewer than two rows. */
sp_status sp__plan_prove_rows(const sp_graph *graph, const sp_rows_request *request,
                              sp_rows_value *outputs, sp_rows_proof *proof);

/* Most proofs that a search tries: half of them with Reshapes to constant sizes as they are. */
#define SP_ROWS_ATTEMPTS 64

/* Room for the inputs of the larger request that sp__plan_find_rows makes. */
typedef struct sp_rows_search {
    sp_plan_input *inputs; /* by input */
    sp_rows_value *rows;   /* by input, then by override */
} sp_rows_search;

/* Searches the axes of the inputs that a batch of `rows` has: dimensions of size 1 in `single`.
 * Dimensions that have one name in the file are tried first. Overrides and inputs whose values
 * belong to the request are shared, and so are inputs without such a dimension. If no proof
 * succeeds, `proof` is that which came farthest. Errors: as sp__plan_prove_rows. */
sp_status sp__plan_find_rows(const sp_graph *graph, const sp_plan_request *single, uint64_t rows,
                             const sp_rows_search *search, sp_rows_value *outputs,
                             sp_rows_proof *proof);

#endif
