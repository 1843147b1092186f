/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of large rows, which callers or leads copy: what is copied by whom, and bits. */
#include <string.h>

#include "partial_fixture.h"
#include "row_fixture.h"

TEST(callers_copy_their_own_rows_and_get_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const model_kind kinds[] = {FLAT, PIECES, TWO, TABLE};
    for (uint32_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        rows_world w;
        rows_world_open(&w, kinds[i]);
        REQUIRE(w.plans->rows != NULL);
        slot_return r = {
            .w = &w, .free_rows = w.plans->rows->count - CALLERS, .before = check_rows_in_use};
        callers_run(&r, CALLERS, 0);
        CHECK(merged_since(w.model, w.before).runs > 0);
        rows_world_close(&w);
    }
}

TEST(a_lead_copies_for_callers_that_found_no_row)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    rows_world w;
    rows_world_open(&w, FLAT);
    void *taken[MOST_ROWS];
    const uint32_t count = rows_take(&w, taken, w.plans->rows->count - CALLERS / 2);
    slot_return r = {.w = &w, .before = check_rows_in_use};
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).runs > 0);
    rows_give(&w, taken, count);
    rows_world_close(&w);
}

TEST(rows_of_submitted_runs_are_copied_by_the_lead)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const model_kind kinds[] = {FLAT, PIECES};
    for (uint32_t i = 0; i < SP_COUNT_OF(kinds); i++) {
        rows_world w;
        rows_world_open(&w, kinds[i]);
        slot_return r = {
            .w = &w, .free_rows = w.plans->rows->count - CALLERS / 2, .before = check_rows_in_use};
        callers_run(&r, CALLERS / 2, CALLERS / 2);
        CHECK(merged_since(w.model, w.before).runs > 0);
        rows_world_close(&w);
    }
}

TEST(one_bad_row_fails_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    rows_world w;
    rows_world_open(&w, TABLE);
    callers[3].is_bad = true;
    callers[3].expected = SP_INVALID;
    caller_fill(&callers[3], 3, 0);
    slot_return r = {.w = &w};
    callers_run(&r, CALLERS, 0);
    CHECK(merged_since(w.model, w.before).batches > 0);
    rows_world_close(&w);
}

/* The plan of one row has all its steps on the device: those of more rows have not. */
TEST(nothing_is_merged_where_only_larger_plans_have_steps_on_the_cpu)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_device device = rows_device_open();
    caller *r = &callers[0];
    *r = (caller){.kind = TURNED, .model = rows_model_open(TURNED, device, 0)};
    caller_fill(r, 0, 0);
    CHECK_OK(caller_run(r));
    CHECK_EQ_U64(combining_build(r->model), 0);
    CHECK_OK(sp_model_release(r->model));
    rows_device_close(device);
}

TEST(small_rows_and_very_large_ones_are_copied_by_the_lead)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_device device = rows_device_open();
    const sp_model_options options = {.device = device};
    const sp_model model = plain_model(&options);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(model, &x, 1) > 0);
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    CHECK(sp__batch_plans_of(entry)->rows == NULL);
    sp__plan_cache_release(&held->plans, entry);
    sp_batch_rows *made;
    const sp_batch_port ports[2] = {
        {.is_batched = true, .is_by_rows = true, .outer = 1, .chunk = UINT64_C(1) << 20},
        {.is_batched = true, .is_by_rows = true, .outer = 1, .chunk = UINT64_C(2) << 20}};
    CHECK_OK(sp__batch_rows_create(&held->device->staging, ports, 1, 1, &made));
    CHECK(made == NULL);
    CHECK_OK(sp__batch_rows_create(&held->device->staging, ports, 1, 0, &made));
    REQUIRE(made != NULL);
    CHECK_EQ_U64(made->count, 32);
    CHECK(sp__batch_rows_acquire(made) == NULL);
    CHECK(sp__batch_rows_refill(made));
    CHECK(!sp__batch_rows_refill(made));
    sp__batch_rows_destroy(made);
    sp__model_drop(held);
    CHECK_OK(sp_model_release(model));
    rows_device_close(device);
}

TEST_MAIN
