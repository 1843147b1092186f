/* SPDX-License-Identifier: Apache-2.0 */
/* Submitted runs in several plans and the life cycle of the process: shutdown, closing of devices,
 * exit, fork. Each test runs in a child that is forked before first use, so each has its own
 * library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <streampool/log.h>
#include <streampool/runtime.h>
#include <streampool/storage.h>
#include <streampool/stream.h>

#include "base/clock.h"
#include "base/thread.h"
#include "partial_cases.h"
#include "run_fixture.h"
#include "support/child.h"
#include "support/malloc_count.h"

enum { SUBMITTERS = 7, BURST = 12 };

static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

/* ---- the end beside submits ---- */

typedef struct ending {
    sp_model models[CASE_KINDS];
    partial_case cases[CASE_KINDS];
    sp_host_tensor expected[CASE_KINDS][CASE_OUTPUTS];
    sp_device device; /* to be closed; none: the library is shut down */
    sp_atomic_u32 started, submitted, called, wrong;
} ending;

static void note_call(void *ctx, sp_status status)
{
    ending *e = ctx;
    if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
    sp_fetch_add_acq_rel(&e->called, 1);
}

/* The right outputs, or refused. */
static bool outcome_is_right(const ending *e, int kind, sp_future future)
{
    sp_host_tensor taken[CASE_OUTPUTS] = {0};
    const partial_case *c = &e->cases[kind];
    const sp_status status = sp_future_wait(future);
    bool is_right = status == SP_CLOSED;
    if (status == SP_OK) {
        is_right = true;
        for (uint32_t i = 0; i < partial_output_count(c->kind); i++) {
            is_right = is_right && sp_future_take_output(future, i, &taken[i]) == SP_OK;
        }
        is_right = is_right && partial_is_same(c, taken, e->expected[kind]);
        partial_free(c, taken);
    }
    return sp_future_release(future) == SP_OK && is_right;
}

static sp_status submit_burst(ending *e)
{
    sp_future futures[BURST];
    sp_status status = SP_OK;
    int count = 0;
    while (count < BURST && status == SP_OK) {
        const int kind = count % CASE_KINDS;
        sp_host_tensor outputs[CASE_OUTPUTS] = {0};
        status = partial_case_submit(e->models[kind], &e->cases[kind], outputs, &futures[count]);
        if (status != SP_OK) break;
        sp_fetch_add_acq_rel(&e->submitted, 1);
        if (sp_future_on_complete(futures[count], note_call, e) != SP_OK) {
            sp_fetch_add_acq_rel(&e->called, 1); /* refused: it is never called */
        }
        count++;
    }
    if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
    for (int i = 0; i < count; i++) {
        if (outcome_is_right(e, i % CASE_KINDS, futures[i])) continue;
        failed("an outcome");
        sp_fetch_add_relaxed(&e->wrong, 1);
    }
    return status;
}

static void submit_or_end(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index == 0) {
        await_count(&e->started, SUBMITTERS);
        if ((e->device.bits == 0 ? sp_shutdown() : sp_device_close(e->device)) != SP_OK) {
            sp_fetch_add_relaxed(&e->wrong, 1);
        }
        return;
    }
    while (submit_burst(e) == SP_OK) sp_fetch_add_acq_rel(&e->started, 1);
}

static int end_beside_submits(bool is_shutdown)
{
    static ending e; /* process-wide: in one child each */
    e = (ending){0};
    if (!is_shutdown && sp_device_open("null", &e.device) != SP_OK) return failed("open");
    const sp_model_options options = {.device = e.device};
    for (int k = 0; k < CASE_KINDS; k++) {
        e.models[k] = partial_model((case_kind)k, &options);
        partial_case_make(&e.cases[k], (case_kind)k, 31);
        if (partial_case_run(e.models[k], &e.cases[k], e.expected[k]) != SP_OK)
            return failed("run");
    }
    test_threads(1 + SUBMITTERS, submit_or_end, &e);
    const uint64_t deadline = sp_clock_deadline(INT64_C(20000000000));
    while (sp_load_acquire(&e.called) < sp_load_acquire(&e.submitted)) {
        if (sp_clock_now() > deadline) return failed("a callback was not called");
        sp_thread_yield();
    }
    for (int k = 0; k < CASE_KINDS; k++) {
        partial_free(&e.cases[k], e.expected[k]);
        if (sp_model_release(e.models[k]) != SP_OK) return failed("release");
    }
    return sp_load_relaxed(&e.wrong) == 0 ? 0 : failed("an outcome");
}

static int shut_down_beside_submits(void *arg)
{
    (void)arg;
    return end_beside_submits(true);
}

static int close_beside_submits(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5; i++) {
        const int code = end_beside_submits(false);
        if (code != 0) return code;
    }
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(a_shutdown_beside_submits_lets_each_run_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(100, 8); i++) {
        CHECK_EQ_INT(child_run(shut_down_beside_submits, NULL), 0);
    }
}

TEST(a_device_closed_beside_submits_lets_each_run_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(40, 3); i++) {
        CHECK_EQ_INT(child_run(close_beside_submits, NULL), 0);
    }
}

/* ---- endless runs ---- */

enum { ENDLESS = 200 };

static sp_model endless_model(sp_device device)
{
    static const int64_t any_dims[1] = {-1};
    writer graph = {0};
    writer body = partial_body(1);
    sp_model model = {0};
    add_input(&graph, "x", ONNX_FLOAT, any_dims, 1);
    partial_add_ints(&graph, "n", (const int64_t[]){(int64_t)1 << 62}, -1);
    partial_add_bool(&graph, "c", true);
    add_node(&body, make_node("Neg", "v", "w"));
    add_output(&body, "on");
    add_output(&body, "w");
    add_node(&graph, partial_loop("n c x", "y", &body));
    add_output(&graph, "y");
    (void)partial_load(&graph, &(sp_model_options){.device = device}, &model);
    return model;
}

static const float endless_x[2] = {1, 2};

/* As many as there are threads for are computed, the others are queued. */
static int endless_submit(sp_model model, sp_future *futures)
{
    const sp_host_tensor x = partial_floats("x", endless_x, 2);
    for (int i = 0; i < ENDLESS; i++) {
        sp_host_tensor y = {0};
        if (sp_model_submit(model, &x, 1, &y, 1, &futures[i]) != SP_OK) return failed("submit");
    }
    return 0;
}

static int endless_begin(sp_model model, sp_future *futures)
{
    if (endless_submit(model, futures) != 0) return 1;
    while (statistics_of(model).most_in_flight == 0) sp_thread_yield();
    return 0;
}

static int endless_end(sp_future *futures)
{
    for (int i = 0; i < ENDLESS; i++) {
        sp_host_tensor y = {0};
        if (sp_future_wait(futures[i]) != SP_CLOSED) return failed("wait");
        if (sp_future_take_output(futures[i], 0, &y) != SP_CLOSED) return failed("take");
        if (sp_future_release(futures[i]) != SP_OK) return failed("release");
    }
    return 0;
}

static int shut_down_beside_endless_runs(void *arg)
{
    static sp_future futures[ENDLESS]; /* process-wide: in one child */
    (void)arg;
    const sp_model model = endless_model((sp_device){0});
    if (endless_begin(model, futures) != 0) return 1;
    if (sp_model_release(model) != SP_OK) return failed("release of the model");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    return endless_end(futures);
}

static int close_beside_endless_runs(void *arg)
{
    static sp_future futures[ENDLESS]; /* process-wide: in one child */
    sp_device device;
    (void)arg;
    if (sp_device_open("null", &device) != SP_OK) return failed("open");
    const sp_model model = endless_model(device);
    if (endless_begin(model, futures) != 0) return 1;
    if (sp_device_close(device) != SP_OK) return failed("close");
    if (endless_end(futures) != 0) return 1;
    if (sp_model_release(model) != SP_OK) return failed("release of the model");
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

static int exit_beside_endless_runs(void *arg)
{
    static sp_future futures[ENDLESS]; /* process-wide: in one child */
    (void)arg;
    if (endless_begin(endless_model((sp_device){0}), futures) != 0) return 1;
    exit(0);
}

TEST(endless_and_queued_runs_end_with_the_library_the_device_and_the_process)
{
    for (uint64_t i = 0; i < test_count(100, 5); i++) {
        CHECK_EQ_INT(child_run(shut_down_beside_endless_runs, NULL), 0);
        CHECK_EQ_INT(child_run(close_beside_endless_runs, NULL), 0);
        CHECK_EQ_INT(child_run(exit_beside_endless_runs, NULL), 0);
    }
}

static int submit_after_the_shutdown(void *arg)
{
    partial_case c;
    sp_future future;
    sp_future refused;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    sp_host_tensor taken = {0};
    (void)arg;
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case_make(&c, CASE_FOUND, 1);
    if (partial_case_submit(model, &c, outputs, &future) != SP_OK) return failed("submit");
    if (sp_future_wait(future) != SP_OK) return failed("wait");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (partial_case_submit(model, &c, outputs, &refused) != SP_CLOSED) return failed("refused");
    if (sp_future_take_output(future, 1, &taken) != SP_OK) return failed("take");
    sp_host_tensor_free(&taken);
    if (sp_future_release(future) != SP_OK) return failed("release");
    return sp_model_release(model) == SP_OK ? 0 : failed("release of the model");
}

TEST(after_a_shutdown_outputs_can_be_taken_and_no_run_submitted)
{
    CHECK_EQ_INT(child_run(submit_after_the_shutdown, NULL), 0);
}

/* ---- an exit in a host function ---- */

typedef struct exit_gate {
    sp_model model;
    sp_stream stream;
    sp_atomic_u32 started;
} exit_gate;

static void exit_behind_runs(void *ctx, sp_status status)
{
    exit_gate *g = ctx;
    if (status != SP_OK) _exit(4);
    await_count(&g->started, 1);
    exit(0);
}

static void run_behind_exit(void *arg)
{
    exit_gate *g = arg;
    sp_stream_set_current(g->stream);
    small_run(g->model);
}

/* All slots are taken by runs behind the function, and submitted runs wait for one. */
static int exit_in_a_function(void *arg)
{
    static exit_gate g; /* process-wide: in one child */
    static sp_thread threads[128];
    static sp_future futures[ENDLESS];
    sp_device_info device;
    (void)arg;
    g.model = small_model(NULL);
    small_run(g.model);
    if (sp_device_get_info((sp_device){0}, &device) != SP_OK) return failed("info");
    if (sp_stream_from_pool((sp_device){0}, &g.stream) != SP_OK) return failed("stream");
    if (sp_stream_host_function(g.stream, exit_behind_runs, &g) != SP_OK) return failed("function");
    for (uint32_t i = 0; i < device.run_slots; i++) {
        if (sp_thread_create(&threads[i], "runner", run_behind_exit, &g) != SP_OK) return 3;
    }
    await_in_flight(g.model, device.run_slots);
    const sp_model model = endless_model((sp_device){0});
    if (endless_submit(model, futures) != 0) return 1;
    while (statistics_of(model).waiting < ENDLESS) sp_thread_yield(); /* the active ones too */
    sp_store_release(&g.started, 1);
    for (;;) sp_clock_sleep(UINT64_C(1000000000)); /* until the exit */
}

TEST(an_exit_in_a_host_function_that_runs_wait_for_is_clean)
{
    for (uint64_t i = 0; i < test_count(50, 4); i++) {
        CHECK_EQ_INT(child_run(exit_in_a_function, NULL), 0);
    }
}

/* ---- the log's callback, on the thread of a run ---- */

/* The call builds the first plan, the run's thread those after it. */
static bool is_built_by_run(const char *message)
{
    return strstr(message, "plan built") != NULL && !sp_thread_is_main();
}

static void shut_down_in_log(void *ctx, sp_log_level level, const char *message)
{
    (void)level;
    if (!is_built_by_run(message)) return;
    if (sp_shutdown() != SP_DEADLOCK) _exit(5);
    sp_fetch_add_acq_rel((sp_atomic_u32 *)ctx, 1);
}

static void exit_in_log(void *ctx, sp_log_level level, const char *message)
{
    (void)ctx;
    (void)level;
    if (is_built_by_run(message)) exit(0);
}

static int log_beside_a_run(sp_log_fn fn)
{
    sp_atomic_u32 calls = {0};
    partial_case c;
    sp_future future;
    sp_host_tensor outputs[CASE_OUTPUTS] = {0};
    sp_log_set_level(SP_LOG_DEBUG);
    sp_log_set_callback(fn, &calls);
    const sp_model model = partial_model(CASE_FOUND, NULL);
    partial_case_make(&c, CASE_FOUND, 1);
    if (partial_case_submit(model, &c, outputs, &future) != SP_OK) return failed("submit");
    if (sp_future_wait(future) != SP_OK || sp_future_release(future) != SP_OK)
        return failed("wait");
    sp_log_set_callback(NULL, NULL);
    if (sp_load_acquire(&calls) == 0) return failed("no plan was built");
    if (sp_model_release(model) != SP_OK) return failed("release");
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

static int shut_down_in_the_log(void *arg)
{
    (void)arg;
    return log_beside_a_run(shut_down_in_log);
}

static int exit_in_the_log(void *arg)
{
    (void)arg;
    (void)log_beside_a_run(exit_in_log);
    return 3;
}

TEST(the_log_of_a_run_may_call_the_library_and_end_the_process)
{
    CHECK_EQ_INT(child_run(shut_down_in_the_log, NULL), 0);
    CHECK_EQ_INT(child_run(exit_in_the_log, NULL), 0);
}

/* ---- fork ---- */

typedef struct forked {
    sp_model model;
    sp_future future;
    bool exits;
} forked;

static int use_forked(void *arg)
{
    const forked *self = arg;
    sp_host_tensor y = {0};
    sp_future future;
    const sp_host_tensor x = partial_floats("x", endless_x, 2);
    if (sp_model_submit(self->model, &x, 1, &y, 1, &future) != SP_FORKED) return failed("submit");
    if (sp_future_take_output(self->future, 0, &y) != SP_FORKED) return failed("take");
    if (sp_future_wait(self->future) != SP_FORKED) return failed("wait");
    if (sp_future_release(self->future) != SP_OK) return failed("release");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (self->exits) exit(0);
    return 0;
}

static int fork_beside_runs(void *arg)
{
    static sp_future futures[ENDLESS]; /* process-wide: in one child */
    (void)arg;
    const sp_model model = endless_model((sp_device){0});
    if (endless_begin(model, futures) != 0) return 1;
    /* In sanitizer builds it would report what only threads of the parent refer to as leaked. */
    forked self = {.model = model, .future = futures[0], .exits = malloc_is_counted()};
    if (child_run(use_forked, &self) != 0) return failed("the forked child");
    if (sp_model_release(model) != SP_OK) return failed("release");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    return endless_end(futures);
}

TEST(a_child_that_is_forked_beside_runs_is_refused_and_exits)
{
    for (uint64_t i = 0; i < test_count(50, 5); i++) {
        CHECK_EQ_INT(child_run(fork_beside_runs, NULL), 0);
    }
}

TEST_MAIN
