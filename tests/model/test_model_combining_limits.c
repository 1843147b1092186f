/* SPDX-License-Identifier: Apache-2.0 */
/* How much there is of what batches need: runs of a model with max_concurrent_runs, which wait for
 * each other beside free slots, and batches for as many slots as there are. Needs
 * STREAMPOOL_BATCHING=always. */
#include "batch/batch_builder.h"
#include "combining_fixture.h"

enum { RUNS = 70 }; /* more than a plan's runs must find others in their way */

/* While the test has the only slot of the model. */
static void run_behind_a_limit(sp_model model)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_run_slots *slots = sp__device_run_slots(held->device);
    const sp_run_terms terms = {.flow = &held->flow, .is_counted = true};
    small_row outs[RUNS];
    sp_future futures[RUNS];
    CHECK_OK(sp__run_slots_acquire(slots, &terms));
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(small_submit(model, &outs[i], &futures[i]));
    }
    CHECK_EQ_U64(sp__run_slots_waiting(slots), RUNS);
    sp__wait_entry_resume(sp__run_slots_release(slots, &terms));
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_OK(sp_future_release(futures[i]));
    }
    sp__model_drop(held);
}

TEST(a_model_that_runs_once_at_a_time_gets_larger_plans)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_model model = small_model(&(sp_model_options){.max_concurrent_runs = 1});
    run_behind_a_limit(model);
    sp__batch_builder_drain();
    CHECK(combining_buckets(model) > 0);
    const merged_runs before = merged_of(model);
    run_behind_a_limit(model);
    CHECK(merged_since(model, before).runs > RUNS / 2);
    CHECK_OK(sp_model_release(model));
}

/* Of 2, 3, 4, 6 and 8 rows one for each slot and at least 4; of 12, 16, 24, 32, 48 and 64 rows 2.
 */
TEST(a_bucket_of_few_rows_has_a_batch_for_each_slot)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    CHECK_EQ_U64(combining_prepare(model, &x, 1), 11);
    held_slots held = slots_hold(model);
    const uint32_t slots = held.count;
    slots_give(&held);
    CHECK_EQ_U64(combining_batches(model), 5 * (slots > 4 ? slots : 4) + 6 * 2);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
