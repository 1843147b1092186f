/* SPDX-License-Identifier: Apache-2.0 */
/* Futures that outlive their handles and their models, whose callbacks are still called. The end of
 * devices and of the library is in test_futures_process.c. */
#include <streampool/null_device.h>
#include <streampool/storage.h>

#include <string.h>

#include "base/clock.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "run_fixture.h"

enum { THREADS = 31 };

/* ---- callbacks ---- */

typedef struct called {
    sp_atomic_u32 count;
    sp_status expected;
} called;

static void count_call(void *ctx, sp_status status)
{
    called *c = ctx;
    CHECK_STATUS(status, c->expected);
    sp_fetch_add_acq_rel(&c->count, 1);
}

TEST(a_callback_is_called_once_before_and_after_the_end_and_without_a_handle)
{
    const sp_model model = small_model(NULL);
    called c = {.expected = SP_OK};
    uint32_t wanted = 0;
    for (uint64_t round = 0; round < test_count(2000, 100); round++) {
        small_row out;
        sp_future future;
        CHECK_OK(small_submit(model, &out, &future));
        for (int i = 0; i < 3; i++) CHECK_OK(sp_future_on_complete(future, count_call, &c));
        if (round % 2 == 0) CHECK_OK(sp_future_wait(future));
        CHECK_OK(sp_future_on_complete(future, count_call, &c));
        CHECK_OK(sp_future_release(future));
        wanted += 4;
        await_count(&c.count, wanted); /* `out` belongs to the run until then */
    }
    CHECK_EQ_U64(sp_load_relaxed(&c.count), wanted);
    CHECK_OK(sp_model_release(model));
}

static void expect_failure(void *ctx, sp_status status)
{
    CHECK_STATUS(status, SP_FAILED);
    CHECK_MESSAGE("injected fault");
    sp_fetch_add_acq_rel((sp_atomic_u32 *)ctx, 1);
}

TEST(a_callback_is_told_of_a_failure)
{
    sp_model_options options = {0};
    CHECK_OK(sp_device_open("null", &options.device));
    const sp_model model = small_model(&options);
    small_run(model);
    sp_atomic_u32 count = {0};
    small_row out;
    sp_future future;
    CHECK_OK(sp_null_fail_command(options.device, 1));
    CHECK_OK(small_submit(model, &out, &future));
    CHECK_OK(sp_future_on_complete(future, expect_failure, &count));
    CHECK_STATUS(sp_future_wait(future), SP_FAILED);
    CHECK_OK(sp_future_on_complete(future, expect_failure, &count));
    CHECK_OK(sp_future_release(future));
    await_count(&count, 2);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

/* Submits the next run at the end of the previous one; the chain owns the model. */
typedef struct chain {
    sp_model model;
    small_row out, expected;
    uint32_t left;
    sp_atomic_u32 is_through;
} chain;

static void submit_next(void *ctx, sp_status status)
{
    chain *c = ctx;
    CHECK_OK(status);
    CHECK_EQ_MEM(&c->out, &c->expected, sizeof c->out);
    if (c->left-- == 0) {
        sp_store_release(&c->is_through, 1);
        return;
    }
    sp_future future;
    memset(&c->out, 0xff, sizeof c->out);
    CHECK_OK(small_submit(c->model, &c->out, &future));
    CHECK_OK(sp_future_on_complete(future, submit_next, c));
    CHECK_OK(sp_future_release(future));
}

TEST(a_callback_may_submit_the_next_run)
{
    const sp_model model = small_model(NULL);
    static chain chains[4];
    for (int i = 0; i < 4; i++) {
        chains[i] = (chain){.model = model, .left = (uint32_t)test_count(5000, 200)};
        chains[i].expected = chains[i].out = small_run(model);
        submit_next(&chains[i], SP_OK);
    }
    for (int i = 0; i < 4; i++) await_count(&chains[i].is_through, 1);
    CHECK_OK(sp_model_release(model));
}

/* ---- models released first ---- */

static uint64_t bytes_in_use(void)
{
    sp_memory_stats stats;
    CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &stats));
    return stats.in_use_bytes;
}

/* The last holds of models are dropped by threads of the library, after their runs are done. */
static void await_no_model(void)
{
    const uint64_t deadline = sp_clock_deadline(INT64_C(20000000000));
    sp__batch_builder_drain();
    while (bytes_in_use() > 0 && sp_clock_now() < deadline) sp_thread_yield();
    CHECK_EQ_U64(bytes_in_use(), 0);
}

typedef struct crowd {
    small_row expected;
    uint32_t rounds;
} crowd;

static void release_after_submit(void *arg, uint32_t index)
{
    const crowd *all = arg;
    for (uint32_t i = 0; i < all->rounds; i++) {
        const sp_model model = small_model(NULL);
        small_row out[3];
        sp_future futures[3];
        memset(out, 0xff, sizeof out);
        for (int k = 0; k < 3; k++) CHECK_OK(small_submit(model, &out[k], &futures[k]));
        CHECK_OK(sp_model_release(model));
        CHECK_STATUS(sp_model_retain(model), SP_INVALID);
        for (int k = 0; k < 3; k++) {
            CHECK_OK(index % 2 == 0 ? sp_future_wait(futures[k])
                                    : sp_future_wait_for(futures[k], INT64_C(60000000000)));
            CHECK_EQ_MEM(&out[k], &all->expected, sizeof out[k]);
            CHECK_OK(sp_future_release(futures[k]));
        }
    }
}

TEST(models_released_right_after_the_submit_end_with_their_runs)
{
    const sp_model model = small_model(NULL);
    crowd all = {.expected = small_run(model), .rounds = (uint32_t)test_count(100, 3)};
    CHECK_OK(sp_model_release(model));
    test_threads(THREADS, release_after_submit, &all);
    await_no_model();
}

/* ---- released futures ---- */

static void run_and_drop(void *arg, uint32_t index)
{
    const crowd *all = arg;
    const sp_model model = small_model(NULL);
    (void)index;
    for (uint32_t i = 0; i < all->rounds; i++) {
        small_row out[4];
        called c = {.expected = SP_OK};
        for (int k = 0; k < 4; k++) {
            sp_future future;
            CHECK_OK(small_submit(model, &out[k], &future));
            CHECK_OK(sp_future_on_complete(future, count_call, &c));
            CHECK_OK(sp_future_release(future));
        }
        const small_row mine = small_run(model); /* slots are returned without a wait */
        CHECK_EQ_MEM(&mine, &all->expected, sizeof mine);
        await_count(&c.count, 4);
        for (int k = 0; k < 4; k++) CHECK_EQ_MEM(&out[k], &all->expected, sizeof out[k]);
    }
    CHECK_OK(sp_model_release(model));
}

TEST(futures_that_nobody_waits_for_keep_nobody_from_running)
{
    const sp_model model = small_model(NULL);
    crowd all = {.expected = small_run(model), .rounds = (uint32_t)test_count(300, 10)};
    test_threads(8, run_and_drop, &all);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
