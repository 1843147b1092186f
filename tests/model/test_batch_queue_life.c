/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues and models that are released beside requests. Needs STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include <string.h>

#include <streampool/device.h>

#include "base/thread.h"
#include "batch/batch_builder.h"
#include "support/own_memory.h"

#define LONG_NS INT64_C(3600000000000) /* longer than any test */

enum { THREADS = 8, BURST = 12 };

TEST(model_and_queue_may_be_released_while_requests_wait)
{
    queued_row rows[BURST];
    for (uint64_t round = 0; round < test_count(500, 30); round++) {
        const sp_model model = queue_model();
        const sp_batch_queue queue = queue_open(model, NULL);
        queued_rows_init(model, rows, 0, BURST);
        held_slots held = slots_hold(model);
        queued_rows_submit(queue, rows, BURST);
        CHECK_OK(sp_model_release(model));
        if (round % 2 == 0) CHECK_OK(sp_batch_queue_release(queue));
        slots_give(&held);
        queued_rows_finish(rows, BURST);
        if (round % 2 == 1) CHECK_OK(sp_batch_queue_release(queue));
    }
}

TEST(a_queue_is_used_after_its_model_was_released)
{
    queued_row rows[BURST];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, BURST);
    CHECK_OK(sp_model_release(model));
    queued_rows_submit(queue, rows, BURST);
    queued_rows_finish(rows, BURST);
    CHECK_OK(sp_batch_queue_release(queue));
}

typedef struct crowd {
    sp_model model;
    uint64_t rounds;
    sp_atomic_u64 handle; /* of the queue that all use */
} crowd;

/* Queues end and begin while others submit to them. */
static void use_or_replace(void *arg, uint32_t index)
{
    crowd *c = arg;
    queued_row rows[BURST];
    queued_rows_init(c->model, rows, index * BURST, BURST);
    for (uint64_t i = 0; i < c->rounds; i++) {
        const sp_batch_queue queue = {sp_load_acquire(&c->handle)};
        uint32_t count = 0;
        while (count < BURST && queued_row_submit(queue, &rows[count]) == SP_OK) count++;
        if (index == 0) {
            const sp_batch_queue_options options = {.max_delay_ns = i % 2 == 0 ? LONG_NS : 0};
            const sp_batch_queue next = queue_open(c->model, &options);
            sp_store_release(&c->handle, next.bits);
            CHECK_OK(sp_batch_queue_release(queue));
        } else {
            (void)sp_batch_queue_flush(queue);
        }
        queued_rows_finish(rows, count);
    }
    if (index == 0) return;
    /* The last queue may have a delay. */
    (void)sp_batch_queue_flush((sp_batch_queue){sp_load_acquire(&c->handle)});
}

TEST(queues_are_released_beside_submits)
{
    crowd c = {.model = queue_model(), .rounds = test_count(5000, 200)};
    sp_store_relaxed(&c.handle, queue_open(c.model, NULL).bits);
    test_threads(THREADS, use_or_replace, &c);
    CHECK_OK(sp_batch_queue_release((sp_batch_queue){sp_load_acquire(&c.handle)}));
    CHECK_OK(sp_model_release(c.model));
}

/* ---- a device with memory of its own ---- */

typedef struct wide_row {
    float x[SMALL_IN], y[SMALL_IN], expected[SMALL_IN];
    sp_future future;
} wide_row;

static sp_host_tensor wide_input(const wide_row *row)
{
    sp_host_tensor x = input_x(1);
    x.data = (void *)(uintptr_t)row->x;
    return x;
}

static void wide_rows_init(sp_model model, wide_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (wide_row){0};
        small_fill_rows(rows[i].x, i, 1);
        const sp_host_tensor x = wide_input(&rows[i]);
        sp_host_tensor y = output_y(rows[i].expected, SMALL_IN);
        CHECK_OK(sp_model_run(model, &x, 1, &y, 1));
    }
}

static void wide_rows_submit(sp_batch_queue queue, wide_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const sp_host_tensor x = wide_input(&rows[i]);
        sp_host_tensor y = output_y(rows[i].y, SMALL_IN);
        memset(rows[i].y, 0xff, sizeof rows[i].y);
        CHECK_OK(sp_batch_queue_submit(queue, NULL, &x, 1, &y, 1, &rows[i].future));
    }
}

static void wide_rows_finish(wide_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(sp_future_wait(rows[i].future));
        CHECK_EQ_MEM(rows[i].y, rows[i].expected, sizeof rows[i].y);
        CHECK_OK(sp_future_release(rows[i].future));
    }
}

/* There a plan with larger ones has slots of its own, and inputs are copied. */
TEST(requests_on_a_device_with_its_own_memory_are_merged_with_their_bits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { FULL = 32, ALL = 500 };
    static wide_row rows[ALL];
    const sp_device device = open_own_memory(false);
    const sp_model_options options = {.device = device};
    const sp_model model = plain_model(&options);
    const sp_batch_queue_options gated = {.max_delay_ns = LONG_NS, .max_batch = FULL};
    const sp_batch_queue queue = queue_open(model, NULL);
    wide_rows_init(model, rows, ALL);
    wide_rows_submit(queue, rows, ALL); /* before and while larger plans are built */
    wide_rows_finish(rows, ALL);
    sp__batch_builder_drain();
    CHECK(combining_buckets(model) > 0);
    wide_rows_submit(queue, rows, ALL);
    wide_rows_finish(rows, ALL);
    const sp_batch_queue full = queue_open(model, &gated);
    for (int i = 0; i < 5; i++) {
        wide_rows_submit(full, rows + i * FULL, FULL);
        wide_rows_finish(rows + i * FULL, FULL);
    }
    const sp_batch_queue_statistics s = queue_statistics(full);
    CHECK_EQ_U64(queue_batches_of(&s, FULL), 5);
    CHECK_EQ_U64(s.batches, 5);
    queue_check_done(queue, 2 * ALL);
    CHECK_OK(sp_batch_queue_release(full));
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(device));
}

/* A plan ends, with its slots, as soon as its last request has released it. */
TEST(a_model_is_released_with_the_slots_of_its_plans)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static wide_row rows[BURST];
    const sp_device device = open_own_memory(false);
    const sp_model_options options = {.device = device, .max_plans = 1};
    for (uint64_t round = 0; round < test_count(300, 30); round++) {
        const sp_model model = plain_model(&options);
        wide_rows_init(model, rows, BURST);
        CHECK(combining_build(model) > 0);
        const sp_batch_queue queue = queue_open(model, NULL);
        wide_rows_submit(queue, rows, BURST);
        if (round % 2 == 0) { /* two rows need the plan's entry of the cache */
            const sp_host_tensor x = input_x(2);
            sp_host_tensor y = {0};
            CHECK_OK(sp_model_infer(model, &x, 1, &y, 1));
        }
        CHECK_OK(sp_model_release(model));
        CHECK_OK(sp_batch_queue_release(queue));
        wide_rows_finish(rows, BURST);
    }
    CHECK_OK(sp_device_close(device));
}

TEST_MAIN
