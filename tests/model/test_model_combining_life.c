/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are released, plans that are evicted and memory that is reclaimed beside waiting
 * runs, batches and the thread that builds larger plans. Needs STREAMPOOL_BATCHING=always. */
#include <string.h>

#include <streampool/device.h>
#include <streampool/storage.h>

#include "base/thread.h"
#include "batch/batch_builder.h"
#include "combining_fixture.h"

enum { CALLERS = 31 };

/* Asks for larger plans of the model's plan of input_x(1), and does not wait for them. */
static void request_build(sp_model model)
{
    const sp_host_tensor x = input_x(1);
    combining_request(model, &x, 1);
}

/* ---- models ---- */

typedef struct waiting_run {
    sp_model model;
    small_row row;
    sp_status status;
    sp_thread thread;
} waiting_run;

static void run_waiting(void *arg)
{
    waiting_run *w = arg;
    const sp_host_tensor x = input_x(1);
    sp_host_tensor y = output_y((float *)(void *)w->row.bytes, SMALL_OUT);
    w->status = sp_model_run(w->model, &x, 1, &y, 1);
}

TEST(a_model_may_be_released_while_its_runs_wait)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static waiting_run runs[CALLERS];
    sp_future futures[CALLERS];
    small_row rows[CALLERS];
    for (uint64_t round = 0; round < test_count(200, 10); round++) {
        const sp_model model = small_model(NULL);
        const sp_host_tensor x = input_x(1);
        const small_row expected = small_run(model);
        CHECK(combining_prepare(model, &x, 1) > 0);
        held_slots held = slots_hold(model);
        for (uint32_t i = 0; i < CALLERS; i++) {
            runs[i] = (waiting_run){.model = model};
            CHECK_OK(sp_thread_create(&runs[i].thread, "caller", run_waiting, &runs[i]));
            CHECK_OK(small_submit(model, &rows[i], &futures[i]));
            slots_await(&held, 2 * i + 2);
        }
        CHECK_OK(sp_model_release(model));
        slots_give(&held);
        for (uint32_t i = 0; i < CALLERS; i++) {
            sp_thread_join(&runs[i].thread);
            CHECK_OK(runs[i].status);
            CHECK(small_is_same(&runs[i].row, &expected));
            CHECK_OK(sp_future_wait(futures[i]));
            CHECK(small_is_same(&rows[i], &expected));
            CHECK_OK(sp_future_release(futures[i]));
        }
    }
}

TEST(a_model_may_be_released_while_its_larger_plans_are_built)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t round = 0; round < test_count(500, 50); round++) {
        sp_model models[4];
        for (int i = 0; i < 4; i++) {
            models[i] = small_model(NULL);
            request_build(models[i]);
        }
        for (int i = 0; i < 4; i++) CHECK_OK(sp_model_release(models[i]));
    }
    sp__batch_builder_drain();
}

/* ---- plans ---- */

/* Shapes of 1, 2 and 3 rows. */
typedef struct evicting_load {
    sp_model model;
    uint32_t rounds;
    sp_atomic_u32 runs;
    float x[3][SMALL_IN * 3];
    float y[3][3][SMALL_OUT * 3]; /* by first row, and number of rows less one */
} evicting_load;

static void run_shapes(void *arg, uint32_t index)
{
    evicting_load *l = arg;
    float y[SMALL_OUT * 3];
    for (uint32_t i = 0; i < l->rounds; i++) {
        /* Long enough for larger plans of one row, the only ones that have them. */
        const uint32_t phase = sp_fetch_add_relaxed(&l->runs, 1) / 6000 % 4;
        const uint32_t rows = phase < 2 ? 1 : phase;
        const uint32_t at = index % 3;
        memset(y, 0xff, sizeof y);
        CHECK_OK(small_run_rows(l->model, l->x[at], rows, y));
        CHECK_EQ_MEM(y, l->y[at][rows - 1], rows * SMALL_OUT * sizeof *y);
    }
}

static void check_evictions(uint32_t max_plans)
{
    static evicting_load l;
    const sp_model_options options = {.max_plans = max_plans};
    l = (evicting_load){.model = small_model(&options),
                        .rounds = (uint32_t)test_count(20000, 1500)};
    for (uint32_t at = 0; at < 3; at++) {
        small_fill_rows(l.x[at], 7 * at, 3);
        for (uint32_t rows = 1; rows <= 3; rows++) {
            CHECK_OK(small_run_rows(l.model, l.x[at], rows, l.y[at][rows - 1]));
        }
    }
    test_threads(CALLERS, run_shapes, &l);
    sp__batch_builder_drain();
    const sp_model_info info = model_info_of(l.model);
    test_note("%u plans at most: %llu evictions, %llu batches", max_plans,
              (unsigned long long)info.plan_evictions, (unsigned long long)info.batches);
    CHECK(info.plan_evictions > 0);
    CHECK(info.plan_count <= max_plans);
    CHECK_OK(sp_model_release(l.model));
}

TEST(plans_are_evicted_beside_their_batches_and_builds)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    check_evictions(1);
    check_evictions(2);
}

typedef struct two_rows {
    sp_model model;
    sp_thread thread;
} two_rows;

static void run_two_rows(void *arg)
{
    const two_rows *t = arg;
    float x[2 * SMALL_IN], y[2 * SMALL_OUT];
    small_fill_rows(x, 0, 2);
    CHECK_OK(small_run_rows(t->model, x, 2, y));
}

/* The run of two rows waits for the only entry of the cache, until the batches have ended. */
TEST(a_plan_is_evicted_after_the_batches_that_use_it)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static waiting_run runs[CALLERS];
    const sp_model_options options = {.max_plans = 1};
    const sp_model model = small_model(&options);
    const sp_host_tensor x = input_x(1);
    const small_row expected = small_run(model);
    for (uint64_t round = 0; round < test_count(500, 20); round++) {
        two_rows other = {.model = model};
        const merged_runs before = merged_of(model);
        CHECK(combining_prepare(model, &x, 1) > 0);
        held_slots held = slots_hold(model);
        for (uint32_t i = 0; i < CALLERS; i++) {
            runs[i] = (waiting_run){.model = model};
            CHECK_OK(sp_thread_create(&runs[i].thread, "caller", run_waiting, &runs[i]));
        }
        slots_await(&held, CALLERS);
        CHECK_OK(sp_thread_create(&other.thread, "other", run_two_rows, &other));
        slots_give(&held);
        for (uint32_t i = 0; i < CALLERS; i++) {
            sp_thread_join(&runs[i].thread);
            CHECK_OK(runs[i].status);
            CHECK(small_is_same(&runs[i].row, &expected));
        }
        sp_thread_join(&other.thread);
        CHECK(merged_since(model, before).runs > 0);
    }
    const sp_model_info info = model_info_of(model);
    CHECK(info.plan_evictions >= test_count(500, 20));
    CHECK_OK(sp_model_release(model));
}

/* ---- memory of the device ---- */

static uint64_t allocated(sp_device device)
{
    sp_memory_stats stats = {0};
    CHECK_OK(sp_device_empty_cache(device));
    CHECK_OK(sp_device_get_memory_stats(device, &stats));
    return stats.reserved_bytes;
}

typedef struct squeezed_load {
    sp_model model;
    sp_device device;
    uint32_t rounds;
    small_row expected;
    sp_atomic_u32 running;
} squeezed_load;

enum { STORAGES = 512 };

/* Takes all memory of the device and frees it, in turns. */
static void squeeze(squeezed_load *l)
{
    static sp_storage storages[STORAGES];
    while (sp_load_acquire(&l->running) != 0) {
        uint32_t count = 0;
        while (count < STORAGES &&
               sp_storage_create(l->device, 1 << 20, NULL, &storages[count]) == SP_OK) {
            count++;
        }
        for (uint32_t i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
    }
}

static void run_or_squeeze(void *arg, uint32_t index)
{
    squeezed_load *l = arg;
    if (index == CALLERS) {
        squeeze(l);
        return;
    }
    for (uint32_t i = 0; i < l->rounds; i++) {
        small_row row;
        const sp_host_tensor x = input_x(1);
        sp_host_tensor y = output_y((float *)(void *)row.bytes, SMALL_OUT);
        memset(&row, 0xff, sizeof row);
        const sp_status status = sp_model_run(l->model, &x, 1, &y, 1);
        if (status != SP_OUT_OF_MEMORY) {
            CHECK_OK(status);
            CHECK(small_is_same(&row, &l->expected));
        }
    }
    sp_fetch_sub_acq_rel(&l->running, 1);
}

TEST(memory_of_batches_is_reclaimed_beside_them)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    squeezed_load l = {.rounds = (uint32_t)test_count(5000, 300), .running = {CALLERS}};
    CHECK_OK(sp_device_open("null", &l.device));
    const sp_model_options options = {.device = l.device};
    l.model = small_model(&options);
    l.expected = small_run(l.model);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(l.model, &x, 1) > 0);
    CHECK_OK(sp_device_set_memory_limit(l.device, allocated(l.device) + (8 << 20)));
    test_threads(CALLERS + 1, run_or_squeeze, &l);
    /* All of it can be had once no run uses it. */
    CHECK_OK(sp_device_set_memory_limit(l.device, 64 << 20));
    sp_storage all[STORAGES];
    uint32_t count = 0;
    while (sp_storage_create(l.device, 1 << 20, NULL, &all[count]) == SP_OK) count++;
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp_storage_release(all[i]));
    const small_row row = small_run(l.model);
    CHECK(small_is_same(&row, &l.expected));
    CHECK_OK(sp_model_release(l.model));
    CHECK_OK(sp_device_close(l.device));
}

/* Takes all memory of the device, in pieces of a batch's size and less. */
static uint32_t memory_take(sp_device device, sp_storage *storages, uint32_t most)
{
    uint32_t count = 0;
    for (uint64_t bytes = 1 << 20; bytes >= 64; bytes /= 4) {
        while (count < most && sp_storage_create(device, bytes, NULL, &storages[count]) == SP_OK) {
            count++;
        }
    }
    CHECK(count < most);
    return count;
}

/* So many submitted runs find others waiting when they get a slot. */
static void leads_run(sp_model model, uint32_t count)
{
    sp_future futures[CALLERS];
    small_row rows[CALLERS];
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i <= count; i++) CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    slots_give(&held);
    for (uint32_t i = 0; i <= count; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_OK(sp_future_release(futures[i]));
    }
}

/* The plan stays in use, so that its batches alone are reclaimed. */
TEST(batches_that_were_reclaimed_are_made_again_when_runs_wait_again)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static sp_storage storages[16384];
    const null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(model, &x, 1) > 0);
    const uint32_t all = combining_batches(model);
    CHECK_OK(sp_device_set_memory_limit(f.device, allocated(f.device) + (1 << 20)));
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    const uint32_t count = memory_take(f.device, storages, SP_COUNT_OF(storages));
    CHECK_EQ_U64(combining_batches(model), 0);
    /* Asked for, and given up without memory. */
    combining_request(model, &x, 1);
    sp__batch_builder_drain();
    CHECK_EQ_U64(combining_batches(model), 0);
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
    /* Not by the first runs that find none. */
    merged_runs before = merged_of(model);
    leads_run(model, CALLERS - 1);
    sp__batch_builder_drain();
    CHECK_EQ_U64(combining_batches(model), 0);
    CHECK_EQ_U64(merged_since(model, before).runs, 0);
    combining_request(model, &x, 1);
    sp__batch_builder_drain();
    CHECK_EQ_U64(combining_batches(model), all);
    before = merged_of(model);
    leads_run(model, CALLERS - 1);
    CHECK(merged_since(model, before).runs > 0);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

TEST_MAIN
