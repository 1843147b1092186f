/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: requests that are cancelled, have a time-out or a priority, and requests of models
 * whose shapes follow from values. Needs STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "partial_fixture.h"

#define LONG_NS INT64_C(3600000000000) /* longer than any test */
#define SHORT_NS INT64_C(1000000)

enum { COUNT = 12 };

static sp_cancel_token token_create(void)
{
    sp_cancel_token token = {0};
    CHECK_OK(sp_cancel_token_create(&token));
    return token;
}

static void check_ended(queued_row *row, sp_status status)
{
    CHECK_STATUS(sp_future_wait(row->future), status);
    CHECK_OK(sp_future_release(row->future));
}

/* ---- cancel ---- */

/* Behind a busy device, and behind a gate: the first leads, the others are queued. */
static void check_cancel(const sp_batch_queue_options *options, bool is_busy)
{
    queued_row rows[COUNT];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, options);
    queued_rows_init(model, rows, 0, COUNT);
    for (uint32_t which = 0; which < COUNT; which++) {
        held_slots held = {0};
        if (is_busy) held = slots_hold(model);
        queued_rows_submit(queue, rows, COUNT);
        CHECK_OK(sp_future_cancel(rows[which].future));
        CHECK_STATUS(sp_future_query(rows[which].future), SP_CANCELLED);
        CHECK_EQ_U64(queue_statistics(queue).waiting, COUNT - 1);
        if (is_busy) slots_give(&held);
        CHECK_OK(sp_batch_queue_flush(queue));
        for (uint32_t i = 0; i < COUNT; i++) {
            if (i == which) check_ended(&rows[i], SP_CANCELLED);
            else queued_row_finish(&rows[i]);
        }
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(s.cancelled, COUNT);
    CHECK_EQ_U64(s.submitted, COUNT * COUNT);
    queue_check_done(queue, COUNT * (COUNT - 1));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(a_cancelled_request_leaves_the_queue_at_once)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_batch_queue_options one = {.workers = 1};
    const sp_batch_queue_options gated = {.max_delay_ns = LONG_NS};
    check_cancel(NULL, true);
    check_cancel(&one, true);
    check_cancel(&gated, false);
}

TEST(a_token_cancels_all_its_requests)
{
    queued_row rows[COUNT];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, COUNT);
    const sp_run_options options = {.cancel_token = token_create()};
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_OK(queued_row_submit_with(queue, i % 2 == 0 ? &options : NULL, &rows[i]));
    }
    CHECK_OK(sp_cancel_token_cancel(options.cancel_token));
    for (uint32_t i = 0; i < COUNT; i += 2) check_ended(&rows[i], SP_CANCELLED);
    slots_give(&held);
    for (uint32_t i = 1; i < COUNT; i += 2) queued_row_finish(&rows[i]);
    CHECK_STATUS(queued_row_submit_with(queue, &options, &rows[0]), SP_CANCELLED);
    CHECK_EQ_U64(rows[0].future.bits, 0);
    queue_check_done(queue, COUNT / 2);
    CHECK_EQ_U64(queue_statistics(queue).cancelled, COUNT / 2);
    CHECK_OK(sp_cancel_token_release(options.cancel_token));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

enum { THREADS = 8, BURST = 16 };

typedef struct cancelling_load {
    sp_model model;
    sp_batch_queue queue;
    uint64_t rounds;
    sp_atomic_u64 cancelled, done;
} cancelling_load;

static void submit_and_cancel(void *arg, uint32_t index)
{
    cancelling_load *load = arg;
    queued_row rows[BURST];
    queued_rows_init(load->model, rows, index * BURST, BURST);
    for (uint64_t i = 0; i < load->rounds; i++) {
        const sp_run_options options = {.cancel_token = token_create()};
        for (uint32_t k = 0; k < BURST; k++) {
            CHECK_OK(queued_row_submit_with(load->queue, k % 3 == 0 ? &options : NULL, &rows[k]));
        }
        for (uint32_t k = 1; k < BURST; k += 4) CHECK_OK(sp_future_cancel(rows[k].future));
        CHECK_OK(sp_cancel_token_cancel(options.cancel_token));
        for (uint32_t k = 0; k < BURST; k++) {
            const sp_status status = sp_future_wait(rows[k].future);
            const bool may_be_cancelled = k % 3 == 0 || k % 4 == 1;
            CHECK(status == SP_OK || (may_be_cancelled && status == SP_CANCELLED));
            if (status == SP_OK) CHECK_EQ_MEM(rows[k].y, rows[k].expected, sizeof rows[k].y);
            sp_fetch_add_relaxed(status == SP_OK ? &load->done : &load->cancelled, (uint64_t)1);
            CHECK_OK(sp_future_release(rows[k].future));
        }
        CHECK_OK(sp_cancel_token_release(options.cancel_token));
    }
}

TEST(requests_are_cancelled_beside_batches)
{
    cancelling_load load = {.model = queue_model(), .rounds = test_count(2000, 60)};
    const sp_batch_queue_options options = {.max_delay_ns = 50000};
    for (int k = 0; k < 2; k++) {
        load.queue = queue_open(load.model, k == 0 ? NULL : &options);
        sp_store_relaxed(&load.done, 0);
        sp_store_relaxed(&load.cancelled, 0);
        test_threads(THREADS, submit_and_cancel, &load);
        queue_check_done(load.queue, sp_load_relaxed(&load.done));
        CHECK_EQ_U64(queue_statistics(load.queue).cancelled, sp_load_relaxed(&load.cancelled));
        CHECK_OK(sp_batch_queue_release(load.queue));
    }
    CHECK_OK(sp_model_release(load.model));
}

/* ---- time-outs ---- */

TEST(a_request_past_its_time_out_is_not_run)
{
    queued_row rows[COUNT];
    const sp_run_options options = {.timeout_ns = SHORT_NS};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, COUNT);
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_OK(queued_row_submit_with(queue, i % 3 == 0 ? &options : NULL, &rows[i]));
    }
    sp_clock_sleep(2 * SHORT_NS);
    slots_give(&held);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 3 == 0) check_ended(&rows[i], SP_TIMEOUT);
        else queued_row_finish(&rows[i]);
    }
    CHECK_EQ_U64(queue_statistics(queue).expired, COUNT / 3);
    queue_check_done(queue, COUNT - COUNT / 3);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* The device is busy and the queue is full. */
TEST(a_submit_waits_for_a_place_until_its_time_out_or_cancel)
{
    queued_row rows[3];
    sp_run_options options = {.timeout_ns = SHORT_NS};
    const sp_batch_queue_options one = {.max_waiting = 1};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &one);
    queued_rows_init(model, rows, 0, 3);
    held_slots held = slots_hold(model);
    CHECK_OK(queued_row_submit(queue, &rows[0]));
    CHECK_STATUS(queued_row_submit_with(queue, &options, &rows[1]), SP_TIMEOUT);
    CHECK_MESSAGE("did not begin before its time-out");
    CHECK_EQ_U64(rows[1].future.bits, 0);
    options = (sp_run_options){.no_wait = true};
    CHECK_STATUS(queued_row_submit_with(queue, &options, &rows[1]), SP_BUSY);
    CHECK_MESSAGE("1 requests wait in the batch queue");
    slots_give(&held);
    queued_row_finish(&rows[0]);
    CHECK_OK(queued_row_submit_with(queue, &options, &rows[1])); /* there is room */
    queued_row_finish(&rows[1]);
    queue_check_done(queue, 2);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

typedef struct waiting_submit {
    sp_batch_queue queue;
    sp_cancel_token token;
    queued_row row;
    sp_atomic_u32 begins;
    sp_thread thread;
} waiting_submit;

static void submit_with_token(void *arg)
{
    waiting_submit *w = arg;
    const sp_run_options options = {.cancel_token = w->token};
    sp_store_release(&w->begins, 1);
    CHECK_STATUS(queued_row_submit_with(w->queue, &options, &w->row), SP_CANCELLED);
}

TEST(a_token_ends_the_wait_for_a_place)
{
    queued_row row;
    const sp_batch_queue_options one = {.max_waiting = 1};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &one);
    queued_rows_init(model, &row, 0, 1);
    for (uint64_t round = 0; round < test_count(300, 30); round++) {
        waiting_submit w = {.queue = queue, .token = token_create()};
        held_slots held = slots_hold(model);
        CHECK_OK(queued_row_submit(queue, &row));
        CHECK_OK(sp_thread_create(&w.thread, "submitter", submit_with_token, &w));
        await_count(&w.begins, 1);
        if (round % 2 == 0) sp_clock_sleep(SHORT_NS / 4);
        CHECK_OK(sp_cancel_token_cancel(w.token));
        sp_thread_join(&w.thread);
        slots_give(&held);
        queued_row_finish(&row);
        CHECK_OK(sp_cancel_token_release(w.token));
    }
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(wrong_options_are_refused)
{
    queued_row row;
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    sp_run_options options = {.priority = (sp_priority)2};
    CHECK_STATUS(queued_row_submit_with(queue, &options, &row), SP_INVALID);
    options = (sp_run_options){.timeout_ns = -1};
    CHECK_STATUS(queued_row_submit_with(queue, &options, &row), SP_INVALID);
    options = (sp_run_options){.cancel_token = {1}};
    CHECK_STATUS(queued_row_submit_with(queue, &options, &row), SP_INVALID);
    CHECK_EQ_U64(queue_statistics(queue).submitted, 0);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- priority ---- */

typedef struct order {
    sp_atomic_u32 next;
    uint32_t at[COUNT]; /* when each request was done */
} order;

typedef struct ordered_row {
    order *order;
    uint32_t index;
    sp_atomic_u32 is_done;
} ordered_row;

static void note_order(void *ctx, sp_status status)
{
    ordered_row *row = ctx;
    CHECK_OK(status);
    row->order->at[row->index] = sp_fetch_add_relaxed(&row->order->next, 1);
    sp_store_release(&row->is_done, 1);
}

/* One worker, and one request at a time. */
TEST(requests_of_high_priority_lead_before_others)
{
    queued_row rows[COUNT];
    ordered_row ordered[COUNT];
    const sp_batch_queue_options options = {.workers = 1, .max_batch = 1};
    const sp_run_options high = {.priority = SP_PRIORITY_HIGH};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, COUNT);
    order all = {0};
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < COUNT; i++) {
        ordered[i] = (ordered_row){.order = &all, .index = i};
        CHECK_OK(queued_row_submit_with(queue, i >= COUNT - 3 ? &high : NULL, &rows[i]));
        CHECK_OK(sp_future_on_complete(rows[i].future, note_order, &ordered[i]));
    }
    slots_give(&held);
    for (uint32_t i = 0; i < COUNT; i++) {
        await_count(&ordered[i].is_done, 1);
        queued_row_finish(&rows[i]);
    }
    CHECK_EQ_U64(all.at[0], 0); /* it leads already */
    for (uint32_t i = COUNT - 3; i < COUNT; i++) CHECK(all.at[i] >= 1 && all.at[i] <= 3);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(requests_of_high_priority_wait_for_no_others)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[3];
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    const sp_run_options high = {.priority = SP_PRIORITY_HIGH};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 3);
    queued_rows_submit(queue, rows, 2);
    CHECK_OK(queued_row_submit_with(queue, &high, &rows[2]));
    queued_row_finish(&rows[2]);
    CHECK_EQ_U64(queue_statistics(queue).waiting, 2);
    CHECK_OK(sp_batch_queue_flush(queue));
    queued_rows_finish(rows, 2);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* More high ones than are preferred in a row: the normal one gets its turn among them. */
TEST(high_priority_leaves_something_to_the_others)
{
    enum { MANY = 40 };
    queued_row rows[MANY];
    ordered_row ordered;
    const sp_batch_queue_options options = {.workers = 1, .max_batch = 1};
    const sp_run_options high = {.priority = SP_PRIORITY_HIGH};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, MANY);
    order all = {0};
    ordered = (ordered_row){.order = &all};
    held_slots held = slots_hold(model);
    CHECK_OK(queued_row_submit_with(queue, &high, &rows[0]));
    CHECK_OK(queued_row_submit(queue, &rows[1]));
    CHECK_OK(sp_future_on_complete(rows[1].future, note_order, &ordered));
    for (uint32_t i = 2; i < MANY; i++) {
        CHECK_OK(queued_row_submit_with(queue, &high, &rows[i]));
    }
    slots_give(&held);
    CHECK_OK(sp_future_wait(rows[1].future));
    await_count(&ordered.is_done, 1);
    queued_rows_finish(rows, MANY);
    queue_check_done(queue, MANY);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- outputs ---- */

TEST(outputs_may_be_taken_from_the_future)
{
    queued_row row;
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, &row, 5, 1);
    sp_host_tensor x = input_x(1);
    sp_host_tensor y = {0};
    sp_host_tensor taken = {0};
    x.data = row.x;
    CHECK_OK(sp_batch_queue_submit(queue, NULL, &x, 1, &y, 1, &row.future));
    CHECK_OK(sp_future_wait(row.future));
    CHECK_OK(sp_future_take_output(row.future, 0, &taken));
    CHECK(taken.data == y.data);
    CHECK_EQ_U64(taken.bytes, sizeof row.expected);
    CHECK_EQ_MEM(taken.data, row.expected, sizeof row.expected);
    sp_host_tensor_free(&y);
    CHECK_OK(sp_future_release(row.future));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- models in several plans ---- */

/* The values of x that are not 0: as many as there are. */
static sp_model found_model(void)
{
    writer graph = {0};
    sp_model model = {0};
    partial_add_found(&graph, "y");
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, NULL, &model));
    return model;
}

/* Too many for a plan's key. */
enum { VALUES = 200 };
static float found_values[VALUES];

static sp_host_tensor found_input(void)
{
    for (int i = 0; i < VALUES; i++) found_values[i] = (float)(i % 3);
    return partial_floats("x", found_values, VALUES);
}

TEST(a_model_in_several_plans_can_be_submitted)
{
    const sp_model model = found_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    const sp_host_tensor x = found_input();
    sp_host_tensor expected = {0};
    CHECK_OK(sp_model_run(model, &x, 1, &expected, 1));
    for (uint64_t i = 0; i < test_count(200, 20); i++) {
        sp_future future;
        sp_host_tensor y = {0};
        sp_host_tensor taken = {0};
        CHECK_OK(sp_batch_queue_submit(queue, NULL, &x, 1, &y, 1, &future));
        CHECK_OK(sp_future_wait(future));
        CHECK_OK(sp_future_take_output(future, 0, &taken));
        REQUIRE_EQ_U64(taken.bytes, expected.bytes);
        CHECK_EQ_MEM(taken.data, expected.data, expected.bytes);
        sp_host_tensor_free(&taken);
        CHECK_OK(sp_future_release(future));
    }
    CHECK_EQ_U64(queue_statistics(queue).submitted, 0);
    sp_host_tensor_free(&expected);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(a_model_in_several_plans_is_inferred)
{
    enum { MANY = 50 };
    static sp_inference requests[MANY];
    static sp_host_tensor y[MANY];
    const sp_model model = found_model();
    const sp_host_tensor x = found_input();
    sp_host_tensor expected = {0};
    CHECK_OK(sp_model_run(model, &x, 1, &expected, 1));
    for (int i = 0; i < MANY; i++) {
        y[i] = (sp_host_tensor){0};
        requests[i] = (sp_inference){&x, &y[i], 1, 1, SP_INTERNAL};
    }
    CHECK_OK(sp_batch_inference(model, requests, MANY));
    for (int i = 0; i < MANY; i++) {
        CHECK_OK(requests[i].status);
        REQUIRE_EQ_U64(y[i].bytes, expected.bytes);
        CHECK_EQ_MEM(y[i].data, expected.data, expected.bytes);
        sp_host_tensor_free(&y[i]);
    }
    sp_host_tensor_free(&expected);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
