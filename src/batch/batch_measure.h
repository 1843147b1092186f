/* SPDX-License-Identifier: Apache-2.0 */
/* Which larger plans a plan gets: those whose batches take less time than as many runs, with what
 * it costs to wake the callers. Times are measured once, on zeros. */
#ifndef SP_BATCH_BATCH_MEASURE_H
#define SP_BATCH_BATCH_MEASURE_H

#include "batch/batch_plans.h"
#include "exec/model_object.h"

/* The larger plans of the plan whose key is `words`: none if its rows are not separable, or
 * batches not faster. Stops early, with those that are there, when *is_stopping is set. Errors:
 * SP_OUT_OF_MEMORY, SP_CLOSED. */
sp_status sp__batch_plans_make(sp_rt_model *model, const uint64_t *words, uint32_t word_count,
                               const sp_atomic_u32 *is_stopping, sp_batch_plans **out);

#endif
