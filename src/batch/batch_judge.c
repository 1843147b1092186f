/* SPDX-License-Identifier: Apache-2.0 */
#include "batch/batch_judge.h"

#include "base/option.h"
#include "batch/batch_time.h"

/* What a batch must save, in parts of a lone run's time. */
#define SAVINGS 16u

bool sp__batch_bucket_saves(const sp_batch_bucket *bucket, uint64_t caller_ns)
{
    if (sp_option_enum(SP_OPTION_BATCHING) == SP_OPTION_BATCHING_ALWAYS) return true;
    const uint64_t all = bucket->rows * (bucket->lone_ns - bucket->lone_ns / SAVINGS);
    const uint64_t callers = (bucket->rows - 1) * caller_ns;
    return bucket->run_ns <= SP_BATCH_MAX_NS && bucket->run_ns + callers < all;
}

void sp__batch_plans_judge(sp_batch_plans *plans, uint64_t caller_ns)
{
    const uint32_t count = sp__batch_plans_count(plans);
    for (uint32_t i = 0; i < count; i++) {
        if (sp__batch_bucket_saves(&plans->buckets[i], caller_ns)) {
            sp__batch_bucket_pays(plans, i);
        }
    }
}
