/* SPDX-License-Identifier: Apache-2.0 */
/* Futures and the life cycle of the process: shutdown, closing of devices, fork. Each test runs in
 * a child that is forked before first use, so each has its own library. */
#include <streampool/runtime.h>

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "exec/model_object.h"
#include "run_fixture.h"
#include "support/child.h"

static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

typedef struct ending {
    sp_model model;
    small_row expected;
    sp_atomic_u32 started, called, submitted, wrong;
    bool is_shutdown;
    sp_device device;
} ending;

static void note_call(void *ctx, sp_status status)
{
    ending *e = ctx;
    if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
    sp_fetch_add_acq_rel(&e->called, 1);
}

enum { BURST = 16 };

/* Every future has the right bits or is refused; no other outcome. */
static void submit_until_closed(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index == 0) {
        await_count(&e->started, 7);
        if ((e->is_shutdown ? sp_shutdown() : sp_device_close(e->device)) != SP_OK) failed("end");
        return;
    }
    static small_row outputs[8][BURST];
    small_row *out = outputs[index];
    sp_status status = SP_OK;
    while (status == SP_OK) {
        sp_future futures[BURST];
        uint32_t count = 0;
        memset(out, 0xff, BURST * sizeof *out);
        while (count < BURST && status == SP_OK) {
            status = small_submit(e->model, &out[count], &futures[count]);
            if (status != SP_OK) break;
            sp_fetch_add_acq_rel(&e->submitted, 1);
            if (sp_future_on_complete(futures[count], note_call, e) != SP_OK) {
                sp_fetch_add_acq_rel(&e->called, 1); /* refused: it is never called */
            }
            count++;
        }
        if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
        for (uint32_t i = 0; i < count; i++) {
            const sp_status outcome = sp_future_wait(futures[i]);
            const bool is_right = outcome == SP_OK
                                      ? memcmp(&out[i], &e->expected, sizeof out[i]) == 0
                                      : outcome == SP_CLOSED;
            if (!is_right) sp_fetch_add_relaxed(&e->wrong, 1);
            if (sp_future_release(futures[i]) != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
        }
        sp_fetch_add_acq_rel(&e->started, 1);
    }
}

static int end_beside_futures(bool is_shutdown)
{
    static ending e; /* process-wide: in one child each */
    e = (ending){.is_shutdown = is_shutdown};
    sp_model_options options = {0};
    if (!is_shutdown && sp_device_open("null", &options.device) != SP_OK) return failed("open");
    e.device = options.device;
    e.model = small_model(&options);
    e.expected = small_run(e.model);
    test_threads(8, submit_until_closed, &e);
    const uint64_t deadline = sp_clock_deadline(INT64_C(20000000000));
    while (sp_load_acquire(&e.called) < sp_load_acquire(&e.submitted)) {
        if (sp_clock_now() > deadline) return failed("a callback was not called");
        sp_thread_yield();
    }
    if (sp_load_relaxed(&e.called) != sp_load_relaxed(&e.submitted)) return failed("called twice");
    if (sp_model_release(e.model) != SP_OK) return failed("release");
    return sp_load_relaxed(&e.wrong) == 0 ? 0 : failed("an outcome");
}

static int shut_down_beside_futures(void *arg)
{
    (void)arg;
    return end_beside_futures(true);
}

static int close_beside_futures(void *arg)
{
    (void)arg;
    const int code = end_beside_futures(false);
    if (code != 0) return code;
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(a_shutdown_beside_futures_lets_each_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(200, 10); i++) {
        CHECK_EQ_INT(child_run(shut_down_beside_futures, NULL), 0);
    }
}

TEST(a_device_closed_beside_futures_lets_each_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(200, 10); i++) {
        CHECK_EQ_INT(child_run(close_beside_futures, NULL), 0);
    }
}

enum { REFUSED = 20000 };

/* All wait for a slot when the device is closed. The first that gets one is refused and passes the
 * slot to the next. */
static int refuse_those_that_wait(void *arg)
{
    (void)arg;
    static sp_future futures[REFUSED]; /* process-wide: in one child */
    sp_model_options options = {0};
    sp_device_info info = {0};
    small_row out;
    if (sp_device_open("null", &options.device) != SP_OK) return failed("open");
    if (sp_device_get_info(options.device, &info) != SP_OK) return failed("info");
    const sp_model model = small_model(&options);
    sp_rt_model *object = sp__model_hold(model);
    sp_run_slots *slots = sp__device_run_slots(object->device);
    for (uint32_t i = 0; i < info.run_slots; i++) {
        if (sp__run_slots_acquire(slots, NULL) != SP_OK) return failed("take a slot");
    }
    for (int i = 0; i < REFUSED; i++) {
        if (small_submit(model, &out, &futures[i]) != SP_OK) return failed("submit");
    }
    if (sp_device_close(options.device) != SP_OK) return failed("close");
    for (uint32_t i = 0; i < info.run_slots; i++) {
        sp__wait_entry_resume(sp__run_slots_release(slots, NULL));
    }
    for (int i = 0; i < REFUSED; i++) {
        if (sp_future_query(futures[i]) != SP_CLOSED) return failed("outcome");
        if (sp_future_release(futures[i]) != SP_OK) return failed("release");
    }
    sp__model_drop(object);
    return sp_model_release(model) == SP_OK ? 0 : failed("release of the model");
}

TEST(runs_that_are_refused_in_a_row_use_no_stack)
{
    CHECK_EQ_INT(child_run(refuse_those_that_wait, NULL), 0);
}

static void never(void *ctx, sp_status status)
{
    (void)ctx;
    (void)status;
    CHECK(false);
}

static int use_forked(void *arg)
{
    const sp_future future = *(const sp_future *)arg;
    if (sp_future_wait(future) != SP_FORKED) return failed("wait");
    if (sp_future_query(future) != SP_FORKED) return failed("query");
    if (sp_future_on_complete(future, never, NULL) != SP_FORKED) return failed("callback");
    if (sp_future_retain(future) != SP_FORKED) return failed("retain");
    return sp_future_release(future) == SP_OK ? 0 : failed("release");
}

static int fork_with_a_future(void *arg)
{
    (void)arg;
    small_row out;
    sp_future future;
    const sp_model model = small_model(NULL);
    if (small_submit(model, &out, &future) != SP_OK) return failed("submit");
    if (child_run(use_forked, &future) != 0) return failed("the forked child");
    if (sp_future_wait(future) != SP_OK || sp_model_release(model) != SP_OK) return failed("wait");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (sp_future_wait(future) != SP_OK) return failed("wait after the shutdown");
    if (sp_future_query(future) != SP_OK) return failed("query after the shutdown");
    if (sp_future_retain(future) != SP_CLOSED) return failed("retain after the shutdown");
    if (sp_future_on_complete(future, never, NULL) != SP_CLOSED) return failed("callback");
    return sp_future_release(future) == SP_OK ? 0 : failed("release after the shutdown");
}

TEST(a_forked_child_is_refused_and_after_a_shutdown_one_may_still_wait)
{
    CHECK_EQ_INT(child_run(fork_with_a_future, NULL), 0);
}

TEST_MAIN
