/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: the memory of one run of a bucket's plan, and the requests that are its rows. One run
 * uses it at a time; idle ones are kept by their bucket. */
#ifndef SP_BATCH_BATCH_H
#define SP_BATCH_BATCH_H

#include "batch/batch_plans.h"
#include "exec/context.h"
#include "exec/model_object.h"
#include "exec/run_slots.h"

struct sp_batch {
    sp_batch_plans *plans;
    sp_batch_bucket *bucket;
    sp_exec_context *context;
    sp_block *block; /* of the tensors, on devices that access host memory; else NULL */
    void **ports;    /* addresses of the batch's tensors in host memory: inputs, then outputs */
    /* By port: where the rows of this run are, in bytes behind that address; NULL: in the tensor.
     */
    int64_t **places;
    sp_batch *next;                          /* in the bucket */
    sp_run_request *requests[SP_BATCH_ROWS]; /* by row; [0] leads */
    /* Of a run without a thread that waits for it. */
    uint32_t queue; /* index of the submit queue */
    sp_status status;
    sp_point point; /* its last */
    sp_waiter waiter;
};

/* A batch for the bucket, from free memory alone. Errors: SP_OUT_OF_MEMORY. */
sp_status sp__batch_create(sp_batch_plans *plans, sp_batch_bucket *bucket, sp_batch **out);
void sp__batch_destroy(sp_batch *batch);
/* Of its memory on the model's device, without what workspaces lend it. */
uint64_t sp__batch_bytes(const sp_batch *batch);

/* For the owner of a slot: a batch of `lead` and other requests of its group that wait, so many
 * that each slot gets its share; NULL: `lead` is to run alone. */
sp_batch *sp__batch_form(sp_batch_plans *plans, sp_run_slots *slots, sp_run_group *group,
                         sp_run_request *lead);

/* Whether the request may be in the lead's batch: inputs that are not batched have the same values,
 * and it may still begin. */
bool sp__batch_accepts(const sp_batch_plans *plans, const sp_run_request *lead,
                       const sp_run_request *request);

/* All is done: releases the batch, then, if the calling thread leads, its slot in `slots`, so that
 * the next lead finds the batch; then finishes the requests of others. NULL: a submitted run leads,
 * whose request is one of these. */
void sp__batch_finish(sp_batch *batch, sp_run_slots *slots, sp_resume_list *ready);
/* The batch has failed: all requests but the lead's are to run alone, so that only the guilty ones
 * fail. Releases the batch. */
void sp__batch_break(sp_batch *batch, sp_run_slots *slots, sp_resume_list *ready);

/* Counts a batch that has been formed. */
void sp__batch_count(sp_rt_model *model, const sp_batch *batch);

/* Of a thread's request, before it waits for one of the slots: its large inputs are in a row of the
 * plans from now on, if there is one for it and it will not be refused. It may have reserved a
 * place then. `plans` may be NULL, as the request's group. */
void sp__batch_row_take(const sp_batch_plans *plans, sp_run_slots *slots, sp_run_request *request);
/* When no batch has the request any more: returns the row, if any. is_done: a batch has computed
 * the request, whose large outputs are in the row. */
void sp__batch_row_return(const sp_batch_plans *plans, sp_run_request *request, bool is_done);

/* Copies the inputs of all requests in, and the outputs out, but for what is in rows of callers
 * (batch_rows.h): these are found where they are, and are written there. */
void sp__batch_gather(const sp_batch *batch);
void sp__batch_scatter(const sp_batch *batch);

#endif
