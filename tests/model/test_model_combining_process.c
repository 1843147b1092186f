/* SPDX-License-Identifier: Apache-2.0 */
/* Batches, the thread that builds larger plans, and the life cycle of the process: shutdown,
 * closing of devices, exit, fork. Each test runs in a child that is forked before first use, so
 * each has its own library. Needs STREAMPOOL_BATCHING=always. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <streampool/device.h>
#include <streampool/log.h>
#include <streampool/runtime.h>

#include "base/clock.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "combining_fixture.h"
#include "support/child.h"
#include "support/malloc_count.h"

enum { RUNNERS = 8 };

static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

/* Asks for larger plans of the model's plan of input_x(1), and does not wait for them. */
static void request_build(sp_model model)
{
    const sp_host_tensor x = input_x(1);
    combining_request(model, &x, 1);
}

/* ---- the end of the library ---- */

typedef struct ending {
    sp_model model;
    sp_device device; /* to be closed; none: the library is shut down */
    small_row expected;
    sp_atomic_u32 started, wrong;
} ending;

/* Every run is right or refused. Every third is submitted. */
static void run_until_closed(ending *e)
{
    sp_status status = SP_OK;
    for (uint32_t i = 0; status == SP_OK; i++) {
        small_row row;
        memset(&row, 0xff, sizeof row);
        if (i % 3 == 2) {
            sp_future future;
            status = small_submit(e->model, &row, &future);
            if (status == SP_OK) {
                status = sp_future_wait(future);
                if (sp_future_release(future) != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
            }
        } else {
            const sp_host_tensor x = input_x(1);
            sp_host_tensor y = output_y((float *)(void *)row.bytes, SMALL_OUT);
            status = sp_model_run(e->model, &x, 1, &y, 1);
        }
        const bool is_right =
            status == SP_OK ? small_is_same(&row, &e->expected) : status == SP_CLOSED;
        if (!is_right) {
            failed("a run beside the end");
            sp_fetch_add_relaxed(&e->wrong, 1);
        }
        if (i == 20) sp_fetch_add_acq_rel(&e->started, 1);
    }
}

static void run_or_end(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index > 0) {
        run_until_closed(e);
        return;
    }
    await_count(&e->started, RUNNERS);
    const sp_status status = e->device.bits != 0 ? sp_device_close(e->device) : sp_shutdown();
    if (status != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
}

/* How far the larger plans are when the end comes. */
typedef enum build_state { NOT_ASKED, BUILDING, BUILT } build_state;

static int end_beside_runs(bool is_shutdown, build_state state)
{
    static ending e; /* process-wide: in one child each */
    e = (ending){0};
    sp_model_options options = {0};
    if (!is_shutdown && sp_device_open("null", &options.device) != SP_OK) return failed("open");
    e.device = options.device;
    e.model = small_model(&options);
    e.expected = small_run(e.model);
    if (state != NOT_ASKED) request_build(e.model);
    if (state == BUILT) sp__batch_builder_drain();
    test_threads(1 + RUNNERS, run_or_end, &e);
    if (sp_model_release(e.model) != SP_OK) return failed("release");
    return sp_load_relaxed(&e.wrong) == 0 ? 0 : failed("an outcome");
}

static int shut_down_beside_runs(void *arg)
{
    return end_beside_runs(true, *(const build_state *)arg);
}

static int close_beside_runs(void *arg)
{
    for (int i = 0; i < 10; i++) {
        const int code = end_beside_runs(false, *(const build_state *)arg);
        if (code != 0) return code;
    }
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

static const build_state states[] = {NOT_ASKED, BUILDING, BUILT};

TEST(a_shutdown_beside_batches_and_builds_lets_each_run_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(100, 7) * SP_COUNT_OF(states); i++) {
        build_state state = states[i % SP_COUNT_OF(states)];
        CHECK_EQ_INT(child_run(shut_down_beside_runs, &state), 0);
    }
}

TEST(a_device_closed_beside_batches_and_builds_lets_each_run_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(30, 2) * SP_COUNT_OF(states); i++) {
        build_state state = states[i % SP_COUNT_OF(states)];
        CHECK_EQ_INT(child_run(close_beside_runs, &state), 0);
    }
}

/* ---- the builder and the process ---- */

static int shut_down_beside_a_build(void *arg)
{
    (void)arg;
    sp_model models[8];
    for (int i = 0; i < 8; i++) {
        models[i] = small_model(NULL);
        request_build(models[i]);
    }
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    sp__batch_builder_drain(); /* does not wait */
    for (int i = 0; i < 8; i++) {
        if (sp_model_release(models[i]) != SP_OK) return failed("release");
    }
    return 0;
}

TEST(a_shutdown_ends_the_builder_and_drops_what_it_was_asked_for)
{
    for (uint64_t i = 0; i < test_count(200, 20); i++) {
        CHECK_EQ_INT(child_run(shut_down_beside_a_build, NULL), 0);
    }
}

static int exit_beside_a_build(void *arg)
{
    (void)arg;
    for (int i = 0; i < 8; i++) request_build(small_model(NULL));
    exit(0);
}

TEST(an_exit_beside_a_build_is_clean)
{
    for (uint64_t i = 0; i < test_count(200, 15); i++) {
        CHECK_EQ_INT(child_run(exit_beside_a_build, NULL), 0);
    }
}

static void shut_down(void *arg)
{
    (void)arg;
    if (sp_shutdown() != SP_OK) _exit(6);
    for (;;) sp_clock_sleep(UINT64_C(1000000000)); /* until the exit */
}

/* A shutdown on one thread, an exit on another. */
static int exit_beside_a_shutdown(void *arg)
{
    (void)arg;
    sp_thread thread;
    for (int i = 0; i < 8; i++) request_build(small_model(NULL));
    if (sp_thread_create(&thread, "ender", shut_down, NULL) != SP_OK) return 3;
    exit(0);
}

TEST(an_exit_beside_a_shutdown_and_a_build_is_clean)
{
    for (uint64_t i = 0; i < test_count(1000, 40); i++) {
        CHECK_EQ_INT(child_run(exit_beside_a_shutdown, NULL), 0);
    }
}

typedef struct forked {
    sp_model model;
    bool exits; /* with the functions that the parent has registered for it */
} forked;

static int use_forked(void *arg)
{
    const forked *self = arg;
    const sp_model model = self->model;
    for (uint32_t i = 0; i < model_call_count; i++) {
        if (model_calls[i].run(model) != SP_FORKED) return failed(model_calls[i].name);
    }
    if (sp_model_release(model) != SP_OK) return failed("release");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (self->exits) exit(0);
    return 0;
}

static int fork_beside_a_build(void *arg)
{
    sp_model models[4];
    for (int i = 0; i < 4; i++) {
        models[i] = small_model(NULL);
        request_build(models[i]);
    }
    /* In sanitizer builds it would report what only threads of the parent refer to as leaked. */
    forked self = {.model = models[0], .exits = *(const bool *)arg && malloc_is_counted()};
    if (*(const bool *)arg) sp__batch_builder_drain();
    if (child_run(use_forked, &self) != 0) return failed("the forked child");
    const sp_host_tensor x = input_x(1); /* the parent's builder continues */
    if (combining_prepare(models[3], &x, 1) == 0) return failed("the parent's plans");
    for (int i = 0; i < 4; i++) {
        if (sp_model_release(models[i]) != SP_OK) return failed("release");
    }
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(a_child_that_is_forked_beside_a_build_is_refused_and_exits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t i = 0; i < test_count(100, 10); i++) {
        bool is_built = i % 2 != 0;
        CHECK_EQ_INT(child_run(fork_beside_a_build, &is_built), 0);
    }
}

/* ---- the log's callback, on the builder's thread ---- */

typedef struct log_calls {
    sp_model model;
    sp_atomic_u32 count;
    const char *part; /* of the messages that it acts on */
    void (*act)(struct log_calls *calls);
} log_calls;

static void log_act(void *ctx, sp_log_level level, const char *message)
{
    log_calls *calls = ctx;
    (void)level;
    if (strstr(message, calls->part) == NULL) return;
    calls->act(calls);
    sp_fetch_add_acq_rel(&calls->count, 1);
}

static const char *const measured = "a batch of ";
static const char *const built = "plans for batches were built";

static sp_model log_one_build(const char *part, void (*act)(log_calls *calls))
{
    static log_calls calls; /* process-wide: in one child each */
    const sp_model_options options = {.max_plans = 1};
    calls = (log_calls){.model = small_model(&options), .part = part, .act = act};
    sp_log_set_level(SP_LOG_DEBUG);
    sp_log_set_callback(log_act, &calls);
    request_build(calls.model);
    await_count(&calls.count, 1);
    sp_log_set_callback(NULL, NULL);
    sp_log_set_level(SP_LOG_WARN);
    return calls.model;
}

static int log_beside_a_build(const char *part, void (*act)(log_calls *calls))
{
    (void)log_one_build(part, act);
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

static void end_thread(log_calls *calls)
{
    sp_fetch_add_acq_rel(&calls->count, 1);
    sp_thread_exit();
}

/* The plans are built nevertheless, the model is not held any more, and others get theirs. */
static int end_thread_in_the_log(void *arg)
{
    const sp_model model = log_one_build(arg, end_thread);
    sp_rt_model *held = sp__model_hold(model);
    sp__batch_builder_drain();
    if (combining_buckets(model) != 11) return failed("larger plans");
    if (sp_model_release(model) != SP_OK) return failed("release");
    if (sp__model_drop_unless_last(held)) return failed("the builder's hold");
    sp__model_drop(held);
    const sp_model other = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    if (combining_prepare(other, &x, 1) != 11) return failed("later plans");
    if (sp_model_release(other) != SP_OK) return failed("release");
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

/* Two rows: the one entry of the cache is needed for another plan. */
static void infer_other_shape(log_calls *calls)
{
    const sp_host_tensor x = input_x(2);
    sp_host_tensor y = {0};
    if (sp_model_infer(calls->model, &x, 1, &y, 1) != SP_OK) _exit(5);
}

static int infer_in_the_log(void *arg)
{
    return log_beside_a_build(arg, infer_other_shape);
}

static void exit_now(log_calls *calls)
{
    (void)calls;
    exit(0);
}

static int exit_in_the_log(void *arg)
{
    (void)log_beside_a_build(arg, exit_now);
    return 3;
}

static void shut_down_now(log_calls *calls)
{
    (void)calls;
    if (sp_shutdown() != SP_DEADLOCK) _exit(5);
}

static int shut_down_in_the_log(void *arg)
{
    return log_beside_a_build(arg, shut_down_now);
}

/* Larger sizes are not measured yet. */
static void check_two_buckets(log_calls *calls)
{
    if (combining_buckets(calls->model) != 2 || combining_batches(calls->model) < 2) _exit(5);
    const merged_runs before = merged_of(calls->model);
    sp_future futures[8];
    small_row rows[8];
    held_slots held = slots_hold(calls->model);
    for (int i = 0; i < 8; i++) {
        if (small_submit(calls->model, &rows[i], &futures[i]) != SP_OK) _exit(5);
    }
    slots_give(&held);
    for (int i = 0; i < 8; i++) {
        if (sp_future_wait(futures[i]) != SP_OK) _exit(5);
        if (sp_future_release(futures[i]) != SP_OK) _exit(5);
    }
    if (merged_since(calls->model, before).runs == 0) _exit(5);
}

static int use_buckets_in_the_log(void *arg)
{
    (void)arg;
    return log_beside_a_build("a batch of 4 ", check_two_buckets);
}

TEST(each_size_is_used_as_soon_as_it_is_built)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    CHECK_EQ_INT(child_run(use_buckets_in_the_log, NULL), 0);
}

/* The plan is evicted while its larger plans are built, by one of another shape; a run of the first
 * shape builds it anew. */
static void infer_other_shape_and_first(log_calls *calls)
{
    infer_other_shape(calls);
    if (combining_buckets(calls->model) != 0) _exit(5);
    (void)small_run(calls->model);
}

static int evict_in_the_log(void *arg)
{
    (void)arg;
    const sp_model model = log_one_build("a batch of 4 ", infer_other_shape_and_first);
    sp__batch_builder_drain();
    if (combining_buckets(model) != 11) return failed("larger plans");
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(a_plan_that_is_evicted_and_built_again_gets_the_larger_plans_of_the_first)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (int i = 0; i < 10; i++) CHECK_EQ_INT(child_run(evict_in_the_log, NULL), 0);
}

TEST(the_log_of_a_build_may_call_the_library_and_end_the_process)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const char *const parts[] = {measured, built};
    for (uint32_t i = 0; i < 2; i++) {
        void *part = (void *)(uintptr_t)parts[i];
        CHECK_EQ_INT(child_run(infer_in_the_log, part), 0);
        CHECK_EQ_INT(child_run(exit_in_the_log, part), 0);
        CHECK_EQ_INT(child_run(shut_down_in_the_log, part), 0);
        CHECK_EQ_INT(child_run(end_thread_in_the_log, part), 0);
    }
}

TEST_MAIN
