/* SPDX-License-Identifier: Apache-2.0 */
/* On which terms submitted runs in several plans are run: cancelled, past their time-out, refused
 * instead of queued; and what the model counts of them. */
#include <string.h>

#include <streampool/cancel.h>

#include "base/clock.h"
#include "base/thread.h"
#include "exec/model_object.h"
#include "partial_cases.h"
#include "run_fixture.h"

enum { RUNS = 40 };

/* All slots of cpu, so that no run begins. */
typedef struct blockade {
    sp_model model;
    sp_run_slots *slots;
    partial_case c;
    sp_future futures[RUNS];
} blockade;

static void blockade_begin(blockade *b, const sp_model_options *options)
{
    *b = (blockade){.model = partial_model(CASE_LOOP, options)};
    sp_rt_model *model = sp__model_hold(b->model);
    b->slots = sp__device_run_slots(model->device);
    sp__model_drop(model);
    partial_case_make(&b->c, CASE_LOOP, 1);
    for (uint32_t i = 0; i < b->slots->count; i++) CHECK_OK(sp__run_slots_acquire(b->slots, NULL));
}

static void blockade_open(blockade *b)
{
    const uint32_t count = b->slots->count;
    for (uint32_t i = 0; i < count; i++) {
        sp__wait_entry_resume(sp__run_slots_release(b->slots, NULL));
    }
}

static sp_status submit(blockade *b, const sp_run_options *options, sp_future *out)
{
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    return sp_model_submit_with(b->model, options, &b->c.input, 1, outputs, 2, out);
}

/* ---- cancel ---- */

static void check_cancelled(sp_future future)
{
    CHECK_STATUS(sp_future_wait(future), SP_CANCELLED);
    sp_host_tensor output = {0};
    CHECK_STATUS(sp_future_take_output(future, 0, &output), SP_CANCELLED);
    CHECK_OK(sp_future_release(future));
}

TEST(runs_are_cancelled_while_they_are_queued_and_while_they_wait_for_a_slot)
{
    static blockade b;
    blockade_begin(&b, NULL);
    for (int i = 0; i < RUNS; i++) CHECK_OK(submit(&b, NULL, &b.futures[i]));
    for (int i = 0; i < RUNS; i += 2) {
        CHECK_OK(sp_future_cancel(b.futures[i]));
        CHECK_STATUS(sp_future_wait_for(b.futures[i], INT64_C(20000000000)), SP_CANCELLED);
    }
    CHECK_EQ_U64(statistics_of(b.model).cancelled, RUNS / 2);
    CHECK_EQ_U64(statistics_of(b.model).waiting, RUNS / 2);
    blockade_open(&b);
    for (int i = 0; i < RUNS; i += 2) check_cancelled(b.futures[i]);
    for (int i = 1; i < RUNS; i += 2) partial_case_check(b.model, &b.c, b.futures[i]);
    CHECK_EQ_U64(statistics_of(b.model).waiting, 0);
    CHECK_OK(sp_model_release(b.model));
}

TEST(a_token_cancels_the_runs_that_have_it)
{
    static blockade b;
    sp_cancel_token token;
    blockade_begin(&b, NULL);
    CHECK_OK(sp_cancel_token_create(&token));
    const sp_run_options options = {.cancel_token = token};
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(submit(&b, i % 2 == 0 ? &options : NULL, &b.futures[i]));
    }
    CHECK_OK(sp_cancel_token_cancel(token));
    for (int i = 0; i < RUNS; i += 2) check_cancelled(b.futures[i]);
    sp_future refused = {1};
    CHECK_STATUS(submit(&b, &options, &refused), SP_CANCELLED);
    CHECK_EQ_U64(refused.bits, 0);
    blockade_open(&b);
    for (int i = 1; i < RUNS; i += 2) partial_case_check(b.model, &b.c, b.futures[i]);
    CHECK_OK(sp_cancel_token_release(token));
    CHECK_OK(sp_model_release(b.model));
}

static void cancel_soon(void *arg)
{
    sp_clock_sleep(300000);
    CHECK_OK(sp_cancel_token_cancel(*(sp_cancel_token *)arg));
}

/* The token is cancelled at any moment of the submit and of the run. */
TEST(a_token_is_cancelled_beside_submits)
{
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case c;
    partial_case_make(&c, CASE_FOUND, 2);
    for (uint64_t round = 0; round < test_count(500, 20); round++) {
        sp_cancel_token token;
        sp_thread canceller;
        CHECK_OK(sp_cancel_token_create(&token));
        CHECK_OK(sp_thread_create(&canceller, "canceller", cancel_soon, &token));
        const sp_run_options options = {.cancel_token = token};
        sp_status status = SP_OK;
        while (status == SP_OK) {
            sp_host_tensor outputs[CASE_OUTPUTS] = {0};
            sp_future future;
            status = sp_model_submit_with(model, &options, &c.input, 1, outputs, 2, &future);
            if (status != SP_OK) break;
            status = sp_future_wait(future);
            CHECK_OK(sp_future_release(future));
        }
        CHECK_STATUS(status, SP_CANCELLED);
        sp_thread_join(&canceller);
        CHECK_OK(sp_cancel_token_release(token));
    }
    CHECK_OK(sp_model_release(model));
}

/* Also one without nodes in its body, which only the checks between iterations end. */
TEST(an_endless_run_is_cancelled)
{
    for (int has_node = 0; has_node < 2; has_node++) {
        static const int64_t any_dims[1] = {-1};
        const float x[2] = {1, 2};
        writer graph = {0};
        writer body = partial_body(1);
        sp_model model = {0};
        sp_future future;
        sp_host_tensor y = {0};
        add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
        partial_add_ints(&graph, "n", (const int64_t[]){(int64_t)1 << 62}, -1);
        partial_add_bool(&graph, "c", true);
        if (has_node != 0) add_node(&body, make_node("Neg", "v", "w"));
        add_output(&body, "on");
        add_output(&body, has_node != 0 ? "w" : "v");
        add_node(&graph, partial_loop("n c x", "y", &body));
        add_output(&graph, "y");
        REQUIRE_OK(partial_load(&graph, NULL, &model));
        const sp_host_tensor input = partial_floats("x", x, 2);
        CHECK_OK(sp_model_submit(model, &input, 1, &y, 1, &future));
        CHECK_STATUS(sp_future_wait_for(future, 5000000), SP_TIMEOUT);
        CHECK_OK(sp_future_cancel(future));
        check_cancelled(future);
        CHECK_OK(sp_model_release(model));
    }
}

/* ---- other terms ---- */

TEST(a_run_past_its_time_out_is_not_run)
{
    static blockade b;
    blockade_begin(&b, NULL);
    const sp_run_options options = {.timeout_ns = 1000000};
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(submit(&b, i % 2 == 0 ? &options : NULL, &b.futures[i]));
    }
    sp_clock_sleep(2000000);
    blockade_open(&b);
    for (int i = 0; i < RUNS; i += 2) {
        CHECK_STATUS(sp_future_wait(b.futures[i]), SP_TIMEOUT);
        CHECK_MESSAGE("it was not run");
        CHECK_OK(sp_future_release(b.futures[i]));
        partial_case_check(b.model, &b.c, b.futures[i + 1]);
    }
    CHECK_EQ_U64(statistics_of(b.model).expired, RUNS / 2);
    CHECK_STATUS(submit(&b, &(sp_run_options){.timeout_ns = -1}, &b.futures[0]), SP_INVALID);
    CHECK_OK(submit(&b, &(sp_run_options){.timeout_ns = INT64_MAX}, &b.futures[0]));
    partial_case_check(b.model, &b.c, b.futures[0]);
    CHECK_OK(sp_model_release(b.model));
}

TEST(a_run_that_is_not_to_wait_is_refused)
{
    static blockade b;
    blockade_begin(&b, NULL);
    const sp_run_options options = {.no_wait = true};
    sp_future future = {1};
    CHECK_STATUS(submit(&b, &options, &future), SP_BUSY);
    CHECK_MESSAGE("no run slot is free");
    CHECK_EQ_U64(future.bits, 0);
    CHECK_EQ_U64(statistics_of(b.model).refused, 1);
    CHECK_EQ_U64(statistics_of(b.model).runs, 0);
    blockade_open(&b);
    CHECK_OK(submit(&b, &options, &future));
    partial_case_check(b.model, &b.c, future);
    CHECK_EQ_U64(sp_load_relaxed(&b.slots->submitted_count), 0);
    CHECK_OK(sp_model_release(b.model));
}

/* Slots are free, and the limit of the model is reached. */
TEST(a_run_that_waits_for_the_limit_of_its_model_is_refused_too)
{
    static partial_case c;
    sp_future futures[2];
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    const sp_model_options limits = {.max_concurrent_runs = 1, .max_waiting = 1};
    const sp_run_options options = {.no_wait = true};
    const sp_model model = partial_model(CASE_LOOP, &limits);
    partial_case_make(&c, CASE_LOOP, 1);
    sp_rt_model *object = sp__model_hold(model);
    sp_run_slots *slots = sp__device_run_slots(object->device);
    sp_run_terms terms;
    CHECK_OK(sp__model_terms(object, NULL, &terms));
    CHECK_OK(sp__run_slots_acquire(slots, &terms));
    CHECK_STATUS(sp_model_submit_with(model, &options, &c.input, 1, outputs, 2, &futures[0]),
                 SP_BUSY);
    CHECK_OK(partial_case_submit(model, &c, outputs, &futures[0]));
    while (statistics_of(model).waiting < 1) sp_thread_yield();
    CHECK_STATUS(partial_case_submit(model, &c, outputs, &futures[1]), SP_BUSY);
    sp__wait_entry_resume(sp__run_slots_release(slots, &terms));
    partial_case_check(model, &c, futures[0]);
    sp__model_drop(object);
    CHECK_OK(sp_model_release(model));
}

TEST(no_more_runs_wait_than_the_model_allows)
{
    static blockade b;
    blockade_begin(&b, &(sp_model_options){.max_waiting = RUNS});
    sp_future future = {1};
    for (int i = 0; i < RUNS; i++) {
        CHECK_OK(submit(&b, NULL, &b.futures[i]));
        /* It waits for a thread or, on one, for a slot: not for neither, between the two. */
        while (statistics_of(b.model).waiting < (uint32_t)i + 1) sp_thread_yield();
    }
    CHECK_STATUS(submit(&b, NULL, &future), SP_BUSY);
    CHECK_MESSAGE("40 runs of the model wait for a run slot, as many as max_waiting");
    CHECK_EQ_U64(future.bits, 0);
    CHECK_OK(sp_future_cancel(b.futures[RUNS - 1]));
    check_cancelled(b.futures[RUNS - 1]);
    CHECK_OK(submit(&b, NULL, &b.futures[RUNS - 1]));
    blockade_open(&b);
    for (int i = 0; i < RUNS; i++) partial_case_check(b.model, &b.c, b.futures[i]);
    CHECK_OK(sp_model_release(b.model));
}

TEST(a_limit_of_the_model_holds_for_submitted_runs_too)
{
    const sp_model model = partial_model(CASE_LOOP, &(sp_model_options){.max_concurrent_runs = 1});
    static partial_case c;
    sp_future futures[RUNS];
    partial_case_make(&c, CASE_LOOP, 3);
    for (int i = 0; i < RUNS; i++) {
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        const sp_run_options options = {.priority =
                                            i % 2 == 0 ? SP_PRIORITY_HIGH : SP_PRIORITY_NORMAL};
        CHECK_OK(sp_model_submit_with(model, &options, &c.input, 1, outputs, 2, &futures[i]));
    }
    for (int i = 0; i < RUNS; i++) partial_case_check(model, &c, futures[i]);
    const sp_model_statistics s = statistics_of(model);
    CHECK_EQ_U64(s.most_in_flight, 1);
    CHECK_EQ_U64(s.runs, 2 * RUNS); /* with those that check them */
    CHECK_EQ_U64(s.waiting + s.failed + s.cancelled + s.expired + s.refused, 0);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
