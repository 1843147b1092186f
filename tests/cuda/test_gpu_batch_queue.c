/* SPDX-License-Identifier: Apache-2.0 */
/* On a GPU: requests of batch queues have the bits of runs alone, and are merged. */
#include "batch_queue_fixture.h"

#include <streampool/device.h>

#include "base/clock.h"
#include "batch/batch_builder.h"

enum { THREADS = 31, MANY = 20000 };

#define LONG_NS INT64_C(3600000000000) /* longer than any test */

TEST(requests_have_the_bits_of_runs_alone_and_are_merged)
{
    static queued_row rows[MANY];
    sp_model_options options = {0};
    if (sp_device_open("cuda:0", &options.device) != SP_OK) SKIP("no GPU");
    queue_load load = {.model = small_model(&options), .rounds = test_count(200, 40)};
    load.queue = queue_open(load.model, NULL);
    queue_load_run(&load, THREADS); /* before and while larger plans are built */
    sp__batch_builder_drain();
    CHECK_OK(sp_batch_queue_release(load.queue));
    load.queue = queue_open(load.model, NULL);
    queue_load_run(&load, THREADS);
    const sp_batch_queue_statistics s = queue_statistics(load.queue);
    test_note("%u threads: %llu requests in %llu batches", THREADS, (unsigned long long)s.rows,
              (unsigned long long)s.batches);
    if (combining_buckets(load.model) > 0) CHECK(s.batches < s.rows);
    CHECK_OK(sp_batch_queue_release(load.queue));
    queued_rows_init(load.model, rows, 0, MANY);
    load.queue = queue_open(load.model, NULL);
    const uint64_t begin = sp_clock_now();
    queued_rows_submit(load.queue, rows, MANY);
    queued_rows_finish(rows, MANY);
    const uint64_t ns = sp_clock_now() - begin;
    test_note("one thread: %u requests in %llu batches, %llu ns each", MANY,
              (unsigned long long)queue_statistics(load.queue).batches,
              (unsigned long long)(ns / MANY));
    CHECK_OK(sp_batch_queue_release(load.queue));
    CHECK_OK(sp_model_release(load.model));
    CHECK_OK(sp_device_close(options.device));
}

TEST(a_full_batch_starts_at_once_and_the_delay_ends)
{
    enum { FULL = 16 };
    queued_row rows[FULL];
    sp_model_options options = {0};
    if (sp_device_open("cuda:0", &options.device) != SP_OK) SKIP("no GPU");
    const sp_model model = small_model(&options);
    queued_rows_init(model, rows, 0, FULL);
    if (combining_build(model) < 7) SKIP("batches do not pay");
    sp_batch_queue_options queue_options = {.max_delay_ns = LONG_NS, .max_batch = FULL};
    const sp_batch_queue queue = queue_open(model, &queue_options);
    for (int i = 0; i < 50; i++) {
        queued_rows_submit(queue, rows, FULL);
        queued_rows_finish(rows, FULL);
    }
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(queue_batches_of(&s, FULL), 50);
    queue_options.max_delay_ns = 2000000;
    CHECK_OK(sp_batch_queue_configure(queue, &queue_options));
    queued_rows_submit(queue, rows, FULL / 2);
    queued_rows_finish(rows, FULL / 2);
    CHECK(queue_statistics(queue).longest_wait_ns >= 2000000);
    CHECK_OK(sp_batch_queue_release(queue));
    CHECK_OK(sp_model_release(model));
    CHECK_OK(sp_device_close(options.device));
}

TEST_MAIN
