/* SPDX-License-Identifier: Apache-2.0 */
/* The recording of a model for one row, as far as proofs have needed it; all proofs of a search
 * compare their larger recording with it. Used by one thread. */
#ifndef SP_PLAN_ROWS_SINGLE_H
#define SP_PLAN_ROWS_SINGLE_H

#include "plan/plan_build.h"
#include "plan/plan_rows.h"

typedef struct sp_rows_single {
    sp_plan_builder builder;
    uint32_t end;   /* nodes before it are recorded */
    uint32_t delay; /* the first node that a plan delays, or SP_NO_NODE */
    bool has_sizes; /* a proof has found a Reshape of rows to constant sizes */
} sp_rows_single;

/* SP_INVALID for fewer than two rows. */
sp_status sp__rows_check(uint64_t rows);

/* Borrows the request. Errors: as sp__plan_compile. */
sp_status sp__rows_single_init(const sp_graph *graph, const sp_plan_request *request,
                               sp_rows_single *out);
void sp__rows_single_deinit(sp_rows_single *single);

/* As sp__plan_prove_rows, for a number of rows that has been checked. Needs the FP state of kernels
 * (sp_fpenv_enter). */
sp_status sp__rows_single_prove(sp_rows_single *single, const sp_rows_request *request,
                                sp_rows_value *outputs, sp_rows_proof *proof);

#endif
