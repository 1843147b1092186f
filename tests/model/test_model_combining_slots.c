/* SPDX-License-Identifier: Apache-2.0 */
/* Batches on a device with memory of its own: a plan with larger plans has run slots of its own,
 * and runs go through staging memory. Needs STREAMPOOL_BATCHING=always. */
#include <string.h>

#include <streampool/device.h>

#include "base/thread.h"
#include "batch/batch_builder.h"
#include "batch/batch_plans.h"
#include "combining_fixture.h"
#include "support/own_memory.h"

enum { THREADS = 31, INPUTS = 8, BURST = 6 };

typedef struct load {
    sp_model model;
    uint64_t rounds;
    float expected[THREADS * INPUTS][SMALL_IN];
} load;

static sp_host_tensor rows_of(const float *x, int64_t rows)
{
    return (sp_host_tensor){.data = (void *)(uintptr_t)x,
                            .bytes = (uint64_t)rows * SMALL_IN * sizeof *x,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {rows, SMALL_IN}};
}

static sp_status rows_run(sp_model model, const float *x, int64_t rows, float *y)
{
    const sp_host_tensor in = rows_of(x, rows);
    sp_host_tensor out = output_y(y, (uint64_t)rows * SMALL_IN);
    return sp_model_run(model, &in, 1, &out, 1);
}

static void row_submit(sp_model model, const float *x, float *y, sp_future *future)
{
    const sp_host_tensor in = rows_of(x, 1);
    sp_host_tensor out = output_y(y, SMALL_IN);
    CHECK_OK(sp_model_submit(model, &in, 1, &out, 1, future));
}

static void run_load(void *arg, uint32_t index)
{
    const load *l = arg;
    float x[SMALL_IN], y[BURST][SMALL_IN];
    for (uint64_t i = 0; i < l->rounds; i++) {
        const uint32_t row = index * INPUTS + i % INPUTS;
        small_fill_rows(x, row, 1);
        memset(y, 0xff, sizeof y);
        if (i % 5 != 0) {
            CHECK_OK(rows_run(l->model, x, 1, y[0]));
            CHECK_EQ_MEM(y[0], l->expected[row], sizeof y[0]);
            continue;
        }
        sp_future futures[BURST];
        for (int k = 0; k < BURST; k++) row_submit(l->model, x, y[k], &futures[k]);
        for (int k = 0; k < BURST; k++) {
            while (i % 2 == 0 && sp_future_query(futures[k]) == SP_NOT_READY) sp_thread_yield();
            CHECK_OK(sp_future_wait(futures[k]));
            CHECK_EQ_MEM(y[k], l->expected[row], sizeof y[k]);
            CHECK_OK(sp_future_release(futures[k]));
        }
    }
}

static void load_init(load *l, const sp_model_options *options)
{
    l->model = plain_model(options);
    for (uint32_t row = 0; row < THREADS * INPUTS; row++) {
        float x[SMALL_IN];
        small_fill_rows(x, row, 1);
        CHECK_OK(rows_run(l->model, x, 1, l->expected[row]));
    }
}

static bool has_own_slots(sp_model model)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    const sp_batch_plans *plans = entry != NULL ? sp__batch_plans_of(entry) : NULL;
    const bool has = plans != NULL && plans->own_slots != NULL;
    if (entry != NULL) sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    return has;
}

/* Before, while and after the plan gets its slots. */
TEST(runs_on_a_device_with_its_own_memory_are_merged_with_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static load l;
    const sp_device device = open_own_memory(false);
    const sp_model_options options = {.device = device};
    l = (load){.rounds = test_count(5000, 100)};
    load_init(&l, &options);
    test_threads(THREADS, run_load, &l);
    const sp_host_tensor x = input_x(1);
    combining_request(l.model, &x, 1);
    test_threads(THREADS, run_load, &l);
    sp__batch_builder_drain();
    CHECK(combining_buckets(l.model) > 0);
    CHECK(has_own_slots(l.model));
    const merged_runs before = merged_of(l.model);
    test_threads(THREADS, run_load, &l);
    const merged_runs merged = merged_since(l.model, before);
    test_note("%llu runs in %llu batches", (unsigned long long)merged.runs,
              (unsigned long long)merged.batches);
    CHECK(merged.runs > 0);
    CHECK_OK(sp_model_release(l.model));
    CHECK_OK(sp_device_close(device));
}

/* A plan ends, with its slots, as soon as the last run has released it. */
TEST(a_model_is_released_with_the_slots_of_its_plans)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_device device = open_own_memory(false);
    const sp_model_options options = {.device = device, .max_plans = 1};
    for (uint64_t round = 0; round < test_count(300, 30); round++) {
        sp_future futures[THREADS];
        float x[2 * SMALL_IN], y[2 * SMALL_IN], rows[THREADS][SMALL_IN], expected[SMALL_IN];
        const sp_model model = plain_model(&options);
        small_fill_rows(x, 0, 2);
        CHECK_OK(rows_run(model, x, 1, expected));
        CHECK(combining_build(model) > 0);
        for (int i = 0; i < THREADS; i++) row_submit(model, x, rows[i], &futures[i]);
        /* Two rows need the plan's entry of the cache. */
        if (round % 2 == 0) CHECK_OK(rows_run(model, x, 2, y));
        CHECK_OK(sp_model_release(model));
        for (int i = 0; i < THREADS; i++) {
            CHECK_OK(sp_future_wait(futures[i]));
            CHECK_EQ_MEM(rows[i], expected, sizeof expected);
            CHECK_OK(sp_future_release(futures[i]));
        }
    }
    CHECK_OK(sp_device_close(device));
}

TEST_MAIN
