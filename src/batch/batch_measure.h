/* SPDX-License-Identifier: Apache-2.0 */
/* Which larger plans a plan gets: those whose batches take less time than as many runs, with what
 * the callers' way through the queue costs. Times are measured once, on zeros. */
#ifndef SP_BATCH_BATCH_MEASURE_H
#define SP_BATCH_BATCH_MEASURE_H

#include "batch/batch_plans.h"
#include "exec/model_object.h"

/* The plan that gets larger ones, and the caller that asks for them. */
typedef struct sp_batch_build {
    sp_rt_model *model;
    const uint64_t *words; /* of the plan's key */
    uint32_t word_count;
    const sp_atomic_u32 *is_stopping; /* nonzero: the build ends early */
    /* After each bucket: attaches the plans unless they are attached already. False: there is
     * nothing to attach them to any more, and the build ends early. */
    bool (*attach)(const struct sp_batch_build *build, sp_batch_plans *plans);
    /* NULL, or called after each size: creates the missing batches that leads want, if the plan is
     * still there. */
    void (*refill)(const struct sp_batch_build *build);
} sp_batch_build;

/* The larger plans, held by the caller: without buckets if rows are not separable, or batches not
 * faster. Errors: SP_OUT_OF_MEMORY, SP_CLOSED; none has been attached then. */
sp_status sp__batch_plans_make(const sp_batch_build *build, sp_batch_plans **out);

#endif
