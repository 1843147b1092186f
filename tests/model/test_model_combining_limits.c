/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a model with max_concurrent_runs, which wait for each other beside free slots. Needs
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

TEST_MAIN
