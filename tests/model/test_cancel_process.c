/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels and the life cycle of the process: shutdown, closing of devices, fork. Each test runs in
 * a child that is forked before first use, so each has its own library. */
#include <streampool/runtime.h>

#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "combining_fixture.h"
#include "support/child.h"

static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

/* ---- fork ---- */

typedef struct both {
    sp_future future;
    sp_cancel_token token;
} both;

static int use_forked(void *arg)
{
    const both *b = arg;
    bool is_cancelled;
    sp_cancel_token other;
    if (sp_future_cancel(b->future) != SP_FORKED) return failed("cancel of the future");
    if (sp_cancel_token_cancel(b->token) != SP_FORKED) return failed("cancel of the token");
    if (sp_cancel_token_retain(b->token) != SP_FORKED) return failed("retain");
    if (sp_cancel_token_create(&other) != SP_FORKED) return failed("create");
    if (sp_cancel_token_is_cancelled(b->token, &is_cancelled) != SP_FORKED) return failed("query");
    if (sp_cancel_token_release(b->token) != SP_OK) return failed("release of the token");
    return sp_future_release(b->future) == SP_OK ? 0 : failed("release");
}

static int cancel_forked(void *arg)
{
    (void)arg;
    both b;
    small_row row;
    bool is_cancelled = true;
    const sp_model model = small_model(NULL);
    if (sp_cancel_token_create(&b.token) != SP_OK) return failed("create");
    held_slots held = slots_hold(model);
    if (small_submit_with(model, b.token, &row, &b.future) != SP_OK) return failed("submit");
    if (child_run(use_forked, &b) != 0) return failed("the forked child");
    if (sp_cancel_token_is_cancelled(b.token, &is_cancelled) != SP_OK || is_cancelled) {
        return failed("the child's cancel was seen");
    }
    if (sp_future_cancel(b.future) != SP_OK) return failed("cancel");
    if (sp_future_query(b.future) != SP_CANCELLED) return failed("outcome");
    slots_give(&held);
    if (sp_cancel_token_release(b.token) != SP_OK) return failed("release of the token");
    if (sp_future_release(b.future) != SP_OK) return failed("release");
    return sp_model_release(model) == SP_OK ? 0 : failed("release of the model");
}

TEST(a_forked_child_is_refused_and_cancels_nothing)
{
    CHECK_EQ_INT(child_run(cancel_forked, NULL), 0);
}

/* ---- shutdown ---- */

/* The runs are queued over the shutdown, since the test has the slots. */
static int cancel_after_shutdown(void *arg)
{
    (void)arg;
    enum { COUNT = 4 };
    small_row rows[COUNT];
    sp_future futures[COUNT];
    sp_cancel_token token, late;
    bool is_cancelled = false;
    const sp_model model = small_model(NULL);
    if (sp_cancel_token_create(&token) != SP_OK) return failed("create");
    held_slots held = slots_hold(model);
    for (int i = 0; i < COUNT; i++) {
        const sp_cancel_token own = i == 0 ? (sp_cancel_token){0} : token;
        if (small_submit_with(model, own, &rows[i], &futures[i]) != SP_OK) return failed("submit");
    }
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (sp_cancel_token_create(&late) != SP_CLOSED) return failed("create after the shutdown");
    if (sp_cancel_token_retain(token) != SP_CLOSED) return failed("retain after the shutdown");
    for (int i = 0; i < COUNT; i++) {
        if (sp_future_query(futures[i]) != SP_NOT_READY) return failed("queued");
    }
    if (sp_future_cancel(futures[0]) != SP_OK) return failed("cancel of the future");
    if (sp_cancel_token_cancel(token) != SP_OK) return failed("cancel of the token");
    if (sp_cancel_token_is_cancelled(token, &is_cancelled) != SP_OK || !is_cancelled) {
        return failed("the token is not cancelled");
    }
    for (int i = 0; i < COUNT; i++) {
        if (sp_future_query(futures[i]) != SP_CANCELLED) return failed("outcome");
        if (sp_future_cancel(futures[i]) != SP_OK) return failed("cancel of what is done");
        if (sp_future_release(futures[i]) != SP_OK) return failed("release");
    }
    slots_give(&held);
    if (sp_cancel_token_release(token) != SP_OK) return failed("release of the token");
    return sp_model_release(model) == SP_OK ? 0 : failed("release of the model");
}

TEST(runs_that_a_shutdown_has_left_in_their_queue_can_be_cancelled)
{
    CHECK_EQ_INT(child_run(cancel_after_shutdown, NULL), 0);
}

/* ---- beside the end ---- */

typedef struct ending {
    sp_model model;
    sp_device device; /* to be closed; none: the library is shut down */
    small_row expected;
    sp_atomic_u32 started, wrong;
} ending;

static bool outcome_is_right(const ending *e, sp_status status, const small_row *row)
{
    if (status == SP_OK) return small_is_same(row, &e->expected);
    return status == SP_CLOSED || status == SP_CANCELLED;
}

static void cancel_until_closed(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index == 0) {
        await_count(&e->started, 5);
        const bool is_closed = e->device.bits != 0;
        if ((is_closed ? sp_device_close(e->device) : sp_shutdown()) != SP_OK) failed("end");
        return;
    }
    sp_status status = SP_OK;
    for (uint32_t i = 0; status != SP_CLOSED; i++) {
        small_row rows[2];
        sp_future futures[2] = {0};
        sp_cancel_token token = {0};
        status = sp_cancel_token_create(&token);
        if (status == SP_OK) status = small_submit_with(e->model, token, &rows[0], &futures[0]);
        if (status == SP_OK) status = small_submit(e->model, &rows[1], &futures[1]);
        if (token.bits != 0 && i % 2 == index % 2) (void)sp_cancel_token_cancel(token);
        if (futures[1].bits != 0) (void)sp_future_cancel(futures[1]);
        for (int k = 0; k < 2; k++) {
            if (futures[k].bits == 0) continue;
            const sp_status outcome = sp_future_wait(futures[k]);
            if (!outcome_is_right(e, outcome, &rows[k])) sp_fetch_add_relaxed(&e->wrong, 1);
            if (sp_future_release(futures[k]) != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
        }
        if (sp_cancel_token_release(token) != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
        if (i == 10) sp_fetch_add_acq_rel(&e->started, 1);
    }
}

static int end_beside_cancels(void *arg)
{
    static ending e; /* process-wide: in one child each */
    sp_model_options options = {0};
    if (*(const bool *)arg && sp_device_open("null", &options.device) != SP_OK) {
        return failed("open");
    }
    e = (ending){.device = options.device, .model = small_model(&options)};
    e.expected = small_run(e.model);
    test_threads(6, cancel_until_closed, &e);
    if (sp_model_release(e.model) != SP_OK) return failed("release");
    if (options.device.bits != 0 && sp_shutdown() != SP_OK) return failed("shutdown");
    return sp_load_relaxed(&e.wrong) == 0 ? 0 : failed("an outcome");
}

TEST(a_shutdown_or_close_beside_cancels_lets_each_run_end_once)
{
    for (uint64_t i = 0; i < test_count(200, 10); i++) {
        bool is_closed = i % 2 == 0;
        CHECK_EQ_INT(child_run(end_beside_cancels, &is_closed), 0);
    }
}

TEST_MAIN
