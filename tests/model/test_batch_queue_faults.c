/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: wrong calls, requests that fail, and no memory. Needs STREAMPOOL_BATCHING=always.
 */
#include "batch_queue_fixture.h"

#include <stdio.h>
#include <string.h>

#include <streampool/device.h>
#include <streampool/stream.h>

#include "base/heap.h"
#include "base/thread.h"
#include "batch/batch_builder.h"
#include "device/null/null.h"
#include "partial_fixture.h"

/* ---- wrong calls ---- */

static void check_refused(sp_batch_queue queue)
{
    queued_row row = {0};
    sp_batch_queue_statistics s;
    CHECK_STATUS(queued_row_submit(queue, &row), SP_INVALID);
    CHECK_MESSAGE("batch queue");
    CHECK_EQ_U64(row.future.bits, 0);
    CHECK_STATUS(sp_batch_queue_retain(queue), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_flush(queue), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_configure(queue, NULL), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_get_statistics(queue, &s), SP_INVALID);
}

TEST(zero_stale_foreign_and_forged_handles_are_refused)
{
    const sp_model model = small_model(NULL);
    const sp_batch_queue queue = queue_open(model, NULL);
    CHECK_OK(sp_batch_queue_release((sp_batch_queue){0}));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_STATUS(sp_batch_queue_release(queue), SP_INVALID);
    check_refused((sp_batch_queue){0});
    check_refused(queue);
    check_refused((sp_batch_queue){model.bits});
    check_refused((sp_batch_queue){queue.bits + 1000});
    CHECK_OK(sp_model_release(model));
}

TEST(wrong_options_are_refused)
{
    static const struct {
        sp_batch_queue_options options;
        const char *name;
    } wrong[] = {{{.max_batch = 65}, "max_batch is 65"},
                 {{.workers = 65}, "workers is 65"},
                 {{.max_waiting = 524289}, "max_waiting is 524289"},
                 {{.max_delay_ns = -1}, "max_delay_ns is -1"}};
    const sp_model model = small_model(NULL);
    const sp_batch_queue queue = queue_open(model, NULL);
    for (uint32_t i = 0; i < SP_COUNT_OF(wrong); i++) {
        sp_batch_queue none = {1};
        CHECK_STATUS(sp_batch_queue_create(model, &wrong[i].options, &none), SP_INVALID);
        CHECK_MESSAGE(wrong[i].name);
        CHECK_EQ_U64(none.bits, 0);
        CHECK_STATUS(sp_batch_queue_configure(queue, &wrong[i].options), SP_INVALID);
        CHECK_MESSAGE(wrong[i].name);
    }
    sp_batch_queue none = {1};
    CHECK_STATUS(sp_batch_queue_create(model, NULL, NULL), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_get_statistics(queue, NULL), SP_INVALID);
    CHECK_OK(sp_model_release(model));
    CHECK_STATUS(sp_batch_queue_create(model, NULL, &none), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_create((sp_model){0}, NULL, &none), SP_INVALID);
    CHECK_EQ_U64(none.bits, 0);
    CHECK_OK(sp_batch_queue_release(queue));
}

TEST(all_queues_together_have_a_bounded_number_of_workers)
{
    enum { QUEUES = 256 };
    static sp_batch_queue queues[QUEUES];
    const sp_batch_queue_options most = {.workers = 64};
    const sp_batch_queue_options one = {.workers = 1};
    const sp_model model = small_model(NULL);
    sp_batch_queue refused = {1};
    for (int i = 0; i < QUEUES; i++) queues[i] = queue_open(model, &most);
    CHECK_STATUS(sp_batch_queue_create(model, &one, &refused), SP_EXHAUSTED);
    CHECK_MESSAGE("16384 workers");
    CHECK_STATUS(sp_batch_queue_configure(queues[0], &one), SP_EXHAUSTED);
    CHECK_OK(sp_batch_queue_release(queues[1]));
    CHECK_OK(sp_batch_queue_configure(queues[0], &one));
    CHECK_OK(sp_batch_queue_configure(queues[0], &most));
    queues[1] = queue_open(model, &one);
    for (int i = 0; i < QUEUES; i++) CHECK_OK(sp_batch_queue_release(queues[i]));
    CHECK_OK(sp_model_release(model));
}

TEST(a_request_with_wrong_tensors_is_refused_by_itself)
{
    queued_row rows[6];
    float y[SMALL_OUT];
    sp_future future = {1};
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, 6);
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, rows, 3);
    const sp_host_tensor x = input_x(1);
    sp_host_tensor wrong = x;
    sp_host_tensor out = output_y(y, SMALL_OUT);
    wrong.shape[1] = 5;
    wrong.bytes = 20;
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &wrong, 1, &out, 1, &future), SP_MISMATCH);
    CHECK_EQ_U64(future.bits, 0);
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &x, 0, &out, 1, &future), SP_MISMATCH);
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, NULL, 1, &out, 1, &future), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &x, 1, NULL, 1, &future), SP_INVALID);
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &x, 1, &out, 1, NULL), SP_INVALID);
    out.name = "no such output";
    CHECK_STATUS(sp_batch_queue_submit(queue, NULL, &x, 1, &out, 1, &future), SP_NOT_FOUND);
    queued_rows_submit(queue, rows + 3, 3);
    slots_give(&held);
    queued_rows_finish(rows, 6);
    queue_check_done(queue, 6);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- a failing row ---- */

enum { CALLS = 40 };

typedef struct table_row {
    int64_t index;
    float y[TABLE_WIDTH];
    sp_future future;
} table_row;

static void table_rows_submit(sp_batch_queue queue, table_row *rows, uint64_t bad)
{
    for (uint32_t i = 0; i < CALLS; i++) {
        rows[i] = (table_row){.index = i % TABLE_ROWS};
        if ((bad >> i & 1) != 0) rows[i].index = TABLE_ROWS + i;
        memset(rows[i].y, 0xff, sizeof rows[i].y);
        const sp_host_tensor x = table_input(&rows[i].index);
        sp_host_tensor y = output_y(rows[i].y, TABLE_WIDTH);
        CHECK_OK(sp_batch_queue_submit(queue, NULL, &x, 1, &y, 1, &rows[i].future));
    }
}

static void table_rows_finish(table_row *rows)
{
    for (uint32_t i = 0; i < CALLS; i++) {
        const sp_status status = sp_future_wait(rows[i].future);
        if (rows[i].index >= TABLE_ROWS) {
            CHECK_STATUS(status, SP_INVALID);
            CHECK_MESSAGE("(Gather)");
        } else {
            CHECK_OK(status);
            CHECK(table_is_right(rows[i].index, rows[i].y));
        }
        CHECK_OK(sp_future_release(rows[i].future));
    }
}

TEST(of_a_batch_only_the_requests_that_fail_alone_fail)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static table_row rows[CALLS];
    static const int64_t no_row = 0;
    const sp_host_tensor x = table_input(&no_row);
    const sp_model model = table_model(NULL);
    CHECK_EQ_U64(combining_prepare(model, &x, 1), 11);
    const sp_batch_queue queue = queue_open(model, NULL);
    const uint64_t rounds = test_count(1000, 40);
    data_random random = {.state = 5};
    uint64_t failed = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t bad = UINT64_C(1) << (round % CALLS);
        if (round % 3 == 1) bad = data_next(&random) & data_next(&random);
        if (round % 17 == 16) bad = UINT64_MAX;
        bad &= (UINT64_C(1) << CALLS) - 1;
        failed += (uint64_t)__builtin_popcountll(bad);
        held_slots held = slots_hold(model);
        table_rows_submit(queue, rows, bad);
        slots_give(&held);
        table_rows_finish(rows);
    }
    queue_check_done(queue, rounds * CALLS - failed);
    CHECK_EQ_U64(queue_statistics(queue).failed, failed);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* A callback that waits for a row of a batch that fails: it does not wait behind others. */
typedef struct inside {
    sp_batch_queue queue;
    table_row rows[CALLS];
    sp_atomic_u32 waits, is_over;
} inside;

static void wait_inside(void *ctx, sp_status status)
{
    inside *in = ctx;
    CHECK_OK(status);
    sp_store_release(&in->waits, 1);
    for (uint32_t i = CALLS; i-- > 0;) {
        const bool is_bad = in->rows[i].index >= TABLE_ROWS;
        CHECK_STATUS(sp_future_wait(in->rows[i].future), is_bad ? SP_INVALID : SP_OK);
    }
    sp_store_release(&in->is_over, 1);
}

TEST(a_callback_waits_for_rows_of_batches_that_fail)
{
    static inside in;
    static const int64_t no_row = 0;
    const sp_host_tensor x = table_input(&no_row);
    const sp_model model = table_model(NULL);
    (void)combining_prepare(model, &x, 1);
    sp_stream stream;
    CHECK_OK(sp_stream_from_pool((sp_device){0}, &stream));
    const sp_batch_queue queue = queue_open(model, NULL);
    for (uint64_t round = 0; round < test_count(1000, 60); round++) {
        in = (inside){.queue = queue};
        held_slots held = slots_hold(model);
        table_rows_submit(queue, in.rows, UINT64_C(1) << (round % CALLS));
        CHECK_OK(sp_stream_host_function(stream, wait_inside, &in));
        await_count(&in.waits, 1);
        slots_give(&held);
        await_count(&in.is_over, 1);
        table_rows_finish(in.rows);
    }
    CHECK_OK(sp_stream_release(stream));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* ---- faults of the device ---- */

enum { THREADS = 12, BURST = 16 };

typedef struct faulty_load {
    sp_model model;
    sp_batch_queue queue;
    uint64_t rounds;
    sp_atomic_u64 failed, right;
} faulty_load;

static void submit_with_faults(void *arg, uint32_t index)
{
    faulty_load *load = arg;
    queued_row rows[BURST];
    for (uint32_t i = 0; i < BURST; i++) {
        rows[i] = (queued_row){0};
        small_fill_rows(rows[i].x, index * BURST + i, 1);
        while (small_run_rows(load->model, rows[i].x, 1, rows[i].expected) != SP_OK) {
        }
    }
    for (uint64_t round = 0; round < load->rounds; round++) {
        queued_rows_submit(load->queue, rows, BURST);
        for (uint32_t i = 0; i < BURST; i++) {
            const sp_status status = sp_future_wait(rows[i].future);
            if (status == SP_OK) {
                CHECK_EQ_MEM(rows[i].y, rows[i].expected, sizeof rows[i].y);
                sp_fetch_add_relaxed(&load->right, (uint64_t)1);
            } else {
                CHECK_STATUS(status, SP_FAILED);
                CHECK_MESSAGE("injected fault");
                sp_fetch_add_relaxed(&load->failed, (uint64_t)1);
            }
            CHECK_OK(sp_future_release(rows[i].future));
        }
    }
}

TEST(faults_of_the_device_in_a_batch_fail_no_request_that_is_right_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    null_fixture f = null_open();
    faulty_load load = {.model = small_model(&f.options), .rounds = test_count(500, 20)};
    const sp_host_tensor x = input_x(1);
    CHECK(combining_prepare(load.model, &x, 1) > 0);
    load.queue = queue_open(load.model, NULL);
    sp__null_fail_randomly(f.dev, 60, 7);
    test_threads(THREADS, submit_with_faults, &load);
    sp__null_fail_randomly(f.dev, 0, 0);
    const uint64_t failed = sp_load_relaxed(&load.failed);
    const sp_batch_queue_statistics s = queue_statistics(load.queue);
    CHECK_EQ_U64(s.failed, failed);
    CHECK_EQ_U64(s.done, sp_load_relaxed(&load.right));
    CHECK_EQ_U64(s.submitted, THREADS * BURST * load.rounds);
    CHECK(failed > 0 && failed < s.submitted / 4); /* of their own faults only */
    CHECK_OK(sp_batch_queue_release(load.queue));
    CHECK_OK(sp_model_release(load.model));
    CHECK_OK(sp_device_close(f.device));
}

TEST(a_device_that_is_lost_fails_all_requests)
{
    queued_row rows[BURST];
    null_fixture f = null_open();
    const sp_model model = small_model(&f.options);
    const sp_host_tensor x = input_x(1);
    (void)combining_prepare(model, &x, 1);
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, BURST);
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, rows, BURST);
    sp__null_lose(f.dev);
    slots_give(&held);
    for (uint32_t i = 0; i < BURST; i++) {
        CHECK_STATUS(sp_future_wait(rows[i].future), SP_DEVICE_LOST);
        CHECK_OK(sp_future_release(rows[i].future));
    }
    CHECK_EQ_U64(queue_statistics(queue).failed, BURST);
    CHECK_STATUS(queued_row_submit(queue, &rows[0]), SP_DEVICE_LOST);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(f.device));
}

/* ---- no memory ---- */

/* The allocation after `skip` others fails, of the creation and of submits with new plans; false:
 * there are fewer. */
static bool use_with_failure(uint64_t skip)
{
    enum { COUNT = 4 };
    queued_row rows[COUNT];
    const sp_batch_queue_options options = {.max_delay_ns = 1000};
    const sp_model model = small_model(NULL);
    const sp_model other = small_model(NULL);
    queued_rows_init(other, rows, 0, COUNT);
    sp__batch_builder_drain();
    sp_batch_queue queue = {0};
    uint32_t submitted = 0;
    sp_heap_fail_after(skip);
    sp_status status = sp_batch_queue_create(model, &options, &queue);
    for (; status == SP_OK && submitted < COUNT; submitted++) {
        status = queued_row_submit(queue, &rows[submitted]);
        if (status != SP_OK) break;
    }
    CHECK(status == SP_OK || status == SP_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < submitted; i++) {
        status = sp_future_wait(rows[i].future);
        CHECK(status == SP_OK || status == SP_OUT_OF_MEMORY);
        if (status == SP_OK) CHECK_EQ_MEM(rows[i].y, rows[i].expected, sizeof rows[i].y);
        CHECK_OK(sp_future_release(rows[i].future));
    }
    sp__batch_builder_drain();
    const bool has_failed = sp_heap_has_failed();
    sp_heap_fail_after(UINT64_MAX);
    if (queue.bits == 0) queue = queue_open(model, &options);
    queued_rows_submit(queue, rows, COUNT); /* the next ones are right */
    queued_rows_finish(rows, COUNT);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_model_release(other));
    return has_failed;
}

TEST(every_allocation_of_a_queue_may_fail)
{
    const uint64_t step = test_scale() < 1 ? 7 : 1;
    uint64_t skip = 0;
    while (use_with_failure(skip)) skip += step;
    test_note("%llu allocations failed one by one", (unsigned long long)(skip / step));
    CHECK(skip > 20);
}

TEST_MAIN
