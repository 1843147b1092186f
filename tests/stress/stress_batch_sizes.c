/* SPDX-License-Identifier: Apache-2.0 */
/* Threads run and submit models whose batches are made when they are wanted, while plans and
 * batches are reclaimed, memory is short and models end: each run has the bits of a run alone. */
#include "stress.h"

#include <string.h>

#include <streampool/future.h>
#include <streampool/storage.h>

#include "batch/batch_builder.h"
#include "combining_fixture.h"
#include "exec/model_object.h"

enum { THREADS = 13, MODELS = 3, BURST = 12 };

typedef struct world {
    sp_atomic_u64 models[MODELS];
    sp_atomic_u32 left; /* callers */
    uint64_t runs;
    sp_atomic_u64 done, refused, batches, merged;
} world;

static sp_model model_of(world *w, uint32_t i)
{
    return (sp_model){sp_load_acquire(&w->models[i])};
}

static sp_host_tensor row_tensor(float *x)
{
    return (sp_host_tensor){.data = x,
                            .bytes = PRODUCTS_WIDTH * sizeof *x,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {1, PRODUCTS_WIDTH}};
}

static void end_check(world *w, sp_status status, const float *x, const float *y)
{
    if (status == SP_OK) {
        CHECK(memcmp((const void *)x, (const void *)y, PRODUCTS_WIDTH * sizeof *x) == 0);
        sp_fetch_add_relaxed(&w->done, (uint64_t)1);
    } else {
        CHECK(status == SP_INVALID || status == SP_OUT_OF_MEMORY || status == SP_CLOSED);
        sp_fetch_add_relaxed(&w->refused, (uint64_t)1);
    }
}

static void call(world *w, uint64_t *random)
{
    float x[BURST][PRODUCTS_WIDTH], y[BURST][PRODUCTS_WIDTH];
    sp_future futures[BURST] = {{0}};
    sp_status statuses[BURST];
    const uint32_t model = random_next(random) % MODELS;
    const uint32_t count = random_next(random) % 3 == 0 ? BURST : 1;
    for (uint32_t i = 0; i < count; i++) {
        for (int k = 0; k < PRODUCTS_WIDTH; k++) x[i][k] = (float)(random_next(random) % 1024);
        const sp_host_tensor in = row_tensor(x[i]);
        sp_host_tensor out = row_tensor(y[i]);
        out.capacity = sizeof y[i];
        memset(y[i], 0xff, sizeof y[i]);
        statuses[i] = count == 1
                          ? sp_model_run(model_of(w, model), &in, 1, &out, 1)
                          : sp_model_submit(model_of(w, model), &in, 1, &out, 1, &futures[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (count > 1 && statuses[i] == SP_OK) {
            statuses[i] = sp_future_wait(futures[i]);
            CHECK_OK(sp_future_release(futures[i]));
        }
        end_check(w, statuses[i], x[i], y[i]);
    }
}

static void model_replace(world *w, uint32_t i)
{
    const sp_model old = model_of(w, i);
    const merged_runs of = merged_of(old);
    sp_fetch_add_relaxed(&w->batches, of.batches);
    sp_fetch_add_relaxed(&w->merged, of.runs);
    const sp_model next = products_model();
    sp_store_release(&w->models[i], next.bits);
    CHECK_OK(sp_model_release(old));
}

static void disturb(world *w, uint64_t *random)
{
    sp_memory_stats stats = {0};
    sp_rt_model *model = sp__model_hold(model_of(w, 0));
    switch (random_next(random) % 8) {
    case 0:
    case 1:
        if (model != NULL) (void)sp__models_reclaim(model->device);
        break;
    case 2:
        CHECK_OK(sp_device_get_memory_stats((sp_device){0}, &stats));
        CHECK_OK(sp_device_set_memory_limit((sp_device){0}, stats.reserved_bytes));
        break;
    case 3:
        CHECK_OK(sp_device_set_memory_limit((sp_device){0}, 0));
        break;
    case 4:
        CHECK_OK(sp_device_empty_cache((sp_device){0}));
        break;
    case 5:
        if (random_next(random) % 8 == 0) model_replace(w, random_next(random) % MODELS);
        break;
    default:
        for (int i = 0; i < 1000; i++) sp_thread_yield();
        break;
    }
    if (model != NULL) sp__model_drop(model);
}

static void work(void *arg, uint32_t index)
{
    world *w = arg;
    uint64_t random = random_seed(index);
    if (index == 0) {
        while (sp_load_acquire(&w->left) > 0) disturb(w, &random);
        return;
    }
    for (uint64_t i = 0; i < w->runs; i++) call(w, &random);
    sp_fetch_sub_release(&w->left, 1);
}

TEST(runs_are_right_while_batches_come_and_go)
{
    static world w;
    w.runs = test_count(4000000, 40000) / THREADS;
    sp_store_relaxed(&w.left, THREADS - 1);
    for (uint32_t i = 0; i < MODELS; i++) {
        const sp_model model = products_model();
        sp_store_relaxed(&w.models[i], model.bits);
    }
    test_threads(THREADS, work, &w);
    CHECK_OK(sp_device_set_memory_limit((sp_device){0}, 0));
    for (uint32_t i = 0; i < MODELS; i++) {
        model_replace(&w, i);
        CHECK_OK(sp_model_release(model_of(&w, i)));
    }
    sp__batch_builder_drain();
    CHECK(sp_load_relaxed(&w.done) > 0);
    test_note("%llu runs, %llu refused, %llu in %llu batches",
              (unsigned long long)sp_load_relaxed(&w.done),
              (unsigned long long)sp_load_relaxed(&w.refused),
              (unsigned long long)sp_load_relaxed(&w.merged),
              (unsigned long long)sp_load_relaxed(&w.batches));
}

TEST_MAIN
