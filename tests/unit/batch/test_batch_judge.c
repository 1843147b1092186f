/* SPDX-License-Identifier: Apache-2.0 */
/* When a measured batch is faster than its rows one by one. */
#include "batch/batch_judge.h"

#include "support/test.h"

/* Of 16 and 32 rows less than half of what lone runs of 1,600 ns take: 24 and 48 thousand with the
 * saving that is wanted. */
static void plans_fill(sp_batch_plans *plans)
{
    *plans = (sp_batch_plans){0};
    plans->buckets[0] = (sp_batch_bucket){.rows = 16, .run_ns = 9000, .lone_ns = 1600};
    plans->buckets[1] = (sp_batch_bucket){.rows = 32, .run_ns = 1500, .lone_ns = 1600};
    sp_store_relaxed(&plans->bucket_count, 2);
}

static bool pays(const sp_batch_plans *plans, uint32_t index)
{
    return sp_load_relaxed(&plans->buckets[index].pays_for_threads) != 0;
}

TEST(a_batch_saves_a_sixteenth_of_its_rows)
{
    const sp_batch_bucket bucket = {.rows = 16, .run_ns = 9000, .lone_ns = 1600};
    CHECK(sp__batch_bucket_saves(&bucket, 0));
    CHECK(sp__batch_bucket_saves(&bucket, 999)); /* 9,000 + 15 x 999 < 24,000 */
    CHECK(!sp__batch_bucket_saves(&bucket, 1000));
}

TEST(a_long_batch_saves_nothing)
{
    const sp_batch_bucket bucket = {.rows = 2, .run_ns = 20000001, .lone_ns = 400000000};
    CHECK(!sp__batch_bucket_saves(&bucket, 0));
}

TEST(a_bucket_pays_once_callers_were_found_to_cost_little)
{
    sp_batch_plans plans;
    plans_fill(&plans);
    sp__batch_plans_judge(&plans, 19000);
    CHECK(!pays(&plans, 0) && !pays(&plans, 1));
    CHECK(!sp__batch_plans_pay_for_threads(&plans));
    sp__batch_plans_judge(&plans, 1400);
    CHECK(!pays(&plans, 0) && pays(&plans, 1));
    CHECK(sp__batch_plans_pay_for_threads(&plans));
    sp__batch_plans_judge(&plans, 900);
    CHECK(pays(&plans, 0) && pays(&plans, 1));
}

TEST(a_bucket_that_is_not_published_is_not_judged)
{
    sp_batch_plans plans;
    plans_fill(&plans);
    sp_store_relaxed(&plans.bucket_count, 1);
    sp__batch_plans_judge(&plans, 0);
    CHECK(pays(&plans, 0) && !pays(&plans, 1));
}

TEST_MAIN
