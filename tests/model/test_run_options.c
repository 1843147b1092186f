/* SPDX-License-Identifier: Apache-2.0 */
/* How runs wait for their turn: priorities, time-outs, limits of a model, and what is counted. */
#include "base/clock.h"
#include "base/thread.h"
#include "combining_fixture.h"

#include <string.h>

#include <streampool/storage.h>
#include <streampool/stream.h>

static sp_status run_with(sp_model model, const sp_run_options *options, small_row *out)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out, 3);
    return sp_model_run_with(model, options, &x, 1, &y, 1);
}

static sp_status submit_with(sp_model model, const sp_run_options *options, small_row *out,
                             sp_future *future)
{
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)out, 3);
    return sp_model_submit_with(model, options, &x, 1, &y, 1, future);
}

/* ---- arguments ---- */

TEST(options_that_do_not_exist_are_refused)
{
    small_row out;
    sp_future future;
    sp_model model = small_model(NULL);
    const sp_run_options priority = {.priority = (sp_priority)7};
    CHECK_STATUS(run_with(model, &priority, &out), SP_INVALID);
    CHECK(strstr(sp_last_error(), "priority of a run is 7") != NULL);
    CHECK_STATUS(submit_with(model, &priority, &out, &future), SP_INVALID);
    const sp_run_options timeout = {.timeout_ns = -5};
    CHECK_STATUS(run_with(model, &timeout, &out), SP_INVALID);
    CHECK(strstr(sp_last_error(), "time-out of a run is -5 ns") != NULL);
    CHECK_STATUS(submit_with(model, &timeout, &out, &future), SP_INVALID);
    CHECK_STATUS(sp_model_get_statistics(model, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));
    sp_model_statistics statistics;
    CHECK_STATUS(sp_model_get_statistics(model, &statistics), SP_INVALID);
    const sp_model_options heavy = {.weight = 1001};
    CHECK_STATUS(sp_model_load_from_memory("", 0, &heavy, &model), SP_INVALID);
    CHECK(strstr(sp_last_error(), "weight is 1001") != NULL);
}

/* ---- time-outs ---- */

#define SHORT_NS INT64_C(2000000)

TEST(a_run_that_has_not_begun_within_its_time_out_is_not_run)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    held_slots held = slots_hold(model);
    small_row out, wiped;
    memset(&wiped, 0xff, sizeof wiped);
    for (int p = SP_PRIORITY_NORMAL; p <= SP_PRIORITY_HIGH; p++) {
        const sp_run_options options = {.priority = (sp_priority)p, .timeout_ns = SHORT_NS};
        out = wiped;
        const uint64_t begin = sp_clock_now();
        CHECK_STATUS(run_with(model, &options, &out), SP_TIMEOUT);
        CHECK(sp_clock_now() - begin >= (uint64_t)SHORT_NS);
        CHECK(strstr(sp_last_error(), "did not begin before its time-out") != NULL);
        CHECK(small_is_same(&out, &wiped));
    }
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 0);
    slots_give(&held);
    const sp_run_options options = {.timeout_ns = INT64_MAX};
    CHECK_OK(run_with(model, &options, &out));
    CHECK(small_is_same(&out, &expected));
    const sp_model_statistics statistics = statistics_of(model);
    CHECK_EQ_U64(statistics.runs, 4);
    CHECK_EQ_U64(statistics.expired, 2);
    CHECK_EQ_U64(statistics.waited, 2);
    CHECK(statistics.longest_wait_ns >= (uint64_t)SHORT_NS);
    CHECK(statistics.wait_ns >= statistics.longest_wait_ns);
    CHECK_OK(sp_model_release(model));
}

TEST(a_submitted_run_past_its_time_out_is_not_run)
{
    const sp_model model = small_model(NULL);
    held_slots held = slots_hold(model);
    small_row outs[2], wiped;
    memset(&wiped, 0xff, sizeof wiped);
    outs[0] = outs[1] = wiped;
    sp_future futures[2];
    const sp_run_options options = {.timeout_ns = SHORT_NS};
    CHECK_OK(submit_with(model, &options, &outs[0], &futures[0]));
    CHECK_OK(submit_with(model, NULL, &outs[1], &futures[1]));
    sp_clock_sleep((uint64_t)SHORT_NS);
    slots_give(&held);
    CHECK_STATUS(sp_future_wait(futures[0]), SP_TIMEOUT);
    CHECK(strstr(sp_last_error(), "did not begin before its time-out") != NULL);
    CHECK_OK(sp_future_wait(futures[1]));
    const small_row expected = small_run(model);
    CHECK(small_is_same(&outs[0], &wiped));
    CHECK(small_is_same(&outs[1], &expected));
    for (int i = 0; i < 2; i++) CHECK_OK(sp_future_release(futures[i]));
    CHECK_EQ_U64(statistics_of(model).expired, 1);
    CHECK_OK(sp_model_release(model));
}

/* ---- refusals ---- */

TEST(a_run_that_is_not_to_wait_is_refused_if_no_slot_is_free)
{
    const sp_model model = small_model(NULL);
    const sp_run_options options = {.no_wait = true};
    held_slots held = slots_hold(model);
    small_row out;
    sp_future future = {5};
    CHECK_STATUS(run_with(model, &options, &out), SP_BUSY);
    CHECK(strstr(sp_last_error(), "not to wait") != NULL);
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = {0};
    CHECK_STATUS(sp_model_submit_with(model, &options, &x, 1, &y, 1, &future), SP_BUSY);
    CHECK_EQ_U64(future.bits, 0);
    CHECK(y.data == NULL && y.capacity == 0);
    CHECK_STATUS(sp_model_run_with(model, &options, &x, 1, &y, 1), SP_BUSY);
    CHECK(y.data == NULL && y.capacity == 0);
    slots_give(&held);
    CHECK_OK(run_with(model, &options, &out));
    CHECK_OK(submit_with(model, &options, &out, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    const sp_model_statistics statistics = statistics_of(model);
    CHECK_EQ_U64(statistics.refused, 3);
    CHECK_EQ_U64(statistics.runs, 2);
    CHECK_OK(sp_model_release(model));
}

TEST(no_more_runs_wait_than_the_model_allows)
{
    const sp_model model = small_model(&(sp_model_options){.max_waiting = 2});
    const sp_model other = small_model(NULL);
    held_slots held = slots_hold(model);
    small_row outs[4];
    sp_future futures[3];
    for (int i = 0; i < 2; i++) CHECK_OK(submit_with(model, NULL, &outs[i], &futures[i]));
    CHECK_EQ_U64(statistics_of(model).waiting, 2);
    CHECK_STATUS(run_with(model, NULL, &outs[3]), SP_BUSY);
    CHECK(strstr(sp_last_error(), "2 runs of the model wait") != NULL);
    CHECK_OK(submit_with(other, NULL, &outs[2], &futures[2]));
    slots_give(&held);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(run_with(model, NULL, &outs[3]));
    const sp_model_statistics statistics = statistics_of(model);
    CHECK_EQ_U64(statistics.refused, 1);
    CHECK_EQ_U64(statistics.waiting, 0);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_model_release(other));
}

/* ---- limits ---- */

static void run_rows(void *arg, uint32_t index)
{
    const sp_model *model = arg;
    const small_row expected = small_run(*model);
    sp_future future;
    small_row out;
    (void)index;
    for (uint64_t i = 0; i < test_count(2000, 50); i++) {
        memset(&out, 0xff, sizeof out);
        if (i % 4 == 0) {
            CHECK_OK(submit_with(*model, NULL, &out, &future));
            CHECK_OK(sp_future_wait(future));
            CHECK_OK(sp_future_release(future));
        } else {
            CHECK_OK(run_with(*model, NULL, &out));
        }
        CHECK(small_is_same(&out, &expected));
    }
}

TEST(a_model_has_no_more_slots_than_its_limit)
{
    sp_model model = small_model(&(sp_model_options){.max_concurrent_runs = 1});
    test_threads(6, run_rows, &model);
    CHECK_EQ_U64(statistics_of(model).most_in_flight, 1);
    CHECK_OK(sp_model_release(model));
}

/* ---- priorities ---- */

typedef struct order_log {
    sp_atomic_u32 count;
    char names[8];
} order_log;

typedef struct order_entry {
    order_log *log;
    char name;
} order_entry;

static void note_order(void *arg, sp_status status)
{
    const order_entry *entry = arg;
    CHECK_OK(status);
    entry->log->names[sp_load_relaxed(&entry->log->count)] = entry->name;
    sp_fetch_add_release(&entry->log->count, 1); /* pairs with await_count */
}

TEST(high_priority_is_first)
{
    /* No batches: each run has a turn of its own. */
    const sp_model model = small_model(&(sp_model_options){.max_concurrent_runs = 1});
    order_log log = {0};
    order_entry entries[] = {{&log, 'a'}, {&log, 'b'}, {&log, 'X'}, {&log, 'c'}, {&log, 'Y'}};
    small_row outs[5];
    held_slots held = slots_hold(model);
    for (int i = 0; i < 5; i++) {
        sp_future future;
        const bool is_high = entries[i].name <= 'Z';
        const sp_run_options options = {.priority =
                                            is_high ? SP_PRIORITY_HIGH : SP_PRIORITY_NORMAL};
        CHECK_OK(submit_with(model, &options, &outs[i], &future));
        CHECK_OK(sp_future_on_complete(future, note_order, &entries[i]));
        CHECK_OK(sp_future_release(future));
    }
    slots_give(&held);
    await_count(&log.count, 5);
    CHECK_EQ_STR(log.names, "XYabc");
    CHECK_OK(sp_model_release(model));
}

/* ---- statistics ---- */

TEST(batches_are_counted_by_their_rows)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    if (!combining_is_certain()) SKIP("STREAMPOOL_BATCHING is not always");
    CHECK(combining_prepare(model, &x, 1) > 0);
    const sp_model_statistics before = statistics_of(model);
    held_slots held = slots_hold(model);
    small_row outs[12];
    sp_future futures[12];
    for (int i = 0; i < 12; i++) CHECK_OK(submit_with(model, NULL, &outs[i], &futures[i]));
    CHECK_EQ_U64(statistics_of(model).waiting, 12);
    slots_give(&held);
    for (int i = 0; i < 12; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_OK(sp_future_release(futures[i]));
    }
    const sp_model_statistics after = statistics_of(model);
    uint64_t batches = 0, runs = 0;
    for (uint32_t rows = 0; rows <= SP_MODEL_BATCH_ROWS; rows++) {
        const uint64_t count = after.batches_of[rows] - before.batches_of[rows];
        CHECK(count == 0 || rows >= 2);
        batches += count;
        runs += count * rows;
    }
    CHECK(batches > 0);
    CHECK_EQ_U64(batches, after.batches - before.batches);
    CHECK_EQ_U64(runs, after.batched_runs - before.batched_runs);
    CHECK_EQ_U64(after.waited - before.waited, 12);
    CHECK_EQ_U64(after.waiting, 0);
    CHECK(after.timed > 0 && after.timed_ns > 0);
    CHECK_OK(sp_model_release(model));
}

/* ---- all at once ---- */

enum { MODELS = 3, CALLERS = 12 };

typedef struct turmoil {
    sp_model models[MODELS];
    small_row expected;
    sp_atomic_u64 ok[MODELS], expired[MODELS], refused[MODELS];
} turmoil;

static sp_status any_call(sp_model model, uint64_t dice, small_row *out)
{
    sp_future future;
    const sp_run_options options = {.priority =
                                        dice % 5 == 0 ? SP_PRIORITY_HIGH : SP_PRIORITY_NORMAL,
                                    .timeout_ns = dice % 3 == 0 ? (int64_t)(dice % 40000) : 0,
                                    .no_wait = dice % 7 == 0};
    if (dice % 4 != 0) return run_with(model, &options, out);
    SP_TRY(submit_with(model, &options, out, &future));
    const sp_status status = sp_future_wait(future);
    CHECK_OK(sp_future_release(future));
    return status;
}

static void call_in_turmoil(void *arg, uint32_t index)
{
    turmoil *t = arg;
    small_row out;
    uint64_t dice = index + 1;
    for (uint64_t i = 0; i < test_count(20000, 400); i++) {
        dice = dice * 6364136223846793005u + 1442695040888963407u;
        const uint32_t m = (uint32_t)(dice >> 40) % MODELS;
        memset(&out, 0xff, sizeof out);
        const sp_status status = any_call(t->models[m], dice >> 33, &out);
        if (status == SP_OK) CHECK(small_is_same(&out, &t->expected));
        else CHECK(status == SP_TIMEOUT || status == SP_BUSY);
        sp_atomic_u64 *count = status == SP_OK        ? &t->ok[m]
                               : status == SP_TIMEOUT ? &t->expired[m]
                                                      : &t->refused[m];
        sp_fetch_add_relaxed(count, (uint64_t)1);
    }
}

TEST(each_run_ends_once_whatever_its_terms_are)
{
    static turmoil t;
    t.models[0] = small_model(NULL);
    t.models[1] = small_model(&(sp_model_options){.weight = 9, .max_concurrent_runs = 1});
    t.models[2] = small_model(&(sp_model_options){.max_waiting = 3});
    t.expected = small_run(t.models[0]);
    test_threads(CALLERS, call_in_turmoil, &t);
    for (uint32_t m = 0; m < MODELS; m++) {
        const sp_model_statistics statistics = statistics_of(t.models[m]);
        CHECK_EQ_U64(statistics.runs,
                     sp_load_relaxed(&t.ok[m]) + sp_load_relaxed(&t.expired[m]) + (m == 0));
        CHECK_EQ_U64(statistics.expired, sp_load_relaxed(&t.expired[m]));
        CHECK_EQ_U64(statistics.refused, sp_load_relaxed(&t.refused[m]));
        CHECK_EQ_U64(statistics.failed + statistics.cancelled, 0);
        CHECK_EQ_U64(statistics.waiting, 0);
        CHECK_EQ_U64(statistics.in_flight, 0);
        CHECK_OK(sp_model_release(t.models[m]));
    }
}

/* ---- a thread with a check ---- */

typedef struct run_check {
    uint32_t calls, last;
    held_slots *held; /* are given at the last call; NULL: the wait is given up */
    sp_model model;   /* which the last call runs too */
} run_check;

static sp_status check_run(void *ctx)
{
    run_check *self = ctx;
    if (++self->calls < self->last) return SP_OK;
    if (self->held == NULL) return SP_CANCELLED;
    if (self->calls > self->last) return SP_OK;
    small_row out;
    slots_give(self->held);
    CHECK_OK(run_with(self->model, NULL, &out));
    return SP_OK;
}

static sp_status run_checked(sp_model model, run_check *check, small_row *out)
{
    CHECK_OK(sp_thread_set_wait_check(check_run, check));
    const sp_status status = run_with(model, NULL, out);
    CHECK_OK(sp_thread_set_wait_check(NULL, NULL));
    return status;
}

TEST(a_check_ends_the_wait_of_a_run_for_a_slot)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    held_slots held = slots_hold(model);
    run_check gives_up = {.last = 2}, gives = {.last = 3, .held = &held, .model = model};
    small_row out, wiped;
    memset(&wiped, 0xff, sizeof wiped);
    out = wiped;
    CHECK_STATUS(run_checked(model, &gives_up, &out), SP_CANCELLED);
    CHECK_EQ_U64(gives_up.calls, 2);
    CHECK(small_is_same(&out, &wiped));
    CHECK_EQ_U64(sp__run_slots_waiting(held.slots), 0);
    CHECK_OK(run_checked(model, &gives, &out));
    CHECK(gives.calls >= 3);
    CHECK(small_is_same(&out, &expected));
    CHECK_OK(sp_model_release(model));
}

static void wait_for_word(void *ctx, sp_status status)
{
    (void)status;
    while (sp_load_acquire((sp_atomic_u32 *)ctx) == 0) sp_thread_yield();
}

TEST(a_check_ends_the_wait_of_a_run_for_its_stream)
{
    const sp_model model = small_model(NULL);
    const small_row expected = small_run(model);
    sp_atomic_u32 is_open = {0};
    run_check check = {.last = 2};
    sp_model_info info;
    sp_stream stream;
    small_row out;
    CHECK_OK(sp_model_get_info(model, &info));
    CHECK_OK(sp_stream_current(info.device, &stream));
    CHECK_OK(sp_stream_host_function(stream, wait_for_word, &is_open));
    CHECK_STATUS(run_checked(model, &check, &out), SP_CANCELLED);
    CHECK_EQ_U64(check.calls, 2);
    sp_store_release(&is_open, 1);
    CHECK_OK(run_with(model, NULL, &out));
    CHECK(small_is_same(&out, &expected));
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
