/* SPDX-License-Identifier: Apache-2.0 */
/* Run-once: one success for any number of callers, and a failure is reported to one caller only. */
#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"
#include "support/test.h"

#define THREADS 16

typedef struct job {
    sp_once once;
    uint32_t failures_wanted;
    uint64_t duration_ns;
    uint32_t runs;    /* plain: written only by the run, under the once */
    uint64_t product; /* plain: the result of the successful run */
    bool is_running;  /* plain: two at once would be a race */
    sp_atomic_u32 ok, failed;
} job;

static sp_status make_product(void *arg)
{
    job *j = arg;
    CHECK(!j->is_running);
    j->is_running = true;
    j->runs++;
    if (j->duration_ns > 0) sp_clock_sleep(j->duration_ns);
    j->is_running = false;
    if (j->runs <= j->failures_wanted) return sp__fail(SP_IO, "run %u failed", j->runs);
    j->product = 42;
    return SP_OK;
}

static void ask(void *arg, uint32_t index)
{
    (void)index;
    job *j = arg;
    const sp_status status = sp_once_run(&j->once, make_product, j);
    if (status == SP_OK) {
        CHECK_EQ_U64(j->product, 42);
        sp_fetch_add_relaxed(&j->ok, 1);
    } else {
        CHECK_STATUS(status, SP_IO);
        CHECK_MESSAGE("failed");
        sp_fetch_add_relaxed(&j->failed, 1);
    }
}

TEST(a_successful_run_is_the_last)
{
    job j = {.failures_wanted = 0};
    for (int i = 0; i < 3; i++) CHECK_OK(sp_once_run(&j.once, make_product, &j));
    CHECK_EQ_U64(j.runs, 1);
}

TEST(after_a_failure_the_next_caller_tries_again)
{
    job j = {.failures_wanted = 2};
    CHECK_STATUS(sp_once_run(&j.once, make_product, &j), SP_IO);
    CHECK_MESSAGE("run 1 failed");
    CHECK_STATUS(sp_once_run(&j.once, make_product, &j), SP_IO);
    CHECK_MESSAGE("run 2 failed");
    CHECK_OK(sp_once_run(&j.once, make_product, &j));
    CHECK_OK(sp_once_run(&j.once, make_product, &j));
    CHECK_EQ_U64(j.runs, 3);
}

/* The run has ended when a caller returns, and each failure went to one caller. */
static void check_together(uint32_t failures, uint64_t duration_ns)
{
    job j = {.failures_wanted = failures, .duration_ns = duration_ns};
    test_threads(THREADS, ask, &j);
    CHECK_EQ_U64(j.runs, failures + 1);
    CHECK_EQ_U64(sp_load_relaxed(&j.failed), failures);
    CHECK_EQ_U64(sp_load_relaxed(&j.ok), THREADS - failures);
    CHECK_EQ_U64(j.product, 42);
}

TEST(threads_that_ask_together_share_one_run)
{
    const uint64_t rounds = test_count(5000, 200);
    for (uint64_t i = 0; i < rounds; i++) check_together(0, 0);
}

TEST(threads_that_ask_together_survive_failing_first_runs)
{
    const uint64_t rounds = test_count(5000, 100);
    for (uint64_t i = 0; i < rounds; i++) check_together(1 + (uint32_t)(i % 8), 0);
}

TEST(latecomers_sleep_until_a_slow_run_has_ended)
{
    for (uint32_t i = 0; i < 4; i++) check_together(i, 2000000);
}

TEST_MAIN
