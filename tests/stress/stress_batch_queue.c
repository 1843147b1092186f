/* SPDX-License-Identifier: Apache-2.0 */
/* 31 threads submit to three batch queues of two models beside each other, with rows that fail at
 * random, flushes, changes of options, callbacks, and runs on the threads themselves: each accepted
 * request ends once, as it would alone. Needs STREAMPOOL_BATCHING=always to merge them all. */
#include <string.h>

#include "stress_queue.h"

enum { THREADS = 31, QUEUES = 3, BURST = 16, ROWS = 32 };

typedef struct storm {
    sp_model table, small;
    sp_batch_queue queues[QUEUES]; /* the first is of the table's model */
    float expected[ROWS][SMALL_OUT];
    uint64_t requests; /* of each thread */
    sp_atomic_u64 accepted, done, failed, refused, called;
} storm;

typedef struct request {
    storm *all;
    uint32_t queue, row;
    int64_t index; /* of the table; too large: it fails */
    float x[SMALL_IN], y[SMALL_OUT];
    sp_atomic_u32 calls; /* of its callback */
    sp_future future;
} request;

static void request_draw(request *r, storm *all, uint64_t *random)
{
    *r = (request){.all = all, .queue = random_next(random) % QUEUES};
    r->row = random_next(random) % ROWS;
    r->index = (int64_t)(random_next(random) % TABLE_ROWS);
    if (random_next(random) % 64 == 0) r->index += TABLE_ROWS;
    small_fill_rows(r->x, r->row, 1);
    memset(r->y, 0xff, sizeof r->y);
}

static sp_host_tensor request_input(const request *r)
{
    if (r->queue == 0) return table_input(&r->index);
    sp_host_tensor x = input_x(1);
    x.data = (void *)(uintptr_t)r->x;
    return x;
}

static void request_check(request *r, sp_status status)
{
    const bool fails = r->queue == 0 && r->index >= TABLE_ROWS;
    CHECK_STATUS(status, fails ? SP_INVALID : SP_OK);
    sp_fetch_add_relaxed(fails ? &r->all->failed : &r->all->done, (uint64_t)1);
    if (fails) CHECK_MESSAGE("(Gather)");
    else if (r->queue == 0) CHECK(table_is_right(r->index, r->y));
    else CHECK_EQ_MEM(r->y, r->all->expected[r->row], sizeof r->y);
}

static void count_call(void *ctx, sp_status status)
{
    request *r = ctx;
    (void)status;
    sp_fetch_add_relaxed(&r->all->called, (uint64_t)1);
    sp_fetch_add_release(&r->calls, 1); /* the last access */
}

/* False: the queue was full. */
static bool request_submit(request *r)
{
    const sp_host_tensor x = request_input(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const sp_status status =
        sp_batch_queue_submit(r->all->queues[r->queue], NULL, &x, 1, &y, 1, &r->future);
    if (status == SP_OK) {
        sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
        CHECK_OK(sp_future_on_complete(r->future, count_call, r));
        return true;
    }
    CHECK_STATUS(status, SP_BUSY);
    sp_fetch_add_relaxed(&r->all->refused, (uint64_t)1);
    return false;
}

static void request_end(request *r, uint64_t how)
{
    if (how % 3 == 0) await_count(&r->calls, 1);
    request_check(r, sp_future_wait(r->future));
    CHECK_OK(sp_future_release(r->future));
    await_count(&r->calls, 1);
    CHECK_EQ_U64(sp_load_acquire(&r->calls), 1);
}

static void request_run(request *r)
{
    const sp_host_tensor x = request_input(r);
    sp_host_tensor y = output_y(r->y, SMALL_OUT);
    const sp_model model = r->queue == 0 ? r->all->table : r->all->small;
    sp_fetch_add_relaxed(&r->all->accepted, (uint64_t)1);
    request_check(r, sp_model_run(model, &x, 1, &y, 1));
}

static void run_storm(void *arg, uint32_t index)
{
    storm *all = arg;
    uint64_t random = random_seed(index);
    request requests[BURST];
    bool is_accepted[BURST];
    for (uint64_t i = 0; i < all->requests;) {
        const uint32_t count = 1 + random_next(&random) % BURST;
        for (uint32_t k = 0; k < count; k++) {
            request_draw(&requests[k], all, &random);
            is_accepted[k] = request_submit(&requests[k]);
        }
        if (random_next(&random) % 16 == 0) queue_options_change(all->queues[2], &random);
        if (random_next(&random) % 4 == 0) {
            CHECK_OK(sp_batch_queue_flush(all->queues[random_next(&random) % QUEUES]));
        }
        for (uint32_t k = 0; k < count; k++) {
            if (is_accepted[k]) request_end(&requests[k], random_next(&random));
            else request_run(&requests[k]);
        }
        i += count;
    }
}

static uint64_t storm_close(storm *all)
{
    uint64_t accepted = 0;
    for (uint32_t i = 0; i < QUEUES; i++) {
        const sp_batch_queue_statistics s = queue_statistics(all->queues[i]);
        queue_check_done(all->queues[i], s.done);
        accepted += s.submitted;
        test_note("queue %u: %llu requests, %llu failed, %llu batches", i,
                  (unsigned long long)s.submitted, (unsigned long long)s.failed,
                  (unsigned long long)s.batches);
        CHECK(s.batches < s.rows);
        CHECK_OK(sp_batch_queue_release(all->queues[i]));
    }
    CHECK_OK(sp_model_release(all->table));
    CHECK_OK(sp_model_release(all->small));
    return accepted;
}

TEST(every_accepted_request_ends_once_as_it_would_alone)
{
    if (!combining_is_certain()) SKIP("needs STREAMPOOL_BATCHING=always");
    static storm all;
    static const int64_t no_row = 0;
    const sp_host_tensor x = table_input(&no_row);
    const sp_batch_queue_options delayed = {.max_delay_ns = 50000, .max_waiting = 100};
    all = (storm){.table = table_model(NULL),
                  .small = queue_model(),
                  .requests = test_count(10000000, 60000) / THREADS};
    CHECK(combining_prepare(all.table, &x, 1) > 0);
    for (uint32_t row = 0; row < ROWS; row++) {
        float in[SMALL_IN];
        small_fill_rows(in, row, 1);
        CHECK_OK(small_run_rows(all.small, in, 1, all.expected[row]));
    }
    all.queues[0] = queue_open(all.table, NULL);
    all.queues[1] = queue_open(all.small, &delayed);
    all.queues[2] = queue_open(all.small, NULL);
    test_threads(THREADS, run_storm, &all);
    const uint64_t queued = storm_close(&all);
    const uint64_t accepted = sp_load_relaxed(&all.accepted);
    CHECK_EQ_U64(sp_load_relaxed(&all.called), queued);
    CHECK_EQ_U64(accepted, queued + sp_load_relaxed(&all.refused));
    CHECK_EQ_U64(sp_load_relaxed(&all.done) + sp_load_relaxed(&all.failed), accepted);
}

TEST_MAIN
