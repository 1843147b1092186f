/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a plan over storages, on a stream: commands like those of any op, ordered by the hazards
 * of the storages. See docs/decisions/0070. */
#ifndef SP_EXEC_TENSOR_RUN_H
#define SP_EXEC_TENSOR_RUN_H

#include "exec/future.h"
#include "exec/model_object.h"
#include "runtime/stream_pool.h"

/* The memory of an input or output: contiguous elements from `offset` on. */
typedef struct sp_tensor_place {
    sp_storage storage;
    uint64_t offset;
} sp_tensor_place;

/* Everything is borrowed. */
typedef struct sp_tensor_run {
    sp_rt_model *model;
    sp_plan_entry *plan_entry; /* of a plan that is not partial */
    const sp_stream_ref *stream;
    /* In the plan's order, all of them. No output shares its storage with an input. */
    const sp_tensor_place *inputs, *outputs;
    uint32_t lane;             /* in which the run is counted */
    sp_rt_cancel_token *token; /* cancels the run; NULL: none */
    const void *call_site;
} sp_tensor_run;

/* A run that has been submitted. Its plan stays in use until sp__tensor_run_await. */
typedef struct sp_tensor_run_submitted {
    sp_rt_future *run;
    sp_future future;
    sp_point last; /* of what was accepted */
} sp_tensor_run_submitted;

/* Submits the run. Unless out->run is NULL, for lack of memory, the call has taken a hold on the
 * model and taken over the use of the plan, also on an error, and sp__tensor_run_await must follow.
 * The outputs are written by the run, or poisoned if it fails. Errors, and no output is written: as
 * sp__submit_command; SP_OUT_OF_MEMORY; SP_CANCELLED. */
sp_status sp__tensor_run_submit(const sp_tensor_run *request, sp_tensor_run_submitted *out);
/* From now on the run ends by itself; its future is the caller's, and done with the status if that
 * is a failure. */
void sp__tensor_run_await(const sp_tensor_run_submitted *submitted, sp_status status);

#endif
