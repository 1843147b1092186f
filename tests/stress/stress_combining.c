/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads run and submit three models beside each other, with rows that fail at random: each
 * accepted run ends once, as it would alone. Needs STREAMPOOL_BATCHING=always to merge them all. */
#include "stress.h"

#include <string.h>

#include <streampool/future.h>

#include "batch/batch_builder.h"
#include "combining_fixture.h"

enum { THREADS = 31, MODELS = 3, BURST = 12, WIDTH = 4, MEMORY = 6, ROWS = 32 };

typedef struct storm {
    sp_model table, small, wide;
    float expected[ROWS][SMALL_OUT]; /* of the small model, by row */
    uint64_t runs;                   /* of each thread */
    sp_atomic_u64 accepted, done, failed, called;
} storm;

/* A run: its input, and room for what it computes. */
typedef struct request {
    storm *all;
    uint32_t model;
    int64_t index; /* of the table; negative or too large: it fails */
    float x[SMALL_IN], y[MEMORY];
    uint32_t width, row;
    sp_atomic_u32 calls; /* of its callback */
    sp_future future;
} request;

static void request_draw(request *r, storm *all, uint64_t *random)
{
    *r = (request){.all = all, .model = random_next(random) % MODELS};
    r->index = (int64_t)(random_next(random) % TABLE_ROWS);
    if (random_next(random) % 64 == 0) r->index = TABLE_ROWS + (int64_t)(random_next(random) % 9);
    r->width = 1 + random_next(random) % WIDTH;
    for (int i = 0; i < SMALL_IN; i++) r->x[i] = -(float)(random_next(random) % 512) * 0.0078125f;
    r->row = random_next(random) % ROWS;
    if (r->model == 1) small_fill_rows(r->x, r->row, 1);
    memset(r->y, 0xff, sizeof r->y);
}

static sp_host_tensor request_input(const request *r)
{
    if (r->model == 0) return table_input(&r->index);
    const uint32_t width = r->model == 1 ? SMALL_IN : r->width;
    return (sp_host_tensor){.data = (void *)(uintptr_t)r->x,
                            .bytes = width * sizeof *r->x,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {1, width}};
}

static sp_model request_model(const request *r)
{
    return r->model == 0 ? r->all->table : r->model == 1 ? r->all->small : r->all->wide;
}

static bool request_is_right(const request *r)
{
    if (r->model == 0) return table_is_right(r->index, r->y);
    if (r->model == 1)
        return memcmp((const void *)r->y, (const void *)r->all->expected[r->row], SMALL_OUT * 4) ==
               0;
    for (uint32_t i = 0; i < r->width; i++) {
        const float expected = -r->x[i] + 0.0f;
        if (memcmp((const void *)&r->y[i], (const void *)&expected, sizeof expected) != 0)
            return false;
    }
    return true;
}

static void request_end(request *r, sp_status status)
{
    const bool fails = r->model == 0 && r->index >= TABLE_ROWS;
    if (fails) {
        CHECK_STATUS(status, SP_INVALID);
        CHECK_MESSAGE("(Gather)");
        sp_fetch_add_relaxed(&r->all->failed, (uint64_t)1);
    } else {
        CHECK_OK(status);
        CHECK(request_is_right(r));
        sp_fetch_add_relaxed(&r->all->done, (uint64_t)1);
    }
}

static void request_run(request *r)
{
    const sp_host_tensor x = request_input(r);
    sp_host_tensor y = output_y(r->y, MEMORY);
    sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
    request_end(r, sp_model_run(request_model(r), &x, 1, &y, 1));
}

static void count_call(void *ctx, sp_status status)
{
    request *r = ctx;
    (void)status;
    sp_fetch_add_relaxed(&r->all->called, (uint64_t)1);
    sp_fetch_add_release(&r->calls, 1); /* the last access */
}

/* Some are only known by their callback, and all have one. */
static void requests_submit(request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        request *r = &requests[i];
        const sp_host_tensor x = request_input(r);
        sp_host_tensor y = output_y(r->y, MEMORY);
        CHECK_OK(sp_model_submit(request_model(r), &x, 1, &y, 1, &r->future));
        CHECK_OK(sp_future_on_complete(r->future, count_call, r));
        sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
    }
    for (uint32_t i = 0; i < count; i++) {
        request *r = &requests[i];
        if (i % 3 == 2) await_count(&r->calls, 1);
        request_end(r, sp_future_wait(r->future));
        CHECK_OK(sp_future_release(r->future));
        await_count(&r->calls, 1);
        CHECK_EQ_U64(sp_load_acquire(&r->calls), 1);
    }
}

static void run_storm(void *arg, uint32_t index)
{
    storm *all = arg;
    uint64_t random = random_seed(index);
    request requests[BURST];
    for (uint64_t i = 0; i < all->runs;) {
        const uint32_t count = random_next(&random) % 4 == 0 ? 1 + random_next(&random) % BURST : 0;
        for (uint32_t k = 0; k < BURST; k++) request_draw(&requests[k], all, &random);
        if (count > 0) requests_submit(requests, count);
        else request_run(&requests[0]);
        i += count > 0 ? count : 1;
        if (random_next(&random) % 16 == 0) sp_thread_yield();
    }
}

static void prepare(const storm *all)
{
    const int64_t row = 0;
    const sp_host_tensor index = table_input(&row);
    CHECK(combining_prepare(all->table, &index, 1) > 0);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(all->small, &x, 1) > 0);
    for (int64_t width = 1; width <= WIDTH; width++) {
        sp_host_tensor wide = x;
        wide.shape[1] = width;
        wide.bytes = (uint64_t)width * sizeof(float);
        CHECK(combining_prepare(all->wide, &wide, 1) > 0);
    }
}

TEST(every_accepted_run_ends_once_as_it_would_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static storm all;
    all = (storm){.table = table_model(NULL),
                  .small = small_model(NULL),
                  .wide = width_model(),
                  .runs = test_count(10000000, 60000) / THREADS};
    for (uint32_t row = 0; row < ROWS; row++) {
        float x[SMALL_IN];
        small_fill_rows(x, row, 1);
        CHECK_OK(small_run_rows(all.small, x, 1, all.expected[row]));
    }
    prepare(&all);
    test_threads(THREADS, run_storm, &all);
    const sp_model models[MODELS] = {all.table, all.small, all.wide};
    merged_runs merged = {0};
    for (int i = 0; i < MODELS; i++) {
        const merged_runs one = merged_of(models[i]);
        merged.runs += one.runs;
        merged.batches += one.batches;
        CHECK(one.runs > 0);
        CHECK_OK(sp_model_release(models[i]));
    }
    const uint64_t accepted = sp_load_relaxed(&all.accepted);
    CHECK_EQ_U64(sp_load_relaxed(&all.done) + sp_load_relaxed(&all.failed), accepted);
    CHECK(sp_load_relaxed(&all.failed) > 0 || accepted < 5000);
    test_note("%llu runs, %llu failed, %llu in %llu batches", (unsigned long long)accepted,
              (unsigned long long)sp_load_relaxed(&all.failed), (unsigned long long)merged.runs,
              (unsigned long long)merged.batches);
}

TEST_MAIN
