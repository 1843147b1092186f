/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues: requests have the bits of a run alone, are merged as far as the queue may, and wait
 * for others as long as it says. Needs STREAMPOOL_BATCHING=always. */
#include "batch_queue_fixture.h"

#include "base/clock.h"
#include "base/thread.h"
#include "batch/batch.h"
#include "batch/batch_builder.h"
#include "partial_fixture.h"

enum { ROWS = 100 };
#define LONG_NS INT64_C(3600000000000) /* longer than any test */

/* ---- merging ---- */

TEST(a_request_alone_runs_at_once)
{
    const sp_model model = small_model(NULL);
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_row row;
    queued_rows_init(model, &row, 3, 1);
    CHECK_OK(queued_row_submit(queue, &row));
    queued_row_finish(&row);
    queue_check_done(queue, 1);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(the_first_request_of_a_plan_asks_for_larger_ones)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const sp_model model = small_model(NULL);
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_row row;
    queued_rows_init(model, &row, 0, 1);
    CHECK_EQ_U64(combining_buckets(model), 0);
    CHECK_OK(queued_row_submit(queue, &row));
    queued_row_finish(&row);
    sp__batch_builder_drain();
    CHECK_EQ_U64(combining_buckets(model), 11);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* The device is busy until all have been submitted, and there is one worker: each batch is the
 * largest that those that are left fill. */
static void check_merged_in_order(uint32_t count, uint32_t max_batch, const uint32_t *batches)
{
    static queued_row rows[ROWS];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.workers = 1, .max_batch = max_batch};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, count);
    held_slots held = slots_hold(model);
    queued_rows_submit(queue, rows, count);
    CHECK_EQ_U64(queue_statistics(queue).waiting, count);
    slots_give(&held);
    queued_rows_finish(rows, count);
    const sp_batch_queue_statistics s = queue_statistics(queue);
    uint64_t expected = 0;
    for (uint32_t i = 0; batches[i] != 0; i++) {
        uint64_t same = 0;
        for (uint32_t k = 0; batches[k] != 0; k++) same += batches[k] == batches[i];
        CHECK_EQ_U64(queue_batches_of(&s, batches[i]), same);
        expected++;
    }
    CHECK_EQ_U64(s.batches, expected);
    queue_check_done(queue, count);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(requests_that_wait_are_computed_as_the_largest_batches)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    check_merged_in_order(1, 0, (const uint32_t[]){1, 0});
    check_merged_in_order(2, 0, (const uint32_t[]){2, 0});
    check_merged_in_order(31, 0, (const uint32_t[]){24, 6, 1, 0});
    check_merged_in_order(100, 0, (const uint32_t[]){64, 32, 4, 0});
    check_merged_in_order(31, 10, (const uint32_t[]){8, 8, 8, 6, 1, 0});
    check_merged_in_order(5, 1, (const uint32_t[]){1, 1, 1, 1, 1, 0});
}

TEST(workers_of_a_busy_device_share_what_waits)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static queued_row rows[ROWS];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, ROWS);
    for (uint64_t round = 0; round < test_count(200, 10); round++) {
        held_slots held = slots_hold(model);
        queued_rows_submit(queue, rows, ROWS);
        slots_give(&held);
        queued_rows_finish(rows, ROWS);
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    test_note("%llu requests in %llu batches", (unsigned long long)s.rows,
              (unsigned long long)s.batches);
    CHECK(s.rows >= 3 * s.batches);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(one_thread_has_thousands_in_flight)
{
    enum { MANY = 20000 };
    static queued_row rows[MANY];
    const sp_model model = queue_model();
    const sp_batch_queue queue = queue_open(model, NULL);
    queued_rows_init(model, rows, 0, MANY);
    queued_rows_submit(queue, rows, MANY);
    queued_rows_finish(rows, MANY);
    const sp_batch_queue_statistics s = queue_statistics(queue);
    test_note("%llu requests in %llu batches", (unsigned long long)s.rows,
              (unsigned long long)s.batches);
    queue_check_done(queue, MANY);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(threads_submit_beside_each_other)
{
    queue_load load = {.model = queue_model(), .rounds = test_count(2000, 50)};
    load.queue = queue_open(load.model, NULL);
    queue_load_run(&load, 31);
    CHECK_OK(sp_batch_queue_release(load.queue));
    CHECK_OK(sp_model_release(load.model));
}

/* ---- delay ---- */

/* An idle batch of so many rows, of the plan that was built last. */
static sp_batch *batch_hold(sp_model model, uint32_t rows)
{
    sp_rt_model *held = sp__model_hold(model);
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    sp_batch *batch = sp__batch_acquire(sp__batch_plans_of(entry), rows);
    CHECK_EQ_U64(batch->bucket->rows, rows);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    return batch;
}

TEST(with_a_delay_a_full_batch_starts_at_once)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { FULL = 16 };
    queued_row rows[3 * FULL];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS, .max_batch = FULL};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 3 * FULL);
    for (int i = 0; i < 3; i++) {
        queued_rows_submit(queue, rows + i * FULL, FULL - 1);
        CHECK_EQ_U64(queue_statistics(queue).waiting, FULL - 1);
        CHECK_STATUS(sp_future_query(rows[i * FULL].future), SP_NOT_READY);
        queued_rows_submit(queue, rows + i * FULL + FULL - 1, 1);
        queued_rows_finish(rows + i * FULL, FULL);
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(queue_batches_of(&s, FULL), 3);
    CHECK_EQ_U64(s.batches, 3);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* What a lead cannot take, since all batches of that size are in use, does not wait again. */
TEST(with_a_delay_a_full_batch_starts_at_once_as_smaller_ones)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { FULL = 32 };
    queued_row rows[FULL];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS, .max_batch = FULL};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, FULL);
    for (uint64_t round = 1; round <= test_count(200, 20); round++) {
        sp_batch *busy[2] = {batch_hold(model, FULL), batch_hold(model, FULL)};
        queued_rows_submit(queue, rows, FULL);
        queued_rows_finish(rows, FULL);
        for (int i = 0; i < 2; i++) sp__batch_release(busy[i]);
        const sp_batch_queue_statistics s = queue_statistics(queue);
        CHECK_EQ_U64(queue_batches_of(&s, 24), round);
        CHECK_EQ_U64(queue_batches_of(&s, 8), round);
    }
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* Nor less. The device is busy until all have been submitted: they are together even if the delay
 * ends before that. */
TEST(the_oldest_request_waits_no_longer_than_the_delay)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    const int64_t delay_ns = 20000000;
    queued_row rows[5];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.workers = 1, .max_delay_ns = delay_ns};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 5);
    for (uint64_t round = 0; round < test_count(50, 3); round++) {
        held_slots held = slots_hold(model);
        const uint64_t begin = sp_clock_now();
        queued_rows_submit(queue, rows, 4);
        slots_give(&held);
        queued_rows_finish(rows, 4);
        CHECK(sp_clock_now() - begin >= (uint64_t)delay_ns);
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK(s.longest_wait_ns >= (uint64_t)delay_ns);
    CHECK_EQ_U64(queue_batches_of(&s, 4), s.batches);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(a_flush_ends_the_delay_of_the_requests_inside)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[7];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 7);
    CHECK_OK(sp_batch_queue_flush(queue)); /* of nothing */
    queued_rows_submit(queue, rows, 6);
    CHECK_STATUS(sp_future_wait_for(rows[0].future, 1000000), SP_TIMEOUT);
    CHECK_OK(sp_batch_queue_flush(queue));
    queued_rows_finish(rows, 6);
    queued_rows_submit(queue, rows + 6, 1); /* later ones wait */
    CHECK_STATUS(sp_future_wait_for(rows[6].future, 1000000), SP_TIMEOUT);
    CHECK_OK(sp_batch_queue_flush(queue));
    queued_rows_finish(rows + 6, 1);
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(queue_batches_of(&s, 6), 1);
    CHECK_EQ_U64(queue_batches_of(&s, 1), 1);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(requests_without_larger_plans_wait_for_no_others)
{
    const sp_model model = small_model(NULL);
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_row row;
    queued_rows_init(model, &row, 0, 1);
    sp_rt_model *held = sp__model_hold(model); /* the plan cannot get larger ones */
    sp_plan_entry *entry = sp__plan_cache_acquire_newest(&held->plans);
    sp_store_relaxed(&entry->waits, 1000);
    CHECK_OK(queued_row_submit(queue, &row));
    queued_row_finish(&row);
    sp__plan_cache_release(&held->plans, entry);
    sp__model_drop(held);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(the_last_release_ends_the_delay_and_requests_complete)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    queued_row rows[6];
    const sp_model model = queue_model();
    const sp_batch_queue_options options = {.max_delay_ns = LONG_NS};
    const sp_batch_queue queue = queue_open(model, &options);
    queued_rows_init(model, rows, 0, 6);
    CHECK_OK(sp_batch_queue_retain(queue));
    queued_rows_submit(queue, rows, 6);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_STATUS(sp_future_wait_for(rows[0].future, 1000000), SP_TIMEOUT);
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_batch_queue_release(queue));
    queued_rows_finish(rows, 6);
    CHECK_STATUS(sp_batch_queue_flush(queue), SP_INVALID);
}

/* ---- keys ---- */

static sp_host_tensor width_input(const float *x, uint32_t width)
{
    return (sp_host_tensor){.data = (void *)(uintptr_t)x,
                            .bytes = width * sizeof *x,
                            .dtype = SP_F32,
                            .rank = 2,
                            .shape = {1, width}};
}

TEST(requests_of_several_shapes_are_merged_with_their_own)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { COUNT = 60, WIDTHS = 2 };
    static float x[COUNT][WIDTHS], y[COUNT][WIDTHS], expected[COUNT][WIDTHS];
    sp_future futures[COUNT];
    const sp_model model = width_model();
    for (uint32_t width = 1; width <= WIDTHS; width++) {
        const sp_host_tensor in = width_input(x[0], width);
        CHECK(combining_prepare(model, &in, 1) > 0);
    }
    const sp_batch_queue_options options = {.workers = 1};
    const sp_batch_queue queue = queue_open(model, &options);
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t width = 1 + i % WIDTHS;
        for (uint32_t k = 0; k < width; k++) x[i][k] = (float)(10 * i + k) - 100.0f;
        for (uint32_t k = 0; k < width; k++) expected[i][k] = x[i][k] < 0 ? -x[i][k] : x[i][k];
        const sp_host_tensor in = width_input(x[i], width);
        sp_host_tensor out = output_y(y[i], WIDTHS);
        CHECK_OK(sp_batch_queue_submit(queue, NULL, &in, 1, &out, 1, &futures[i]));
        CHECK_EQ_INT(out.shape[1], width);
    }
    slots_give(&held);
    for (uint32_t i = 0; i < COUNT; i++) {
        CHECK_OK(sp_future_wait(futures[i]));
        CHECK_EQ_MEM(y[i], expected[i], (1 + i % WIDTHS) * sizeof(float));
        CHECK_OK(sp_future_release(futures[i]));
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(queue_batches_of(&s, 24), WIDTHS); /* of either 30: 24, and 6 */
    CHECK_EQ_U64(queue_batches_of(&s, 6), WIDTHS);
    queue_check_done(queue, COUNT);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

/* Of an input that is the same for all rows of a batch. */
TEST(requests_are_merged_only_with_those_of_the_same_values_of_common_inputs)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    enum { COUNT = 48, KINDS = 3 };
    static queued_row rows[COUNT];
    static float factors[COUNT][SMALL_OUT];
    const sp_model model = factors_model();
    sp_host_tensor in[2] = {input_x(1), partial_floats("k", factors[0], SMALL_OUT)};
    CHECK(combining_prepare(model, in, 2) > 0);
    const sp_batch_queue_options options = {.workers = 1};
    const sp_batch_queue queue = queue_open(model, &options);
    held_slots held = slots_hold(model);
    for (uint32_t i = 0; i < COUNT; i++) {
        rows[i] = (queued_row){0};
        small_fill_rows(rows[i].x, i, 1);
        for (uint32_t k = 0; k < SMALL_OUT; k++) {
            factors[i][k] = (float)(i % KINDS) - 0.125f * (float)k;
        }
        in[0].data = rows[i].x;
        in[1].data = factors[i];
        sp_host_tensor out = output_y(rows[i].y, SMALL_OUT);
        CHECK_OK(sp_batch_queue_submit(queue, NULL, in, 2, &out, 1, &rows[i].future));
    }
    slots_give(&held);
    for (uint32_t i = 0; i < COUNT; i++) {
        in[0].data = rows[i].x;
        in[1].data = factors[i];
        sp_host_tensor out = output_y(rows[i].expected, SMALL_OUT);
        CHECK_OK(sp_model_run(model, in, 2, &out, 1));
        queued_row_finish(&rows[i]);
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(queue_batches_of(&s, COUNT / KINDS), KINDS);
    CHECK_EQ_U64(s.batches, KINDS);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
}

TEST(every_model_gives_the_bits_of_a_run)
{
    enum { BURST = 40 };
    for (uint32_t m = 0; m < FIXTURE_MODELS; m++) {
        model_case c;
        if (!case_open(fixture_models[m], NULL, &c)) SKIP("no shared data");
        static sp_array outputs[BURST][FIXTURE_PORTS];
        sp_host_tensor inputs[FIXTURE_PORTS];
        sp_host_tensor tensors[FIXTURE_PORTS];
        sp_future futures[BURST];
        const sp_batch_queue queue = queue_open(c.model, NULL);
        for (uint32_t k = 0; k < c.input_count; k++) inputs[k] = tensor_of(&c.inputs[k], NULL);
        for (uint32_t round = 0; round < 2; round++) { /* before and after larger plans */
            for (uint32_t f = 0; f < BURST; f++) {
                outputs_make(&c, outputs[f]);
                outputs_wipe(&c, outputs[f]);
                for (uint32_t k = 0; k < c.output_count; k++) {
                    tensors[k] = tensor_of(&outputs[f][k], NULL);
                }
                CHECK_OK(sp_batch_queue_submit(queue, NULL, inputs, c.input_count, tensors,
                                               c.output_count, &futures[f]));
            }
            for (uint32_t f = 0; f < BURST; f++) {
                CHECK_OK(sp_future_wait(futures[f]));
                CHECK(case_is_same(&c, outputs[f]));
                CHECK_OK(sp_future_release(futures[f]));
                outputs_free(&c, outputs[f]);
            }
            sp__batch_builder_drain();
        }
        queue_check_done(queue, 2 * BURST);
        CHECK_OK(sp_batch_queue_release(queue));
        case_close(&c);
    }
}

TEST_MAIN
