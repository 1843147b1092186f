/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a batch that fail: only the guilty ones do, with their own message. And what happens
 * without memory. Needs STREAMPOOL_BATCHING=always. */
#include <stdio.h>
#include <string.h>

#include <streampool/device.h>
#include <streampool/storage.h>

#include "base/heap.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "combining_fixture.h"
#include "device/null/null.h"
#include "runtime/runtime_state.h"
#include "support/malloc_count.h"

enum { CALLERS = 31 };

/* ---- a failing row ---- */

typedef struct row_caller {
    sp_model model;
    int64_t index;
    float y[TABLE_WIDTH];
    sp_thread thread;
    sp_future future;
} row_caller;

static bool is_bad(int64_t index)
{
    return index < -TABLE_ROWS || index >= TABLE_ROWS;
}

/* The status that the caller has got, with its message if it is an error. */
static void row_check(const row_caller *c, sp_status status)
{
    if (is_bad(c->index)) {
        CHECK_STATUS(status, SP_INVALID);
        CHECK_MESSAGE("(Gather)");
    } else {
        CHECK_OK(status);
        CHECK(table_is_right(c->index, c->y));
    }
}

static void row_main(void *arg)
{
    row_caller *c = arg;
    const sp_host_tensor x = table_input(&c->index);
    sp_host_tensor y = output_y(c->y, TABLE_WIDTH);
    row_check(c, sp_model_run(c->model, &x, 1, &y, 1));
    if (!is_bad(c->index)) CHECK_EQ_STR(sp_last_error(), "");
    CHECK_OK(sp_device_synchronize((sp_device){0})); /* the run alone has reported its failure */
}

static void row_submit(row_caller *c)
{
    const sp_host_tensor x = table_input(&c->index);
    sp_host_tensor y = output_y(c->y, TABLE_WIDTH);
    CHECK_OK(sp_model_submit(c->model, &x, 1, &y, 1, &c->future));
}

static const int64_t no_row = 0;

static sp_model table_begin(void)
{
    const sp_model model = table_model(NULL);
    const sp_host_tensor x = table_input(&no_row);
    CHECK_EQ_U64(combining_prepare(model, &x, 1), 11);
    return model;
}

/* All callers wait, one slot is given back; bit k of `submits` says whether caller k submits. */
static void rows_run(sp_model model, uint32_t bad, uint32_t submits)
{
    static row_caller callers[CALLERS];
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < CALLERS; i++) {
        row_caller *c = &callers[i];
        *c = (row_caller){.model = model, .index = i % TABLE_ROWS};
        memset(c->y, 0xff, sizeof c->y);
        if ((bad >> i & 1) != 0) c->index = TABLE_ROWS + i;
        if ((submits >> i & 1) != 0) row_submit(c);
        else CHECK_OK(sp_thread_create(&c->thread, "caller", row_main, c));
        slots_await(&held, i + 1);
    }
    slots_give(&held);
    for (uint32_t i = 0; i < CALLERS; i++) {
        row_caller *c = &callers[i];
        if ((submits >> i & 1) != 0) {
            row_check(c, sp_future_wait(c->future));
            CHECK_OK(sp_future_release(c->future));
        } else {
            sp_thread_join(&c->thread);
        }
    }
}

TEST(of_a_batch_only_the_rows_that_fail_alone_fail)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static const uint32_t submits[] = {0, 0x7fffffff, 0x55555555, 0x2aaaaaaa, 0x0f0f0f0f};
    const sp_model model = table_begin();
    const uint64_t rounds = test_count(300, 8);
    data_random random = {.state = 3};
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint32_t k = 0; k < SP_COUNT_OF(submits); k++) {
            rows_run(model, 1u << (round % CALLERS), submits[k]);
            rows_run(model, (uint32_t)(data_next(&random) & data_next(&random)), submits[k]);
        }
    }
    rows_run(model, 0x7fffffff, 0x55555555); /* all of them */
    CHECK(merged_of(model).runs > 0);
    CHECK_OK(sp_model_release(model));
}

/* ---- faults of the device ---- */

typedef struct faulty_load {
    sp_model model;
    uint32_t rounds;
    sp_atomic_u32 failed, right;
} faulty_load;

enum { INPUTS = 8 }; /* of each thread: no run finds its own output of the run before */

static void run_with_faults(void *arg, uint32_t index)
{
    faulty_load *load = arg;
    float x[INPUTS][SMALL_IN], expected[INPUTS][SMALL_OUT], y[SMALL_OUT];
    for (uint32_t k = 0; k < INPUTS; k++) {
        small_fill_rows(x[k], index * INPUTS + k, 1);
        while (small_run_rows(load->model, x[k], 1, expected[k]) != SP_OK) {
        }
    }
    for (uint32_t i = 0; i < load->rounds; i++) {
        const uint32_t k = i % INPUTS;
        memset(y, 0xff, sizeof y);
        const sp_status status = small_run_rows(load->model, x[k], 1, y);
        if (status == SP_OK) {
            CHECK_EQ_MEM(y, expected[k], sizeof y);
            sp_fetch_add_relaxed(&load->right, 1);
        } else {
            CHECK_STATUS(status, SP_FAILED);
            CHECK_MESSAGE("injected fault");
            sp_fetch_add_relaxed(&load->failed, 1);
        }
    }
}

TEST(faults_of_the_device_in_a_batch_fail_no_run_that_is_right_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    null_fixture f = null_open();
    faulty_load load = {.model = small_model(&f.options),
                        .rounds = (uint32_t)test_count(3000, 150)};
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(load.model, &x, 1) > 0);
    sp__null_fail_randomly(f.dev, 60, 11);
    test_threads(CALLERS, run_with_faults, &load);
    sp__null_fail_randomly(f.dev, 0, 0);
    const uint32_t failed = sp_load_relaxed(&load.failed);
    test_note("%u runs failed, %u were right; %llu were in batches", failed,
              sp_load_relaxed(&load.right), (unsigned long long)merged_of(load.model).runs);
    CHECK(failed > 0);
    CHECK(failed < CALLERS * load.rounds / 4); /* of their own faults only */
    CHECK(merged_of(load.model).runs > 0);
    CHECK_OK(sp_model_release(load.model));
    CHECK_OK(sp_device_close(f.device));
}

static void run_lost(void *arg, uint32_t index)
{
    faulty_load *load = arg;
    float x[SMALL_IN], y[SMALL_OUT];
    small_fill_rows(x, index, 1);
    sp_status status = SP_OK;
    while (status == SP_OK) {
        status = small_run_rows(load->model, x, 1, y);
        if (status == SP_OK) sp_fetch_add_relaxed(&load->right, 1);
    }
    CHECK_STATUS(status, SP_DEVICE_LOST);
    CHECK_MESSAGE("injected loss");
}

typedef struct losing_load {
    faulty_load load;
    sp_dev *dev;
} losing_load;

static void run_or_lose(void *arg, uint32_t index)
{
    losing_load *l = arg;
    if (index < CALLERS) {
        run_lost(&l->load, index);
        return;
    }
    await_count(&l->load.right, 200);
    sp__null_lose(l->dev);
}

TEST(a_device_that_is_lost_fails_all_runs_of_its_batches)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    for (uint64_t i = 0; i < test_count(20, 3); i++) {
        null_fixture f = null_open();
        losing_load l = {.load = {.model = small_model(&f.options)}, .dev = f.dev};
        const sp_host_tensor x = input_x(1);
        CHECK(combining_prepare(l.load.model, &x, 1) > 0);
        test_threads(CALLERS + 1, run_or_lose, &l);
        CHECK_OK(sp_model_release(l.load.model));
        CHECK_OK(sp_device_close(f.device));
    }
}

/* ---- no memory ---- */

/* The allocation after `skip` others fails; false: there are fewer. */
static bool build_with_failure(uint64_t skip)
{
    float x[SMALL_IN], expected[SMALL_OUT], y[SMALL_OUT] = {0};
    char last_error[512];
    const sp_model model = small_model(NULL);
    snprintf(last_error, sizeof last_error, "%s", sp_last_error());
    small_fill_rows(x, 1, 1);
    CHECK_OK(small_run_rows(model, x, 1, expected));
    sp__batch_builder_drain();
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    sp_heap_fail_after(skip);
    sp__batch_builder_request(held, entry);
    sp__batch_builder_drain();
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    CHECK_EQ_STR(sp_last_error(), last_error);
    held_slots slots = slots_hold(model);
    sp_future futures[5];
    small_row rows[5];
    for (int i = 0; i < 5; i++) CHECK_OK(small_submit(model, &rows[i], &futures[i]));
    slots_give(&slots);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK(small_is_same(&rows[i], &rows[0]));
        CHECK_OK(sp_future_release(futures[i]));
    }
    CHECK_OK(small_run_rows(model, x, 1, y));
    CHECK_EQ_MEM(y, expected, sizeof y);
    CHECK_OK(sp_model_release(model));
    return has_failed;
}

TEST(every_allocation_of_larger_plans_may_fail)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const uint64_t step = test_scale() < 1 ? 7 : 1;
    uint64_t skip = 0;
    while (build_with_failure(skip)) skip += step;
    test_note("%llu allocations failed one by one", (unsigned long long)(skip / step));
    CHECK(skip > 100);
}

/* After a failed build the plan's next runs that wait ask again. */
TEST(a_build_without_memory_is_tried_again)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    float y[SMALL_OUT];
    CHECK_OK(small_run_rows(model, x.data, 1, y));
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    sp_heap_fail_after(1); /* the job's is the first */
    sp__batch_builder_request(held, entry);
    sp__batch_builder_drain();
    CHECK(sp_heap_has_failed());
    sp_heap_fail_after(UINT64_MAX);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    CHECK_EQ_U64(combining_buckets(model), 0);
    CHECK(combining_prepare(model, &x, 1) > 0);
    CHECK_OK(sp_model_release(model));
}

/* The request that follows from waiting runs: it is made again. */
TEST(plans_without_larger_ones_for_lack_of_memory_get_them_later)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const sp_host_tensor x = input_x(1);
    sp_memory_stats stats = {0};
    (void)small_run(model);
    CHECK_OK(sp_device_empty_cache(f.device));
    CHECK_OK(sp_device_get_memory_stats(f.device, &stats));
    CHECK_OK(sp_device_set_memory_limit(f.device, stats.reserved_bytes));
    static sp_storage storages[16384];
    sp_rt_model *held = sp__model_hold(model); /* the plan stays, with one context */
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    uint32_t count = 0;
    while (count < SP_COUNT_OF(storages) &&
           sp_storage_create(f.device, 64, NULL, &storages[count]) == SP_OK) {
        count++;
    }
    CHECK(count < SP_COUNT_OF(storages));
    CHECK_EQ_U64(combining_prepare(model, &x, 1), 0);
    for (uint32_t i = 0; i < count; i++) CHECK_OK(sp_storage_release(storages[i]));
    CHECK_OK(sp_device_set_memory_limit(f.device, 64 << 20));
    CHECK(combining_prepare(model, &x, 1) > 0);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

/* ---- merged runs allocate nothing ---- */

typedef struct counted_load {
    sp_model model;
    uint32_t rounds;
    malloc_span span;
} counted_load;

static void run_counted(void *arg, uint32_t index)
{
    counted_load *load = arg;
    float x[SMALL_IN], expected[SMALL_OUT], y[SMALL_OUT];
    small_fill_rows(x, index, 1);
    CHECK_OK(small_run_rows(load->model, x, 1, expected));
    bool is_same = true;
    malloc_span_start(&load->span);
    for (uint32_t i = 0; i < load->rounds; i++) {
        if (small_run_rows(load->model, x, 1, y) != SP_OK) break;
        is_same = is_same && memcmp((const void *)y, (const void *)expected, sizeof y) == 0;
    }
    malloc_span_end(&load->span);
    CHECK(is_same);
}

TEST(runs_in_batches_allocate_nothing)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    if (!malloc_is_counted()) SKIP("the sanitizer has its own malloc");
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(model, &x, 1) > 0);
    const merged_runs before = merged_of(model);
    /* Where few wait, it takes a while until some are merged. */
    do {
        counted_load load = {.model = model,
                             .rounds = (uint32_t)test_count(50000, 10000),
                             .span = {.threads = CALLERS}};
        test_threads(CALLERS, run_counted, &load);
        CHECK_EQ_U64(load.span.after - load.span.before, 0);
    } while (merged_since(model, before).runs == 0);
    CHECK_OK(sp_model_release(model));
}

TEST_MAIN
