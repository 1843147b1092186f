/* SPDX-License-Identifier: Apache-2.0 */
/* Runs on the caller's thread: alone or, where the caller finds others waiting when it gets a slot
 * and it pays, as the lead of a batch; or as a row of another caller's batch. */
#ifndef SP_BATCH_BATCH_RUN_H
#define SP_BATCH_BATCH_RUN_H

#include "exec/model_object.h"

/* Waits for a slot after which a plan is worth larger ones. */
#define SP_WAITS_BEFORE_PLANS 64u

/* As sp__model_compute, for a run of the whole model. The plan is in use. */
sp_status sp__batch_run(sp_rt_model *model, sp_plan_entry *entry, const void *const *inputs,
                        void **outputs, const sp_stream_ref *stream, const sp_run_terms *terms);

/* Where a run waits for its turn. */
typedef struct sp_batch_line {
    sp_run_slots *slots;
    sp_run_flow *flow;   /* NULL: that of the slots */
    sp_run_group *group; /* NULL: it must run alone */
} sp_batch_line;

/* For a run of a plan in use, with a thread that waits for it or without. *out is valid for as long
 * as the plan is in use. A plan for which runs often wait for each other gets larger ones. Errors:
 * SP_OUT_OF_MEMORY. */
sp_status sp__batch_line_of(sp_rt_model *model, sp_plan_entry *entry, bool has_thread,
                            sp_batch_line *out);

#endif
