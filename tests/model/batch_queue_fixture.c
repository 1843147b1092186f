/* SPDX-License-Identifier: Apache-2.0 */
#include "batch_queue_fixture.h"

#include <string.h>

#include "base/thread.h"
#include "batch/batch_builder.h"

void queued_rows_init(sp_model model, queued_row *rows, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        rows[i] = (queued_row){0};
        small_fill_rows(rows[i].x, first + i, 1);
        CHECK_OK(small_run_rows(model, rows[i].x, 1, rows[i].expected));
    }
}

sp_status queued_row_submit_with(sp_batch_queue queue, const sp_run_options *options,
                                 queued_row *row)
{
    const sp_host_tensor x = {
        .data = row->x, .bytes = sizeof row->x, .dtype = SP_F32, .rank = 2, .shape = {1, SMALL_IN}};
    sp_host_tensor y = output_y(row->y, SMALL_OUT);
    memset(row->y, 0xff, sizeof row->y);
    return sp_batch_queue_submit(queue, options, &x, 1, &y, 1, &row->future);
}

sp_status queued_row_submit(sp_batch_queue queue, queued_row *row)
{
    return queued_row_submit_with(queue, NULL, row);
}

void queued_rows_submit(sp_batch_queue queue, queued_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) CHECK_OK(queued_row_submit(queue, &rows[i]));
}

void queued_row_finish(queued_row *row)
{
    CHECK_OK(sp_future_wait(row->future));
    CHECK_EQ_MEM(row->y, row->expected, sizeof row->y);
    CHECK_OK(sp_future_release(row->future));
}

void queued_rows_finish(queued_row *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) queued_row_finish(&rows[i]);
}

sp_batch_queue queue_open(sp_model model, const sp_batch_queue_options *options)
{
    sp_batch_queue queue = {0};
    CHECK_OK(sp_batch_queue_create(model, options, &queue));
    return queue;
}

sp_batch_queue_statistics queue_statistics(sp_batch_queue queue)
{
    sp_batch_queue_statistics s = {0};
    CHECK_OK(sp_batch_queue_get_statistics(queue, &s));
    return s;
}

uint64_t queue_batches_of(const sp_batch_queue_statistics *s, uint32_t rows)
{
    for (uint32_t i = 0; i < SP_BATCH_QUEUE_SIZES; i++) {
        if (s->by_rows[i].rows == rows) return s->by_rows[i].batches;
    }
    return 0;
}

void queue_await_waiting(sp_batch_queue queue, uint32_t waiting)
{
    while (queue_statistics(queue).waiting < waiting) sp_thread_yield();
}

void queue_check_done(sp_batch_queue queue, uint64_t done)
{
    const sp_batch_queue_statistics s = queue_statistics(queue);
    CHECK_EQ_U64(s.done, done);
    CHECK_EQ_U64(s.done + s.failed + s.cancelled + s.expired, s.submitted);
    CHECK_EQ_U64(s.waiting, 0);
    CHECK_EQ_U64(s.in_flight, 0);
    /* Requests that are cancelled while they compute count too. */
    CHECK(s.rows >= s.done + s.failed && s.rows <= s.done + s.failed + s.cancelled);
    CHECK(s.longest_wait_ns <= s.total_wait_ns);
}

static void load_submit(void *arg, uint32_t index)
{
    const queue_load *load = arg;
    queued_row rows[QUEUE_LOAD_BURST];
    queued_rows_init(load->model, rows, index * QUEUE_LOAD_BURST, QUEUE_LOAD_BURST);
    for (uint64_t i = 0; i < load->rounds; i++) {
        queued_rows_submit(load->queue, rows, QUEUE_LOAD_BURST);
        queued_rows_finish(rows, QUEUE_LOAD_BURST);
    }
}

void queue_load_run(const queue_load *load, uint32_t threads)
{
    queue_load copy = *load;
    test_threads(threads, load_submit, &copy);
    queue_check_done(load->queue, (uint64_t)threads * load->rounds * QUEUE_LOAD_BURST);
}

sp_model queue_model(void)
{
    const sp_model model = small_model(NULL);
    const sp_host_tensor x = input_x(1);
    const uint32_t buckets = combining_prepare(model, &x, 1);
    if (combining_is_certain()) CHECK_EQ_U64(buckets, 11);
    return model;
}

bool queued_row_is_right(const queued_row *row)
{
    const unsigned char *y = (const void *)row->y, *expected = (const void *)row->expected;
    return memcmp(y, expected, sizeof row->y) == 0;
}
