/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues and the life cycle of the process: shutdown, closing of devices, exit, fork. Each
 * test runs in a child that is forked before first use, so each has its own library. Needs
 * STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <streampool/device.h>
#include <streampool/runtime.h>

#include "base/clock.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "support/child.h"
#include "support/malloc_count.h"

#define LONG_NS INT64_C(3600000000000) /* longer than any test */

enum { THREADS = 8, BURST = 12 };

static int failed(const char *what)
{
    printf("  %s: %s\n", what, sp_last_error());
    fflush(stdout);
    return 1;
}

/* ---- the end of the library ---- */

typedef struct ending {
    sp_model model;
    sp_batch_queue queue;
    sp_device device; /* to be closed; none: the library is shut down */
    queued_row rows[THREADS][BURST];
    sp_atomic_u32 started, called, submitted, wrong;
} ending;

static void note_call(void *ctx, sp_status status)
{
    ending *e = ctx;
    if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
    sp_fetch_add_acq_rel(&e->called, 1);
}

/* Submits requests until one is refused; returns how many were accepted. */
static uint32_t burst_submit(ending *e, queued_row *rows)
{
    sp_status status = SP_OK;
    uint32_t count = 0;
    while (count < BURST) {
        status = queued_row_submit(e->queue, &rows[count]);
        if (status != SP_OK) break;
        sp_fetch_add_acq_rel(&e->submitted, 1);
        if (sp_future_on_complete(rows[count].future, note_call, e) != SP_OK) {
            sp_fetch_add_acq_rel(&e->called, 1); /* refused: it is never called */
        }
        count++;
    }
    if (status != SP_OK && status != SP_CLOSED) sp_fetch_add_relaxed(&e->wrong, 1);
    return count;
}

/* Every request has the right bits or is refused; no other outcome. */
static void submit_until_closed(ending *e, queued_row *rows)
{
    for (uint32_t count = BURST; count == BURST;) {
        count = burst_submit(e, rows);
        for (uint32_t i = 0; i < count; i++) {
            const sp_status status = sp_future_wait(rows[i].future);
            const bool is_right =
                status == SP_OK ? queued_row_is_right(&rows[i]) : status == SP_CLOSED;
            if (!is_right) sp_fetch_add_relaxed(&e->wrong, 1);
            if (sp_future_release(rows[i].future) != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
        }
        sp_fetch_add_acq_rel(&e->started, 1);
    }
}

static void submit_or_end(void *arg, uint32_t index)
{
    ending *e = arg;
    if (index < THREADS) {
        submit_until_closed(e, e->rows[index]);
        return;
    }
    await_count(&e->started, THREADS);
    const sp_status status = e->device.bits != 0 ? sp_device_close(e->device) : sp_shutdown();
    if (status != SP_OK) sp_fetch_add_relaxed(&e->wrong, 1);
}

static int end_beside_requests(bool is_shutdown, int64_t max_delay_ns)
{
    static ending e; /* process-wide: in one child each */
    sp_model_options options = {0};
    memset(&e, 0, sizeof e);
    if (!is_shutdown && sp_device_open("null", &options.device) != SP_OK) return failed("open");
    e.device = options.device;
    e.model = small_model(&options);
    const sp_host_tensor x = input_x(1);
    (void)combining_prepare(e.model, &x, 1);
    for (uint32_t i = 0; i < THREADS; i++) queued_rows_init(e.model, e.rows[i], i * BURST, BURST);
    const sp_batch_queue_options queue_options = {.max_delay_ns = max_delay_ns, .max_batch = 16};
    e.queue = queue_open(e.model, &queue_options);
    test_threads(THREADS + 1, submit_or_end, &e);
    const uint64_t deadline = sp_clock_deadline(INT64_C(20000000000));
    while (sp_load_acquire(&e.called) < sp_load_acquire(&e.submitted)) {
        if (sp_clock_now() > deadline) return failed("a callback was not called");
        sp_thread_yield();
    }
    if (sp_batch_queue_release(e.queue) != SP_OK) return failed("release of the queue");
    if (sp_model_release(e.model) != SP_OK) return failed("release of the model");
    return sp_load_relaxed(&e.wrong) == 0 ? 0 : failed("an outcome");
}

static int shut_down_beside_requests(void *arg)
{
    return end_beside_requests(true, *(const int64_t *)arg);
}

static int close_beside_requests(void *arg)
{
    const int code = end_beside_requests(false, *(const int64_t *)arg);
    if (code != 0) return code;
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

static const int64_t delays[] = {0, 100000, 2000000};

TEST(a_shutdown_beside_requests_lets_each_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(300, 18); i++) {
        int64_t delay = delays[i % SP_COUNT_OF(delays)];
        CHECK_EQ_INT(child_run(shut_down_beside_requests, &delay), 0);
    }
}

TEST(a_device_closed_beside_requests_lets_each_finish_or_refuses_it)
{
    for (uint64_t i = 0; i < test_count(300, 18); i++) {
        int64_t delay = delays[i % SP_COUNT_OF(delays)];
        CHECK_EQ_INT(child_run(close_beside_requests, &delay), 0);
    }
}

/* ---- requests behind a closed gate ---- */

typedef struct gated {
    sp_model model;
    sp_batch_queue queue;
    queued_row rows[5];
} gated;

static gated gate; /* process-wide: in one child each */

static bool gate_close(void)
{
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    gate.model = queue_model();
    gate.queue = queue_open(gate.model, &options);
    queued_rows_init(gate.model, gate.rows, 0, 5);
    queued_rows_submit(gate.queue, gate.rows, 5);
    return queue_statistics(gate.queue).waiting == 5;
}

static int shut_down_behind_a_gate(void *arg)
{
    (void)arg;
    sp_batch_queue_statistics s;
    if (!gate_close()) return failed("the gate");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    for (int i = 0; i < 5; i++) {
        const sp_status status = sp_future_wait(gate.rows[i].future);
        if (status == SP_OK && !queued_row_is_right(&gate.rows[i])) return failed("bits");
        if (status != SP_OK && status != SP_CLOSED) return failed("an outcome");
    }
    if (queued_row_submit(gate.queue, &gate.rows[0]) != SP_CLOSED) return failed("submit");
    if (sp_batch_queue_flush(gate.queue) != SP_CLOSED) return failed("flush");
    if (sp_batch_queue_configure(gate.queue, NULL) != SP_CLOSED) return failed("configure");
    if (sp_batch_queue_get_statistics(gate.queue, &s) != SP_CLOSED) return failed("statistics");
    if (sp_batch_queue_retain(gate.queue) != SP_CLOSED) return failed("retain");
    if (sp_batch_queue_create(gate.model, NULL, &gate.queue) != SP_CLOSED) return failed("create");
    return 0;
}

TEST(a_shutdown_opens_the_gates)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t i = 0; i < test_count(300, 20); i++) {
        CHECK_EQ_INT(child_run(shut_down_behind_a_gate, NULL), 0);
    }
}

static int exit_behind_a_gate(void *arg)
{
    (void)arg;
    if (!gate_close()) return failed("the gate");
    exit(0);
}

static int exit_beside_the_timer(void *arg)
{
    const sp_batch_queue_options options = {.max_delay_ns = 20000};
    (void)arg;
    gate.model = queue_model();
    gate.queue = queue_open(gate.model, &options);
    queued_rows_init(gate.model, gate.rows, 0, 5);
    queued_rows_submit(gate.queue, gate.rows, 5);
    exit(0);
}

static void shut_down(void *arg)
{
    (void)arg;
    if (sp_shutdown() != SP_OK) _exit(6);
    for (;;) sp_clock_sleep(UINT64_C(1000000000)); /* until the exit */
}

static int exit_beside_a_shutdown(void *arg)
{
    sp_thread thread;
    (void)arg;
    if (!gate_close()) return failed("the gate");
    if (sp_thread_create(&thread, "ender", shut_down, NULL) != SP_OK) return 3;
    exit(0);
}

TEST(an_exit_with_requests_inside_is_clean)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t i = 0; i < test_count(300, 20); i++) {
        CHECK_EQ_INT(child_run(exit_behind_a_gate, NULL), 0);
        CHECK_EQ_INT(child_run(exit_beside_the_timer, NULL), 0);
        CHECK_EQ_INT(child_run(exit_beside_a_shutdown, NULL), 0);
    }
}

/* ---- fork ---- */

static int use_forked(void *arg)
{
    sp_batch_queue queue;
    sp_batch_queue_statistics s;
    queued_row row = gate.rows[0];
    sp_inference inference = {0};
    if (queued_row_submit(gate.queue, &row) != SP_FORKED) return failed("submit");
    if (sp_batch_queue_create(gate.model, NULL, &queue) != SP_FORKED) return failed("create");
    if (sp_batch_queue_flush(gate.queue) != SP_FORKED) return failed("flush");
    if (sp_batch_queue_configure(gate.queue, NULL) != SP_FORKED) return failed("configure");
    if (sp_batch_queue_get_statistics(gate.queue, &s) != SP_FORKED) return failed("statistics");
    if (sp_batch_queue_retain(gate.queue) != SP_FORKED) return failed("retain");
    if (sp_batch_inference(gate.model, &inference, 1) != SP_FORKED) return failed("inference");
    if (inference.status != SP_FORKED) return failed("the inference's status");
    if (sp_batch_queue_release(gate.queue) != SP_OK) return failed("release");
    if (sp_shutdown() != SP_OK) return failed("shutdown");
    if (*(const bool *)arg) exit(0);
    return 0;
}

static int fork_behind_a_gate(void *arg)
{
    /* In sanitizer builds it would report what only threads of the parent refer to as leaked. */
    bool exits = *(const bool *)arg && malloc_is_counted();
    if (!gate_close()) return failed("the gate");
    if (child_run(use_forked, &exits) != 0) return failed("the forked child");
    if (sp_batch_queue_flush(gate.queue) != SP_OK) return failed("flush");
    for (int i = 0; i < 5; i++) { /* the parent continues */
        if (sp_future_wait(gate.rows[i].future) != SP_OK) return failed("a request");
        if (sp_future_release(gate.rows[i].future) != SP_OK) return failed("release of a future");
    }
    if (sp_batch_queue_release(gate.queue) != SP_OK) return failed("release");
    if (sp_model_release(gate.model) != SP_OK) return failed("release of the model");
    return sp_shutdown() == SP_OK ? 0 : failed("shutdown");
}

TEST(a_forked_child_is_refused_and_exits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t i = 0; i < test_count(100, 10); i++) {
        bool exits = i % 2 != 0;
        CHECK_EQ_INT(child_run(fork_behind_a_gate, &exits), 0);
    }
}

TEST_MAIN
