/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are cancelled when they have begun: on a queue, between two commands, in parts, in a
 * batch, in a callback. They are done when nothing uses their buffers. */
#include <stdio.h>
#include <string.h>

#include <streampool/null_device.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/thread.h"
#include "cancel_fixture.h"
#include "combining_fixture.h"
#include "command_gate.h"
#include "partial_fixture.h"

/* ---- on a queue ---- */

/* The list is on the stream, behind a gate, and uses the buffers until it has been skipped. */
TEST(a_run_on_its_stream_is_skipped_and_the_stream_is_as_good_as_before)
{
    waiting_run w = {.model = small_model(NULL), .token = token_create()};
    const small_row wiped = wiped_row();
    const small_row expected = small_run(w.model);
    sp_storage key;
    void *bytes;
    const uint8_t zero = 0;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &w.stream));
    CHECK_OK(sp_storage_create((sp_device){0}, 1, NULL, &key));
    CHECK_OK(sp_storage_host_begin(key, SP_WRITE, &bytes));
    const sp_storage_range all = {.storage = key, .bytes = 1};
    CHECK_OK(sp_storage_fill_async(w.stream, all, &zero, 1));
    sp_stream_info info = {0};
    CHECK_OK(sp_stream_get_info(w.stream, &info));
    const uint64_t submitted = info.submissions;
    sp_thread thread;
    CHECK_OK(sp_thread_create(&thread, "waiting", waiting_run_thread, &w));
    while (info.submissions == submitted) CHECK_OK(sp_stream_get_info(w.stream, &info));
    CHECK_OK(sp_cancel_token_cancel(w.token));
    CHECK_OK(sp_storage_host_end(key, SP_WRITE));
    sp_thread_join(&thread);
    CHECK_STATUS(w.status, SP_CANCELLED);
    CHECK(small_is_same(&w.row, &wiped));
    CHECK_OK(sp_stream_set_current(w.stream));
    const small_row again = small_run(w.model);
    CHECK(small_is_same(&again, &expected));
    CHECK_OK(sp_stream_synchronize(w.stream));
    CHECK_OK(sp_stream_set_current((sp_stream){0}));
    CHECK_OK(sp_stream_release(w.stream));
    CHECK_OK(sp_storage_release(key));
    CHECK_OK(sp_cancel_token_release(w.token));
    CHECK_OK(sp_model_release(w.model));
}

/* ---- in execution ---- */

enum { CHAIN = 16 };

/* y = Neg(Abs(Neg(Abs(... x)))): a kernel each. */
static sp_model chain_model(const sp_model_options *options)
{
    static const int64_t dims[2] = {1, SMALL_IN};
    writer graph = {0};
    sp_model model = {0};
    char from[8] = "x";
    char to[8];
    add_input(&graph, "x", ONNX_FLOAT, dims, 2);
    for (int i = 0; i < CHAIN; i++) {
        snprintf(to, sizeof to, i == CHAIN - 1 ? "y" : "v%d", i);
        add_node(&graph, make_node(i % 2 == 0 ? "Abs" : "Neg", from, to));
        memcpy(from, to, sizeof from);
    }
    add_output(&graph, "y");
    CHECK_OK(partial_load(&graph, options, &model));
    return model;
}

TEST(a_run_that_computes_stops_before_its_next_command)
{
    null_fixture f = null_open();
    const sp_model model = chain_model(&f.options);
    const sp_host_tensor x = input_x(1);
    float out[SMALL_IN];
    sp_host_tensor y = output_y(out, SMALL_IN);
    sp_future future;
    CHECK_OK(sp_model_submit(model, &x, 1, &y, 1, &future));
    CHECK_OK(sp_future_wait(future));
    CHECK_OK(sp_future_release(future));
    CHECK(model_info_of(model).step_count >= 8);
    command_gate_close(f.device);
    CHECK_OK(sp_model_submit(model, &x, 1, &y, 1, &future));
    command_gate_await(1);
    CHECK_OK(sp_future_cancel(future));
    CHECK_STATUS(sp_future_query(future), SP_NOT_READY); /* a command uses the buffers */
    command_gate_open();
    CHECK_STATUS(sp_future_wait(future), SP_CANCELLED);
    CHECK_EQ_STR(sp_last_error(), CANCELLED_TEXT);
    CHECK_EQ_U64(command_gate_count(), 1);
    CHECK_OK(sp_future_release(future));
    CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

/* ---- in a callback ---- */

typedef struct callback_run {
    sp_model model;
    sp_future queued;
    sp_cancel_token token;
    small_row row;
    sp_atomic_u32 calls;
} callback_run;

/* Runs inside are inline, and a queued run is cancelled here as anywhere. */
static void cancel_inside(void *ctx, sp_status status)
{
    callback_run *c = ctx;
    small_row row = wiped_row();
    CHECK_OK(status);
    CHECK_OK(small_run_with(c->model, c->token, &row));
    CHECK_OK(sp_future_cancel(c->queued));
    check_cancelled(c->queued, &c->row);
    CHECK_OK(sp_cancel_token_cancel(c->token));
    CHECK_STATUS(small_run_with(c->model, c->token, &row), SP_CANCELLED);
    sp_fetch_add_release(&c->calls, 1);
}

TEST(a_callback_cancels_runs_that_are_queued)
{
    callback_run c = {.model = small_model(NULL), .token = token_create(), .row = wiped_row()};
    sp_future first;
    small_row row;
    CHECK_OK(small_submit(c.model, &row, &first));
    CHECK_OK(sp_future_wait(first));
    held_slots held = slots_hold(c.model);
    CHECK_OK(small_submit(c.model, &c.row, &c.queued));
    CHECK_OK(sp_future_on_complete(first, cancel_inside, &c));
    await_count(&c.calls, 1);
    slots_give(&held);
    CHECK_OK(sp_future_release(first));
    CHECK_OK(sp_future_release(c.queued));
    CHECK_OK(sp_cancel_token_release(c.token));
    CHECK_OK(sp_model_release(c.model));
}

/* ---- in parts ---- */

TEST(a_run_in_parts_ends_between_two_of_them)
{
    for (int has_node = 0; has_node < 2; has_node++) {
        const sp_run_options options = {.cancel_token = token_create()};
        partial_endless e;
        partial_endless_begin_with(&e, NULL, has_node != 0, &options);
        CHECK_OK(sp_cancel_token_cancel(options.cancel_token));
        CHECK_STATUS(partial_endless_join(&e), SP_CANCELLED);
        CHECK_OK(sp_cancel_token_release(options.cancel_token));
    }
}

/* ---- in a batch ---- */

TEST(a_run_in_a_batch_runs_to_its_end)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const small_row expected = small_run(model);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(model, &x, 1) > 0);
    small_row rows[4];
    sp_future futures[4];
    const merged_runs before = merged_of(model);
    held_slots held = slots_hold(model);
    for (int i = 0; i < 4; i++) {
        rows[i] = wiped_row();
        CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    }
    command_gate_close(f.device);
    slots_give_one(&held); /* the first run leads, and others are in its batch */
    const uint64_t taken = merged_since(model, before).runs;
    CHECK(taken >= 2);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_future_cancel(futures[i]));
    for (uint64_t i = taken; i < 4; i++) check_cancelled(futures[i], &rows[i]);
    command_gate_open();
    for (uint64_t i = 0; i < taken; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK(small_is_same(&rows[i], &expected));
    }
    slots_give(&held);
    for (int i = 0; i < 4; i++) CHECK_OK(sp_future_release(futures[i]));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

/* The batch fails, and its rows would run alone. */
TEST(a_run_that_a_failed_batch_gives_back_ends_without_running)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const sp_host_tensor x = input_x(1);
    small_run(model);
    CHECK(combining_prepare(model, &x, 1) > 0);
    small_row rows[2] = {wiped_row(), wiped_row()};
    sp_future futures[2];
    held_slots held = slots_hold(model);
    for (int i = 0; i < 2; i++) CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    command_gate_close(f.device);
    CHECK_OK(sp_null_fail_command(f.device, 0));
    const uint64_t batches = model_info_of(model).batches;
    slots_give_one(&held);
    CHECK_EQ_U64(model_info_of(model).batches, batches + 1);
    for (int i = 0; i < 2; i++) CHECK_OK(sp_future_cancel(futures[i]));
    command_gate_open();
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(sp_future_wait(futures[i]), SP_CANCELLED);
        check_cancelled(futures[i], &rows[i]);
        CHECK_OK(sp_future_release(futures[i]));
    }
    slots_give(&held);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

TEST_MAIN
