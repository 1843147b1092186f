/* SPDX-License-Identifier: Apache-2.0 */
/* Cancelled runs, by their future or a token: those that are refused, wait or are done. Their
 * futures are done at once, and other runs have their bits. Runs that compute are in
 * test_cancel_running.c, the end of the process in test_cancel_process.c. */
#include <string.h>

#include <streampool/null_device.h>
#include <streampool/storage.h>

#include "base/heap.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "cancel_fixture.h"
#include "combining_fixture.h"

enum { MOST_SLOTS = 128 };

/* ---- tokens ---- */

TEST(a_token_is_cancelled_once_and_for_all)
{
    const sp_cancel_token token = token_create();
    bool is_cancelled = true;
    CHECK_OK(sp_cancel_token_is_cancelled(token, &is_cancelled));
    CHECK(!is_cancelled);
    CHECK_OK(sp_cancel_token_retain(token));
    CHECK_OK(sp_cancel_token_release(token));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(sp_cancel_token_cancel(token));
        CHECK_OK(sp_cancel_token_is_cancelled(token, &is_cancelled));
        CHECK(is_cancelled);
    }
    CHECK_OK(sp_cancel_token_release(token));
    CHECK_STATUS(sp_cancel_token_release(token), SP_INVALID);
    const sp_cancel_token fresh = token_create(); /* in the same slot */
    CHECK_OK(sp_cancel_token_is_cancelled(fresh, &is_cancelled));
    CHECK(!is_cancelled);
    CHECK_OK(sp_cancel_token_release(fresh));
}

static void check_refused(sp_model model, sp_cancel_token token, const char *message)
{
    bool is_cancelled = true;
    small_row row;
    sp_future future = {1};
    CHECK_STATUS(sp_cancel_token_retain(token), SP_INVALID);
    CHECK_STATUS(sp_cancel_token_cancel(token), SP_INVALID);
    CHECK_MESSAGE(message);
    CHECK_STATUS(sp_cancel_token_is_cancelled(token, &is_cancelled), SP_INVALID);
    CHECK(!is_cancelled);
    if (token.bits == 0) return;
    CHECK_STATUS(small_run_with(model, token, &row), SP_INVALID);
    CHECK_MESSAGE(message);
    CHECK_STATUS(small_submit_with(model, token, &row, &future), SP_INVALID);
    CHECK_EQ_U64(future.bits, 0);
}

TEST(zero_stale_foreign_and_forged_tokens_are_refused)
{
    const sp_model model = small_model(NULL);
    const sp_cancel_token token = token_create();
    CHECK_OK(sp_cancel_token_release(token));
    check_refused(model, token, "cancel token handle");
    check_refused(model, (sp_cancel_token){0}, "the cancel token handle is the zero handle");
    check_refused(model, (sp_cancel_token){model.bits}, "is no cancel token handle");
    check_refused(model, (sp_cancel_token){UINT64_MAX}, "is no cancel token handle");
    CHECK_OK(sp_cancel_token_release((sp_cancel_token){0}));
    CHECK_STATUS(sp_cancel_token_create(NULL), SP_INVALID);
    CHECK_MESSAGE("sp_cancel_token_create: out is NULL");
    CHECK_STATUS(sp_cancel_token_is_cancelled(token, NULL), SP_INVALID);
    CHECK_MESSAGE("sp_cancel_token_is_cancelled: out is NULL");
    const sp_host_tensor x = input_x(1);
    CHECK_STATUS(sp_model_submit_with(model, NULL, &x, 1, NULL, 0, NULL), SP_INVALID);
    CHECK_MESSAGE("sp_model_submit: out is NULL");
    CHECK_OK(sp_model_release(model));
}

TEST(a_future_that_does_not_work_is_refused)
{
    const sp_model model = small_model(NULL);
    small_row row;
    sp_future future;
    CHECK_OK(small_submit(model, &row, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    CHECK_STATUS(sp_future_cancel(future), SP_INVALID);
    CHECK_MESSAGE("future handle");
    CHECK_STATUS(sp_future_cancel((sp_future){0}), SP_INVALID);
    CHECK_STATUS(sp_future_cancel((sp_future){model.bits}), SP_INVALID);
    CHECK_OK(sp_model_release(model));
}

TEST(a_run_with_a_cancelled_token_is_refused_and_one_without_a_token_runs)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    const sp_cancel_token token = token_create();
    small_row row = wiped_row();
    sp_future future = {1};
    CHECK_OK(small_run_with(model, token, &row));
    CHECK(small_is_same(&row, &expected));
    CHECK_OK(sp_cancel_token_cancel(token));
    row = wiped_row();
    CHECK_STATUS(small_run_with(model, token, &row), SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), CANCELLED_TEXT);
    CHECK_STATUS(small_submit_with(model, token, &row, &future), SP_CANCELLED);
    CHECK_EQ_U64(future.bits, 0);
    const small_row wiped = wiped_row();
    CHECK(small_is_same(&row, &wiped));
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)row.bytes, SMALL_OUT);
    CHECK_OK(sp_model_run_with(model, NULL, &x, 1, &y, 1));
    CHECK(small_is_same(&row, &expected));
    CHECK_OK(sp_cancel_token_release(token));
    CHECK_OK(sp_model_release(model));
}

/* ---- done ---- */

TEST(a_future_that_is_done_stays_as_it_is)
{
    null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const small_row expected = small_run(model);
    const sp_cancel_token token = token_create();
    small_row row[2];
    sp_future futures[2];
    CHECK_OK(small_submit_with(model, token, &row[0], &futures[0]));
    CHECK_OK(sp_future_wait(futures[0]));
    CHECK_OK(sp_null_fail_command(f.device, 0));
    CHECK_OK(small_submit_with(model, token, &row[1], &futures[1]));
    CHECK_STATUS(sp_future_wait(futures[1]), SP_FAILED);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_future_cancel(futures[i]));
    CHECK_OK(sp_cancel_token_cancel(token));
    CHECK_OK(sp_future_query(futures[0]));
    CHECK(small_is_same(&row[0], &expected));
    CHECK_STATUS(sp_future_query(futures[1]), SP_FAILED);
    CHECK_MESSAGE("injected fault");
    for (int i = 0; i < 2; i++) CHECK_OK(sp_future_release(futures[i]));
    CHECK_OK(sp_cancel_token_release(token));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

/* ---- queued for a slot ---- */

enum { QUEUED = 6 };

TEST(a_run_that_is_queued_for_a_slot_is_done_at_once_and_others_keep_their_places)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    small_row rows[QUEUED];
    sp_future futures[QUEUED];
    held_slots held = slots_hold(model);
    for (int i = 0; i < QUEUED; i++) {
        rows[i] = wiped_row();
        CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    }
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), QUEUED);
    for (int i = 0; i < QUEUED; i += 2) {
        CHECK_OK(sp_future_cancel(futures[i]));
        check_cancelled(futures[i], &rows[i]);
        CHECK_OK(sp_future_cancel(futures[i])); /* twice, and after the end */
    }
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), QUEUED / 2);
    sp_model_statistics statistics;
    CHECK_OK(sp_model_get_statistics(model, &statistics));
    CHECK_EQ_U64(statistics.cancelled, QUEUED / 2);
    CHECK_EQ_U64(statistics.waiting, QUEUED / 2);
    slots_give(&held);
    for (int i = 0; i < QUEUED; i++) {
        CHECK_STATUS(sp_future_wait(futures[i]), i % 2 == 0 ? SP_CANCELLED : SP_OK);
        if (i % 2 != 0) CHECK(small_is_same(&rows[i], &expected));
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(sp_model_release(model));
}

TEST(a_token_cancels_all_runs_that_are_queued_with_it_and_no_others)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    const sp_cancel_token tokens[2] = {token_create(), token_create()};
    small_row rows[QUEUED];
    sp_future futures[QUEUED];
    held_slots held = slots_hold(model);
    for (int i = 0; i < QUEUED; i++) {
        rows[i] = wiped_row();
        CHECK_OK(small_submit_with(model, tokens[i % 2], &rows[i], &futures[i]));
    }
    CHECK_OK(sp_cancel_token_cancel(tokens[1]));
    CHECK_OK(sp_cancel_token_release(tokens[1]));
    CHECK_OK(sp_cancel_token_release(tokens[0])); /* runs that use it continue */
    for (int i = 1; i < QUEUED; i += 2) check_cancelled(futures[i], &rows[i]);
    for (int i = 0; i < QUEUED; i += 2) CHECK_STATUS(sp_future_query(futures[i]), SP_NOT_READY);
    slots_give(&held);
    for (int i = 0; i < QUEUED; i++) {
        CHECK_STATUS(sp_future_wait(futures[i]), i % 2 == 0 ? SP_OK : SP_CANCELLED);
        if (i % 2 == 0) CHECK(small_is_same(&rows[i], &expected));
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(sp_model_release(model));
}

static void note_status(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), CANCELLED_TEXT);
    sp_fetch_add_release((sp_atomic_u32 *)ctx, 1);
}

TEST(a_cancelled_run_calls_its_callbacks_also_without_a_handle)
{
    const sp_model model = small_model(NULL);
    const sp_cancel_token token = token_create();
    small_row rows[2];
    sp_future futures[2];
    sp_atomic_u32 calls = {0};
    held_slots held = slots_hold(model);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(small_submit_with(model, token, &rows[i], &futures[i]));
        CHECK_OK(sp_future_on_complete(futures[i], note_status, &calls));
    }
    CHECK_OK(sp_future_release(futures[0]));
    CHECK_OK(sp_cancel_token_cancel(token));
    await_count(&calls, 2);
    CHECK_OK(sp_future_on_complete(futures[1], note_status, &calls));
    await_count(&calls, 3);
    CHECK_OK(sp_future_release(futures[1]));
    slots_give(&held);
    CHECK_OK(sp_cancel_token_release(token));
    CHECK_OK(sp_model_release(model));
}

static uint64_t bytes_in_use(void)
{
    sp_memory_stats stats;
    CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &stats));
    return stats.in_use_bytes;
}

TEST(a_cancelled_run_that_has_the_last_hold_of_its_model_ends_it)
{
    sp__batch_builder_drain(); /* it may hold models of other tests */
    const uint64_t before = bytes_in_use();
    const sp_model model = small_model(NULL);
    held_slots held = slots_hold(model);
    small_row row = wiped_row();
    sp_future future;
    CHECK_OK(small_submit(model, &row, &future));
    CHECK_OK(sp_model_release(model));
    sp__model_drop(held.model);
    CHECK_OK(sp_future_cancel(future));
    check_cancelled(future, &row);
    CHECK_OK(sp_future_release(future));
    while (bytes_in_use() > before) sp_thread_yield();
    while (held.count > 0) slots_give_one(&held);
}

/* ---- a waiting thread ---- */

TEST(a_thread_that_is_cancelled_while_it_waits_for_a_slot_leaves_the_queue_at_once)
{
    waiting_run w = {.model = small_model(NULL), .token = token_create()};
    const small_row wiped = wiped_row();
    const small_row expected = small_run(w.model);
    held_slots held = slots_hold(w.model);
    sp_thread thread;
    CHECK_OK(sp_thread_create(&thread, "waiting", waiting_run_thread, &w));
    slots_await(&held, 1);
    CHECK_OK(sp_cancel_token_cancel(w.token));
    sp_thread_join(&thread);
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 0);
    slots_give(&held);
    CHECK_STATUS(w.status, SP_CANCELLED);
    CHECK(small_is_same(&w.row, &wiped));
    const small_row again = small_run(w.model); /* the slot is free */
    CHECK(small_is_same(&again, &expected));
    CHECK_OK(sp_cancel_token_release(w.token));
    CHECK_OK(sp_model_release(w.model));
}

/* ---- queued for a context ---- */

/* All contexts of the plan that was built last; no run can make more. */
typedef struct held_contexts {
    sp_rt_model *model;
    sp_plan_entry *entry;
    sp_exec_context *list[MOST_SLOTS];
    uint32_t count;
} held_contexts;

static held_contexts contexts_hold(sp_model model)
{
    held_contexts held = {.model = sp__model_hold(model)};
    held.entry = sp__plan_cache_acquire_newest(&held.model->plans);
    const uint32_t most = held.model->device->dev->limits.run_slots;
    sp_executable *executable = held.entry->executable;
    sp__executable_preallocate(executable);
    for (; held.count < most; held.count++) {
        held.list[held.count] = sp__exec_context_acquire_idle(executable);
        CHECK(held.list[held.count] != NULL);
        held.list[held.count]->home = SP_NO_HOME;
    }
    CHECK(sp__exec_context_acquire_idle(executable) == NULL);
    return held;
}

static void contexts_release(held_contexts *held)
{
    for (uint32_t i = 0; i < held->count; i++) {
        sp__wait_entry_resume(sp__exec_context_release(held->list[i]));
    }
    sp__plan_cache_release(&held->model->plans, held->entry);
    sp__model_drop(held->model);
}

TEST(a_run_that_is_queued_for_a_context_is_done_at_once_and_its_slot_goes_to_the_next)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    held_contexts held = contexts_hold(model);
    sp_run_slots *slots = sp__device_run_slots(held.model->device);
    const uint32_t count = slots->width + 1; /* the last one is queued for a slot */
    static small_row rows[MOST_SLOTS + 1];
    sp_future futures[MOST_SLOTS + 1];
    REQUIRE(count <= MOST_SLOTS + 1);
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = wiped_row();
        CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    }
    CHECK_EQ_U64(sp__run_slots_waiting(slots), 1);
    CHECK_OK(sp_future_cancel(futures[0]));
    check_cancelled(futures[0], &rows[0]);
    CHECK_EQ_U64(sp__run_slots_waiting(slots), 0);
    CHECK_OK(sp_future_cancel(futures[count - 1])); /* for a context now */
    check_cancelled(futures[count - 1], &rows[count - 1]);
    contexts_release(&held);
    for (uint32_t i = 0; i < count; i++) {
        const bool is_cancelled = i == 0 || i == count - 1;
        CHECK_STATUS(sp_future_wait(futures[i]), is_cancelled ? SP_CANCELLED : SP_OK);
        if (!is_cancelled) CHECK(small_is_same(&rows[i], &expected));
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- beside a release ---- */

typedef struct race {
    sp_model model;
    small_row row;
    sp_future future;
    sp_atomic_u32 calls;
} race;

static void count_call(void *ctx, sp_status status)
{
    CHECK(status == SP_OK || status == SP_CANCELLED);
    sp_fetch_add_release((sp_atomic_u32 *)ctx, 1);
}

static void cancel_or_release(void *arg, uint32_t index)
{
    race *r = arg;
    if (index == 0) {
        CHECK_OK(sp_future_release(r->future));
    } else {
        const sp_status status = sp_future_cancel(r->future);
        CHECK(status == SP_OK || status == SP_INVALID);
    }
}

TEST(a_cancel_beside_the_release_of_the_future_finds_it_or_not)
{
    const sp_model model = small_model(NULL);
    for (uint64_t i = 0; i < test_count(2000, 50); i++) {
        race r = {.model = model};
        CHECK_OK(small_submit(model, &r.row, &r.future));
        CHECK_OK(sp_future_on_complete(r.future, count_call, &r.calls));
        test_threads(3, cancel_or_release, &r);
        await_count(&r.calls, 1);
    }
    CHECK_OK(sp_model_release(model));
}

/* ---- without memory ---- */

TEST(each_allocation_that_fails_fails_the_call_and_leaves_nothing_in_the_token)
{
    const sp_model model = small_model(NULL);
    small_run(model);
    bool has_failed = true;
    for (uint64_t skip = 0; has_failed; skip++) {
        sp_cancel_token token = {1};
        small_row row;
        sp_future future = {0};
        sp_heap_fail_after(skip);
        sp_status status = sp_cancel_token_create(&token);
        if (status == SP_OK) status = small_submit_with(model, token, &row, &future);
        has_failed = sp_heap_has_failed();
        sp_heap_fail_after(UINT64_MAX);
        CHECK(status == SP_OK || (has_failed && status == SP_OUT_OF_MEMORY));
        if (token.bits != 0) CHECK_OK(sp_cancel_token_cancel(token));
        if (status == SP_OK) (void)sp_future_wait(future);
        CHECK_OK(sp_future_release(future));
        CHECK_OK(sp_cancel_token_release(token));
    }
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
