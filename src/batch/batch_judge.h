/* SPDX-License-Identifier: Apache-2.0 */
/* When batches are faster than the runs of their rows one by one. */
#ifndef SP_BATCH_BATCH_JUDGE_H
#define SP_BATCH_BATCH_JUDGE_H

#include "batch/batch_plans.h"

/* Whether a measured bucket saves something. `caller_ns`: what each row but the first one costs
 * besides its computation; 0: its caller is not a thread that waits. */
bool sp__batch_bucket_saves(const sp_batch_bucket *bucket, uint64_t caller_ns);

/* Sets `pays_for_threads` of the published buckets that save something with `caller_ns`. What a
 * caller costs is measured with each bucket, and the least counts: a wake-up of an idle processor
 * costs several times that of a busy one, and at first there may be none but idle ones. So buckets
 * that did not pay are judged again. */
void sp__batch_plans_judge(sp_batch_plans *plans, uint64_t caller_ns);

#endif
